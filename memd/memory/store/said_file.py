"""The file of a said layer, beside its document, which names it and says how many of its bytes count.

A commit writes here first and replaces the document afterwards, both under the bucket's lock. Killed in between, the
document still names what it named before: bytes after its end are cut off by the next append, and a file that no
document names is swept. Readers read exactly the bytes that their document names, so nothing is ever read twice.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memd.disk import appending, files
from memd.disk.appending import NamedLines
from memd.errors import StoreUnavailable
from memd.memory.document import SAID_FILE, Document, SaidFile, said_file_of, with_said_file
from memd.memory.said.changes import Append, Rewrite, SaidChange, anew, with_more


def read(folder: Path, said: SaidFile, last: int | None = None) -> bytes | None:
    """The lines that a document names; fewer after a power cut. None when the file is gone or is no regular file.

    `last`: only the lines that stand whole in so many bytes at the end. Raises StoreUnavailable.
    """
    return appending.read(folder, NamedLines(said.file, said.bytes), last)


def write(folder: Path, before: Document, after: Document, change: SaidChange | None) -> Document:
    """Write a change of the layer to the disk; returns the document that names it. The caller holds the lock.

    `before`: the document on disk. Raises StoreUnavailable; then the document on disk still names all that it did.
    """
    if change is None:
        return after
    old = said_file_of(before)
    try:
        if isinstance(change, Append):
            said = _appended(folder, old, change) or _written(folder, change)
        else:
            said = _written(folder, change) if change.lines else SaidFile()
    except OSError as error:
        raise files.unavailable(error) from None
    return with_said_file(after, said)


def sweep(folder: Path, document: Document) -> int:
    """Remove the files that the document on disk does not name; returns how many. The caller holds the lock.

    Raises StoreUnavailable.
    """
    named, removed = said_file_of(document).file, 0
    try:
        for file in present(folder):
            if file.name != named:
                shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()
                removed += 1
    except OSError as error:
        code = files.unavailable(error)
        raise StoreUnavailable(f"{code}; the change is stored, an older file of what was said remains") from None
    return removed


def present(folder: Path) -> Iterator[Path]:
    """Everything in a folder that has the name of a said file. Raises OSError."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from [folder / entry.name for entry in entries if SAID_FILE.fullmatch(entry.name)]


def _appended(folder: Path, old: SaidFile, change: Append) -> SaidFile | None:
    """Append to the file that the document names. None without a file to append to."""
    file = appending.append(folder, NamedLines(old.file, old.bytes), change.lines, durable=change.durable)
    if file is None:
        return None
    return with_more(old, change)._replace(bytes=file.bytes)


def _written(folder: Path, change: Append | Rewrite) -> SaidFile:
    """Write a new file of a new name."""
    durable = isinstance(change, Rewrite) or change.durable
    file = appending.begin(folder, "said", change.lines, durable=durable)
    return anew(file.file, change)
