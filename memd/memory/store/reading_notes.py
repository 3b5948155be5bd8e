"""Reading notes in files: how often and how lately each fact was found. So reading never writes a document.

`<data>/heat/<hash of user or project>/<hash of bucket>` holds lines. A search appends one, `<seconds> <id> <id> …`; a
file that has grown is folded into one line for each fact, `= <last> <count> <heat> <id>`, and grows on from there. The
notes are a hint, not a promise: they are not synced to the disk, unreadable lines are skipped, no memory needs them.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from memd.context import Bucket, user_hash
from memd.disk import files
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.memory.store import paths
from memd.memory.store.noted import Noted, take_in
from memd.memory.store.protocol import Access, Accesses

FOLD_BYTES = 49_152
"""A file larger than this is folded to at most half of it; the hottest facts stay. 500 facts take 20 KB."""

MAX_BYTES = 4 * FOLD_BYTES
"""A file that cannot be folded grows no further than this."""

TRIES, PAUSE_S = 5, 0.001
"""Attempts to append, and seconds between them, while somebody else folds the file, which takes a millisecond."""

MAX_TOUCHED = 50
"""Facts of one search that count; a larger search is a listing rather than a question."""

_ID = re.compile(r"[^\s=][^\s]{0,63}")


class ReadingNoteFiles:
    """The reading notes of a data folder (see `protocol.ReadingNotes`). Safe to use from many threads and processes."""

    def __init__(self, data_dir: Path, *, shared: bool) -> None:
        self._folder = data_dir / paths.READING_NOTES
        self._shared = shared
        self._noted = Noted()

    def note(self, bucket: Bucket, fact_ids: Iterable[str], now: float) -> bool:
        """Note that these facts were found; False when the file system refuses."""
        names = [fact_id for fact_id in fact_ids if _ID.fullmatch(fact_id)][:MAX_TOUCHED]
        if not names:
            return True
        try:
            return _append(self._file(bucket), f"{now:.0f} {' '.join(names)}\n".encode(), now)
        except OSError:  # no right to write, or a full disk: the search returns its facts all the same
            return False

    def read(self, bucket: Bucket, now: float, fact_ids: Collection[str] | None = None) -> Accesses:
        """The accesses of all facts of a memory; none when the file cannot be read or is not one of ours."""
        try:
            return Accesses(self._noted.read(self._file(bucket)), now)
        except (StoreUnavailable, DocumentDamaged):  # nobody waits for a hint
            return Accesses({}, now)

    def forget(self, user_id: str, agent_name: str | None) -> None:
        """Remove the notes of one agent's memory of the user, or of all of them (None). Raises StoreUnavailable."""
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

    def put(self, bucket: Bucket, accesses: Mapping[str, Access]) -> None:
        """Make these the notes of a memory. Raises StoreUnavailable."""
        file = self._file(bucket)
        try:
            if not accesses:
                file.unlink(missing_ok=True)
                return
            files.make_folder(file.parent)
            temp = file.with_suffix(".tmp")
            temp.touch(0o600)
            temp.write_bytes(_folded(accesses, time.time()))
            temp.replace(file)
        except OSError as error:
            raise files.unavailable(error) from None

    def _file(self, bucket: Bucket) -> Path:
        owner = Bucket("", bucket.agent_name) if self._shared and not bucket.project_id else bucket
        return self._folder / owner.owner / owner.hash


def _append(file: Path, line: bytes, now: float) -> bool:
    """Append a line, and fold the file when it has grown; False when it is full, or a fold took too long."""
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
    """Open the file for appending; make it when it is missing."""
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(file, flags, 0o600)
    except FileNotFoundError:
        for folder in (file.parent.parent, file.parent):
            with suppress(FileExistsError):
                folder.mkdir(0o700)
        return os.open(file, flags, 0o600)


def _is_ours(descriptor: int, file: Path) -> bool:
    """Whether nobody has folded the file since it was opened; from now on nobody can until it is closed."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(descriptor), file.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _fold(file: Path, descriptor: int, now: float) -> None:
    """Replace the file by a shorter one with the hottest facts, unless somebody else is using it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # somebody appends; the next append folds
        return
    if not os.path.samestat(os.fstat(descriptor), file.lstat()):  # folded while the lock changed hands
        return
    temp = file.with_suffix(".tmp")
    temp.touch(0o600)
    accesses: dict[str, Access] = {}
    take_in(accesses, os.pread(descriptor, 2 * MAX_BYTES, 0))
    temp.write_bytes(_folded(accesses, now))
    temp.replace(file)


def _folded(accesses: Mapping[str, Access], now: float) -> bytes:
    lines: list[bytes] = []
    size = 0
    for name in sorted(accesses, key=lambda name: accesses[name].at(now), reverse=True):
        access = accesses[name]
        line = f"= {access.last:.0f} {access.count} {access.heat:.4g} {name}\n".encode()
        size += len(line)
        if size > FOLD_BYTES // 2:
            break
        lines.append(line)
    return b"".join(lines)
