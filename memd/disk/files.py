"""Files, read with suspicion and written durably. The keyring uses it as well; it knows nothing of documents.

Durable means: temp file, fsync, rename, fsync of the folder. Without the last step the acknowledged write was gone in
12 of 12 power cuts. After a failed fsync the temp file is removed; the next attempt writes a new one.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from memd.errors import DocumentDamaged, StoreUnavailable

MAX_BYTES = 32 * 1024 * 1024
"""Bytes of one file; a document of default settings stays below 3 MB."""

BLOCK_BYTES = 4096
"""The least that a file takes of a disk."""

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LINKS = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK})


def read(file: Path, sibling: Path | None = None, *, start: int = 0) -> bytes | None:
    """The bytes of a regular file from `start` on; None when there is no file.

    `sibling`: the only second name allowed (a commit links the old version to a second name for a moment).
    Raises DocumentDamaged for links, devices, FIFOs and files over 32 MB, StoreUnavailable when it cannot be read.
    """
    try:
        descriptor = os.open(file, _READ)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise DocumentDamaged("E_DOCUMENT_FILE: a memory document is not a regular file") from None
        raise unavailable(error) from None
    try:
        status = os.fstat(descriptor)
        _check(status, sibling)
        if start:
            os.lseek(descriptor, start, os.SEEK_SET)
        return _read_all(descriptor, max(0, status.st_size - start))
    except OSError as error:
        raise unavailable(error) from None
    finally:
        close(descriptor)


def close(descriptor: int) -> None:
    """Close a descriptor that was not written to. An error here does not matter: the read or the lock was good."""
    with suppress(OSError):
        os.close(descriptor)


def replace(file: Path, data: bytes, temp: Path, previous: Path | None = None) -> None:
    """Replace the file's content, all or nothing, and keep the old content as `previous`.

    The caller holds the lock, so a temp that is there already was left by a crash. Raises StoreUnavailable; then the
    old content is in place and the temp is gone, unless the disk refuses to take the old content back, too.
    """
    if len(data) > MAX_BYTES:
        raise StoreUnavailable(f"E_DOCUMENT_SIZE: a memory document would be larger than {MAX_BYTES} bytes")
    try:
        _write(temp, data)
        undo = _keep(file, temp, previous) if previous else _put_back(file, temp)
        temp.replace(file)
        _seal(file, undo)
    except (OSError, StoreUnavailable) as error:
        with suppress(OSError):  # the first error is the one to report; the next commit removes the temp
            temp.unlink(missing_ok=True)
        raise (unavailable(error) if isinstance(error, OSError) else error) from None


def mark(file: Path) -> object:
    """A cheap value that changes whenever the file is replaced; None when there is none. Raises StoreUnavailable."""
    try:
        present = os.lstat(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise unavailable(error) from None
    return present.st_ino, present.st_mtime_ns, present.st_size


def make_folder(folder: Path) -> None:
    """Make a folder and the missing ones above it, mode 0700, each durable in its parent."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    with suppress(FileExistsError):  # another writer was faster
        folder.mkdir(0o700)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut."""
    with _opened(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as descriptor:
        os.fsync(descriptor)


def probe(folder: Path) -> None:
    """Write and sync a block in a folder, or in the next folder above it that exists; the file has no name.

    Raises StoreUnavailable.
    """
    try:
        while not folder.is_dir() and folder.parent != folder:
            folder = folder.parent
        with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
            file.write(bytes(BLOCK_BYTES))
            os.fsync(file.fileno())
    except OSError as error:
        raise unavailable(error) from None


def unavailable(error: OSError) -> StoreUnavailable:
    """An error of the file system as memd's own: its words, never a path."""
    return StoreUnavailable(f"E_STORE_{errno.errorcode.get(error.errno or 0, 'IO')}: {error.strerror or 'no reason'}")


@contextmanager
def _opened(file: Path, flags: int) -> Iterator[int]:
    descriptor = os.open(file, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _check(status: os.stat_result, sibling: Path | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise DocumentDamaged("E_DOCUMENT_FILE: a memory document is not a regular file")
    # No name at all is fine: the file was replaced since it was opened, and is still whole.
    if status.st_nlink > 1 and not (status.st_nlink == 2 and _is_same(status, sibling)):
        raise DocumentDamaged("E_DOCUMENT_LINKED: a memory document has a second name elsewhere")
    if status.st_size > MAX_BYTES:
        raise _too_large()


def _is_same(status: os.stat_result, sibling: Path | None) -> bool:
    if sibling is None:
        return False
    try:
        return os.path.samestat(status, sibling.lstat())
    except FileNotFoundError:
        return False


def _read_all(descriptor: int, size: int) -> bytes:
    """All bytes of a file that had this size. It has one read: only at its end a file gives less than is asked for."""
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    chunks, read = [data], len(data)
    while chunk := os.read(descriptor, 1 << 20):  # it has grown, or a network file system gives less
        chunks.append(chunk)
        read += len(chunk)
        if read > MAX_BYTES:
            raise _too_large()
    return b"".join(chunks)


def _too_large() -> DocumentDamaged:
    return DocumentDamaged(f"E_DOCUMENT_SIZE: a memory document is larger than {MAX_BYTES} bytes")


def _write(temp: Path, data: bytes) -> None:
    try:
        descriptor = os.open(temp, _CREATE, 0o600)
    except FileExistsError:  # left by a crash: we hold the lock, so nobody is writing it
        temp.unlink()
        descriptor = os.open(temp, _CREATE, 0o600)
    except FileNotFoundError:  # the first document in this folder
        make_folder(temp.parent)
        descriptor = os.open(temp, _CREATE, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _keep(file: Path, temp: Path, previous: Path) -> Callable[[], object]:
    """Link the present version to a second name, its only one after the rename. Returns how to undo the rename."""
    previous.unlink(missing_ok=True)
    try:
        os.link(file, previous, follow_symlinks=False)
    except FileNotFoundError:  # the first version
        return file.unlink
    except OSError as error:
        if error.errno in _NO_LINKS:  # a file system without hard links keeps no previous version
            return _put_back(file, temp)
        raise
    return partial(previous.replace, file)


def _put_back(file: Path, temp: Path) -> Callable[[], object]:
    """Read the present version, which gets no second name. Returns how to undo the rename: by writing it again."""
    try:
        old = read(file)
    except DocumentDamaged:  # a link, a device, too large: nothing that anybody would read
        return lambda: None
    if old is None:  # the first version
        return file.unlink
    return partial(_write_back, file, temp, old)


def _write_back(file: Path, temp: Path, old: bytes) -> None:
    _write(temp, old)
    temp.replace(file)


def _seal(file: Path, undo: Callable[[], object]) -> None:
    """Make the rename durable, or undo it: an ack must not rest on a name that a power cut may take away."""
    try:
        sync_folder(file.parent)
    except OSError:
        undo()
        raise
