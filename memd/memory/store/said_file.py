"""The file of a said layer, beside its document, which names it and says how many of its bytes count.

A commit writes here first and replaces the document afterwards, both under the bucket's lock. Killed in between, the
document still names what it named before: bytes after its end are cut off by the next append, and a file that no
document names is swept. Readers read exactly the bytes that their document names, so nothing is ever read twice.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from memd.disk import files
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.memory.document import SAID_FILE, Document, SaidFile, said_file_of, with_said_file
from memd.memory.said.changes import Append, Rewrite, SaidChange

_NO_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO})
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read(folder: Path, said: SaidFile, last: int | None = None) -> bytes | None:
    """The lines that a document names; fewer after a power cut. None when the file is gone or is no regular file.

    `last`: only the lines that stand whole in so many bytes at the end. Raises StoreUnavailable.
    """
    start = 0 if last is None else max(0, said.bytes - last)
    try:
        data = files.read(folder / said.file, start=start) if said.file else b""
    except DocumentDamaged:  # `memd audit` reports it; the next change of the layer starts another file
        return None
    if data is None:
        return None
    data = data[: said.bytes - start]
    return data[data.find(b"\n") + 1 :] if start else data


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
    """Cut the file to what the document names, and append. None without a file to append to."""
    if not old.file:
        return None
    try:
        descriptor = os.open(folder / old.file, _FLAGS)
    except OSError as error:
        if error.errno in _NO_FILE:  # removed by hand, or replaced by a link or a folder: a new file is begun
            return None
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            return None
        end = old.bytes if status.st_size >= old.bytes else _end_of_lines(descriptor, status.st_size)
        if status.st_size != end:
            os.ftruncate(descriptor, end)
        try:
            _write_all(descriptor, change.lines, end)
            if change.durable:
                os.fsync(descriptor)
        except OSError:
            with suppress(OSError):  # the next append cuts it off; the first error is the one to report
                os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)
    since = min(filter(None, (old.since, change.since)), default="")
    gates = old.gates if change.gates is None else min(old.gates, change.gates)
    return SaidFile(old.file, end + len(change.lines), old.turns + change.turns, since, gates)


def _written(folder: Path, change: Append | Rewrite) -> SaidFile:
    """Write a new file of a new name."""
    files.make_folder(folder)
    name = f"said-{os.urandom(8).hex()}.jsonl"
    descriptor = os.open(folder / name, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _write_all(descriptor, change.lines, 0)
        if isinstance(change, Rewrite) or change.durable:
            os.fsync(descriptor)
    except OSError:
        with suppress(OSError):  # the next sweep removes it; the first error is the one to report
            (folder / name).unlink()
        raise
    finally:
        os.close(descriptor)
    return SaidFile(name, len(change.lines), change.turns, change.since, change.gates or 0)


def _write_all(descriptor: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, place)
        view, place = view[written:], place + written


def _end_of_lines(descriptor: int, size: int) -> int:
    """The end of the last whole line of a file that a power cut has shortened."""
    return os.pread(descriptor, size, 0).rfind(b"\n") + 1
