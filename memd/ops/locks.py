"""Locks on the data folder: one `memd up`, one process that runs the server, one server.

They are kernel locks (`flock`), released when the last process that has the file open ends. The pid in the file is
for people and for the doctor.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from memd.errors import AlreadyRunning, ConfigError
from memd.events import Event, logger

EARLIER_S = 30.0
"""Seconds that the server of an earlier memd gets to end."""

POLL_S = 0.02


class CalledOff(Exception):
    """The wait for a lock was called off."""


class OneProcess:
    """A lock that one process holds while it runs. Entering raises AlreadyRunning with `sentence` and the other pid."""

    def __init__(self, file: Path, sentence: str) -> None:
        self._file = file
        self._sentence = sentence

    def __enter__(self) -> None:
        self._descriptor = _open(self._file)
        if not _try(self._descriptor):
            os.close(self._descriptor)
            raise AlreadyRunning(f"{self._sentence}, pid {holder(self._file) or 'unknown'}")
        name_holder(self._descriptor, os.getpid())

    def __exit__(self, *_: object) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def never() -> bool:
    """The default of `stopping`: the wait is never called off."""
    return False


def hold(file: Path, stopping: Callable[[], bool] = never) -> int:
    """A descriptor that holds the lock; a child that inherits it holds it too, after the parent has closed its own.

    Waits EARLIER_S for another holder to end, unless `stopping`. Raises AlreadyRunning, ConfigError, CalledOff.
    """
    descriptor = _open(file)
    until = time.monotonic() + EARLIER_S
    waiting = False
    while not _try(descriptor):
        if not waiting:
            waiting = True
            logger(part="server").warning(Event.SERVER_WAITS, pid=holder(file))
        if stopping():
            os.close(descriptor)
            raise CalledOff
        if time.monotonic() > until:
            os.close(descriptor)
            raise AlreadyRunning(
                f"an earlier server of this data folder, pid {holder(file) or 'unknown'}, has not ended within "
                f"{EARLIER_S:g} s; end it, then start again"
            )
        time.sleep(POLL_S)
    return descriptor


def name_holder(descriptor: int, pid: int) -> None:
    """Write the pid of the process that holds the lock into its file."""
    with suppress(OSError):  # a full disk: the lock is still held
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(pid).encode(), 0)


def holder(file: Path) -> int | None:
    """The pid in a lock's file, or None. The lock may no longer be held: see `is_held`."""
    with suppress(OSError, ValueError):
        return int(file.read_text(encoding="ascii"))
    return None


def is_held(file: Path) -> bool:
    """Whether some process holds this lock now. Raises OSError."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written ({error.strerror})") from None


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
