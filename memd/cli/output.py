"""What a command writes to a file instead of standard output."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import orjson
import typer

Output = Annotated[
    Path | None, typer.Option("--output", "-o", help="A new file (mode 0600); default: standard output.")
]


def write_private(file: Path, value: dict[str, Any]) -> None:
    """Create a private file: an export is as private as the documents. It overwrites nothing."""
    with private(file) as opened:
        opened.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


@contextmanager
def private(file: Path) -> Iterator[BinaryIO]:
    """A new private file, open for writing; it is removed unless it was written to its end."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise typer.BadParameter(f"the file cannot be created ({error.strerror})", param_hint="--output") from None
    try:
        with os.fdopen(descriptor, "wb") as opened:
            yield opened
    except BaseException as error:
        file.unlink(missing_ok=True)  # a partial export could be mistaken for a whole one
        if isinstance(error, OSError):
            raise typer.BadParameter(f"the file cannot be written ({error.strerror})", param_hint="--output") from None
        raise
