"""Locks between processes and threads: `flock` on files that are never removed. A process that dies releases them."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.disk.files import close, make_folder
from memd.errors import StoreUnavailable

WAIT_S = 10.0
"""Seconds to wait for a lock. A commit takes milliseconds, so whoever holds a lock that long is frozen."""

POLL_S = 0.002


@contextmanager
def locked(file: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock, against threads and processes alike; `shared`: together with other shared holders.

    Raises StoreUnavailable when the lock is not free within WAIT_S.
    """
    descriptor = _open(file)
    try:
        _acquire(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
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


def _acquire(descriptor: int, kind: int) -> None:
    until = time.monotonic() + WAIT_S
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:  # held by another writer of this document, or of one that shares the lock file
            if time.monotonic() > until:
                raise StoreUnavailable(f"E_STORE_LOCKED: a lock was not free within {WAIT_S:g} s") from None
            time.sleep(POLL_S)
        except OSError as error:
            raise StoreUnavailable(f"E_STORE_LOCK: the file system refuses locks ({error.strerror})") from None
        else:
            return
