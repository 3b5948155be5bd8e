"""Files of lines that only grow, beside a document that names them and says how many of their bytes count.

Whoever commits writes here first and replaces the document afterwards, both under the lock. Killed in between, the
document still names what it named before: bytes behind its end are cut off by the next append, and a file that no
document names is swept. Readers read exactly the bytes that the document names, so nothing is ever read twice.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from memd.disk import files
from memd.errors import DocumentDamaged

_NO_FILE = frozenset({errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENXIO})
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class NamedLines(NamedTuple):
    """What a document says of its file: the name ("" without one), and how many of its bytes count."""

    file: str = ""
    bytes: int = 0


def read(folder: Path, lines: NamedLines, last: int | None = None) -> bytes | None:
    """The lines that a document names; fewer after a power cut. None when the file is gone or is no regular file.

    `last`: only the lines that stand whole in so many bytes at the end. Raises StoreUnavailable.
    """
    start = 0 if last is None else max(0, lines.bytes - last)
    try:
        data = files.read(folder / lines.file, start=start) if lines.file else b""
    except DocumentDamaged:  # `memd audit` reports it; the next change begins another file
        return None
    if data is None:
        return None
    data = data[: lines.bytes - start]
    return data[data.find(b"\n") + 1 :] if start else data


def append(folder: Path, old: NamedLines, data: bytes, *, durable: bool) -> NamedLines | None:
    """Cut the file to what the document names, and append. None without a file to append to. Raises OSError."""
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
            _write_all(descriptor, data, end)
            if durable:
                os.fsync(descriptor)
        except OSError:
            with suppress(OSError):  # the next append cuts it off; the first error is the one to report
                os.ftruncate(descriptor, end)
            raise
    finally:
        os.close(descriptor)
    return NamedLines(old.file, end + len(data))


def begin(folder: Path, prefix: str, data: bytes, *, durable: bool) -> NamedLines:
    """Write a new file of a new name, which begins with the prefix. Raises OSError."""
    files.make_folder(folder)
    name = f"{prefix}-{os.urandom(8).hex()}.jsonl"
    descriptor = os.open(folder / name, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        _write_all(descriptor, data, 0)
        if durable:
            os.fsync(descriptor)
    except OSError:
        with suppress(OSError):  # the next sweep removes it; the first error is the one to report
            (folder / name).unlink()
        raise
    finally:
        os.close(descriptor)
    return NamedLines(name, len(data))


def _write_all(descriptor: int, data: bytes, place: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, place)
        view, place = view[written:], place + written


def _end_of_lines(descriptor: int, size: int) -> int:
    """The end of the last whole line of a file that a power cut has shortened."""
    return os.pread(descriptor, size, 0).rfind(b"\n") + 1
