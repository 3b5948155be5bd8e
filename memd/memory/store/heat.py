"""Heat: how often and how lately each fact was found, kept beside the documents so that reading never rewrites one.

`<data>/heat/<hash of user>/<hash of bucket>` holds lines. A search appends one, `<seconds> <id> <id> …`; a file that
has grown is folded into one line a fact, `= <last> <count> <heat> <id>`, and goes on from there. It is a hint, not a
promise: nothing is synced to the disk, a line that cannot be read counts for nothing, and without it no memory is lost.
"""

from __future__ import annotations

import fcntl
import math
import os
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from memd.config import Settings
from memd.context import Bucket, user_hash
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.memory.store import files

HALF_LIFE_S = 30 * 86_400.0
"""Seconds in which the heat of an access falls to half."""

FOLD_BYTES = 49_152
"""A file that has grown to this is folded to half of it at most, the hottest facts: 500 ids of memd take 20 KB."""

MAX_BYTES = 4 * FOLD_BYTES
"""Where folding fails, the file grows no further than this."""

TRIES, PAUSE_S = 5, 0.001
"""How often, and how many seconds apart, an append is tried while another one folds, which takes a millisecond."""

MAX_TOUCHED = 50
"""Facts of one search that count; who asks for more does not look for something."""

FOLDER = "heat"
_ID = re.compile(r"[^\s=][^\s]{0,63}")


@dataclass(frozen=True, slots=True)
class Access:
    """What is known of one fact: the last access in Unix seconds, how many there were, and its heat at the last one."""

    last: float
    count: int
    heat: float

    def at(self, now: float) -> float:
        """The heat now: each access counts 1 when it happens, and half of that after each half-life."""
        return self.heat * math.pow(0.5, max(0.0, now - self.last) / HALF_LIFE_S)

    def again(self, now: float) -> Access:
        """After one more access."""
        return Access(max(now, self.last), self.count + 1, self.at(now) + 1.0)


@dataclass(frozen=True, slots=True)
class Heat:
    """The accesses of one memory's facts, as of `now` (Unix seconds)."""

    accesses: Mapping[str, Access]
    now: float

    def heat(self, fact_id: str) -> float:
        """The heat of a fact: 0 when it was never found, 1 when just now for the first time, 0.5 when 30 days ago."""
        found = self.accesses.get(fact_id)
        return found.at(self.now) if found else 0.0


class HeatFiles:
    """The heat of a data folder. Safe to use from many threads and processes."""

    def __init__(self, settings: Settings) -> None:
        self._folder = settings.data_dir / FOLDER
        self._shared = settings.store.shared

    def touch(self, bucket: Bucket, fact_ids: Iterable[str], now: float) -> bool:
        """Note that these facts were found; False when the file system refuses: then it is not noted."""
        names = [fact_id for fact_id in fact_ids if _ID.fullmatch(fact_id)][:MAX_TOUCHED]
        if not names:
            return True
        try:
            return _append(self._file(bucket), f"{now:.0f} {' '.join(names)}\n".encode(), now)
        except OSError:  # a reader without the right to write, a full disk: what was found is answered all the same
            return False

    def read(self, bucket: Bucket, now: float) -> Heat:
        """The heat of a memory's facts; none when the file cannot be read, or is not one of ours: it is only a hint."""
        try:
            data = files.read(self._file(bucket)) or b""
        except (StoreUnavailable, DocumentDamaged):  # no commit waits for a hint
            data = b""
        return Heat(_parsed(data), now)

    def forget(self, user_id: str, agent_name: str | None) -> None:
        """Remove the heat of an agent's memory of the user, or of all of them (None). Raises StoreUnavailable."""
        if self._shared:
            return
        try:
            if agent_name is None:
                shutil.rmtree(self._folder / user_hash(user_id))
            else:
                self._file(Bucket(user_id, agent_name)).unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            raise files.unavailable(error) from None

    def _file(self, bucket: Bucket) -> Path:
        owner = Bucket("", bucket.agent_name) if self._shared else bucket
        return self._folder / user_hash(owner.user_id) / owner.hash


def _append(file: Path, line: bytes, now: float) -> bool:
    """Append a line; the file is folded when it has grown. False: it is full, or a fold took too long."""
    for _ in range(TRIES):
        descriptor = _open(file)
        try:
            if _is_ours(descriptor, file):
                size = os.fstat(descriptor).st_size
                if size > MAX_BYTES:
                    return False
                os.write(descriptor, line)
                if size > FOLD_BYTES:
                    _fold(file, descriptor, now)
                return True
        finally:
            with suppress(OSError):
                os.close(descriptor)
        time.sleep(PAUSE_S)
    return False


def _open(file: Path) -> int:
    """The file, made when it is missing; what is written goes to its end."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(file, flags, 0o600)
    except FileNotFoundError:
        for folder in (file.parent.parent, file.parent):
            with suppress(FileExistsError):
                folder.mkdir(0o700)
        return os.open(file, flags, 0o600)


def _is_ours(descriptor: int, file: Path) -> bool:
    """Whether nobody folds the file, now or since it was opened; nobody will until it is closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), file.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _fold(file: Path, descriptor: int, now: float) -> None:
    """Replace the file by a shorter one that says the same of the hottest facts, unless others are at it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # somebody appends: who comes next folds
        return
    if not os.path.samestat(os.fstat(descriptor), file.lstat()):  # folded while the lock changed hands
        return
    temp = file.with_suffix(".tmp")
    temp.touch(0o600)
    temp.write_bytes(_folded(_parsed(os.pread(descriptor, 2 * MAX_BYTES, 0)), now))
    temp.replace(file)


def _folded(accesses: Mapping[str, Access], now: float) -> bytes:
    lines: list[bytes] = []
    size = 0
    for name in sorted(accesses, key=lambda name: accesses[name].at(now), reverse=True):
        one = accesses[name]
        line = f"= {one.last:.0f} {one.count} {one.heat:.4g} {name}\n".encode()
        size += len(line)
        if size > FOLD_BYTES // 2:
            break
        lines.append(line)
    return b"".join(lines)


def _parsed(data: bytes) -> dict[str, Access]:
    accesses: dict[str, Access] = {}
    for line in data.decode(errors="replace").splitlines():
        words = line.split()
        try:
            if words[0] == "=":
                accesses[words[4]] = Access(_number(words[1]), int(words[2]), _number(words[3]))
            else:
                now = _number(words[0])
                for name in words[1:]:
                    found = accesses.get(name)
                    accesses[name] = found.again(now) if found else Access(now, 1, 1.0)
        except (ValueError, IndexError):  # torn by a crash: its accesses are not counted
            continue
    return accesses


def _number(word: str) -> float:
    value = float(word)
    if not 0 <= value < 1e12:
        raise ValueError
    return value
