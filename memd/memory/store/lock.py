"""The lock of a document: `flock` on one of 256 files that are never removed; a process that dies lets go of it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.errors import StoreUnavailable
from memd.memory.store.files import close, make_folder

WAIT_S = 10.0
"""How long a lock is waited for: a commit takes milliseconds, so a holder that long is frozen."""

POLL_S = 0.002


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock, against threads and processes alike. Raises StoreUnavailable when it cannot be had in time."""
    descriptor = _open(file)
    try:
        _acquire(descriptor)
        yield
    finally:
        close(descriptor)


def _open(file: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        try:
            return os.open(file, flags, 0o600)
        except FileNotFoundError:  # the first lock of this data folder
            make_folder(file.parent)
            return os.open(file, flags, 0o600)
    except OSError as error:
        raise StoreUnavailable(f"E_STORE_LOCK: a lock file cannot be opened ({error.strerror})") from None


def _acquire(descriptor: int) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:  # another commit of this document, or of one that shares the lock file
            if time.monotonic() > until:
                raise StoreUnavailable(f"E_STORE_LOCKED: a lock was not free within {WAIT_S:g} s") from None
            time.sleep(POLL_S)
        except OSError as error:
            raise StoreUnavailable(f"E_STORE_LOCK: the file system refuses locks ({error.strerror})") from None
        else:
            return
