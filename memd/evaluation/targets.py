"""Targets: the folders that a run writes to. They are tried before any model is asked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.errors import MemdError


class NotWritten(MemdError):
    """Replies or requests cannot be written. The sentence names the target."""

    exit_code = 74


@contextmanager
def writing(target: Path) -> Iterator[None]:
    """Translate the file system's errors. Raises NotWritten."""
    try:
        yield
    except OSError as error:
        raise NotWritten(f"{target} cannot be written: {error.strerror}; name another place") from None


def check_folder(folder: Path) -> None:
    """Make the folder and write a file in it that is gone at once. Raises NotWritten."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()


def check_file(file: Path) -> None:
    """The same for a file, which may exist. Raises NotWritten."""
    with writing(file):
        check_folder(file.parent)
        if file.exists():
            os.close(os.open(file, os.O_WRONLY | os.O_APPEND))
