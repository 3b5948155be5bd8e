"""Sessions in files: a folder for each, beside its bucket's document, `<bucket>/sessions/<thread>/`.

`session.json` is the state, which names the file of lines beside it. Checkpoints are files in `checkpoints/`, and
those that were pruned in `archive/`. Writers hold the owner's lock, shared, and the bucket's, as commits do.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from memd.context import Bucket, Key, user_hash
from memd.disk import appending, files, path_parts
from memd.disk.appending import NamedLines
from memd.disk.lock import locked
from memd.errors import DocumentDamaged, DocumentTooNew
from memd.memory.store import document_file, paths, seal_file
from memd.memory.store import session_format as form
from memd.memory.store.protocol import Tombstones
from memd.memory.store.sessions import (
    MAX_LINES_BYTES,
    CheckpointEntry,
    SessionEntry,
    State,
    StoredSession,
)
from memd.push.times import iso

FILE = "session.json"
CHECKPOINTS, ARCHIVE = "checkpoints", "archive"


class SessionFiles:
    """The sessions of a data folder (see `sessions.Sessions`)."""

    def __init__(self, data_dir: Path, tombstones: Tombstones) -> None:
        self._data_dir = data_dir
        self._tombstones = tombstones

    def load(self, key: Key) -> StoredSession:
        """The session of a key; a file that is none is set aside. Raises DocumentTooNew, StoreUnavailable."""
        tombstone = self._tombstones.find(key.user_id)
        file = self._folder(key) / FILE
        try:
            data = files.read(file)
            state = None if data is None else form.state_of(data, key)
        except DocumentTooNew:
            raise
        except DocumentDamaged:
            with self._writing(key), _translated():
                file.rename(file.with_name(f"{FILE}.corrupt-{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"))
            data = state = None
        content_hash = None if data is None else document_file.hash_of(data)
        return StoredSession(state, content_hash, tombstone.generation if tombstone else 0)

    def save(self, key: Key, loaded: StoredSession, state: State, lines: Sequence[bytes] = ()) -> StoredSession:
        """Replace what was loaded and add lines.

        Raises SessionChanged, SessionForgotten, Rejected, StoreUnavailable.
        """
        folder = self._folder(key)
        with self._writing(key):
            generation = self._unforgotten(key, loaded)
            with _translated():
                named = _added(folder, form.lines_of(loaded.state), lines)
            full = form.saved(state, loaded, named)
            data = form.serialised(full)
            files.replace(folder / FILE, data, folder / f"{FILE}.tmp")
            if named.file != form.lines_of(loaded.state).file:
                _sweep(folder, named)
        return StoredSession(full, document_file.hash_of(data), generation)

    def lines(self, key: Key, loaded: StoredSession) -> Iterator[bytes]:
        """The lines of the session, oldest first. Raises StoreUnavailable."""
        yield from (appending.read(self._folder(key), form.lines_of(loaded.state)) or b"").splitlines()

    def entries(self, bucket: Bucket) -> list[SessionEntry]:
        """The sessions of a bucket, the one saved last first. Raises StoreUnavailable."""
        with _translated():
            found = [entry for folder in _folders(self._sessions(bucket)) if (entry := _entry(folder))]
        return sorted(found, key=lambda entry: entry.saved_at, reverse=True)

    def remove(self, key: Key) -> bool:
        """Remove a session with all that belongs to it; whether there was one. Raises StoreUnavailable."""
        with self._writing(key), _translated():
            return _removed(self._folder(key))

    def put_checkpoint(self, key: Key, loaded: StoredSession, checkpoint_id: str, state: State) -> None:
        """Write a checkpoint. Raises SessionForgotten, Rejected, StoreUnavailable."""
        folder = self._folder(key) / CHECKPOINTS
        with self._writing(key):
            self._unforgotten(key, loaded)
            file = folder / f"{form.checked(checkpoint_id)}.json"
            files.replace(file, form.serialised({**state, "version": form.VERSION}), file.with_name(f"{file.name}.tmp"))

    def checkpoints(self, key: Key) -> list[CheckpointEntry]:
        """The checkpoints of a session, oldest first. Raises StoreUnavailable."""
        with _translated():
            found = [(file.stat().st_mtime_ns, file) for file in (self._folder(key) / CHECKPOINTS).glob("*.json")]
        return [CheckpointEntry(file.stem, _time(ns)) for ns, file in sorted(found)]

    def checkpoint(self, key: Key, checkpoint_id: str) -> State | None:
        """The state of a checkpoint. Raises DocumentDamaged, StoreUnavailable."""
        for place in (CHECKPOINTS, ARCHIVE):
            data = files.read(self._folder(key) / place / f"{form.checked(checkpoint_id)}.json")
            if data is not None:
                return form.parsed(data)
        return None

    def archive(self, key: Key, checkpoint_ids: Sequence[str]) -> int:
        """Move checkpoints to the archive. Raises StoreUnavailable."""
        folder, moved = self._folder(key), 0
        with self._writing(key), _translated():
            files.make_folder(folder / ARCHIVE)
            for checkpoint_id in checkpoint_ids:
                file = folder / CHECKPOINTS / f"{form.checked(checkpoint_id)}.json"
                with suppress(FileNotFoundError):  # another process was faster
                    file.rename(folder / ARCHIVE / file.name)
                    moved += 1
        return moved

    def expire(self, bucket: Bucket, before: datetime) -> int:
        """Remove what is older than that; returns how many sessions and checkpoints. Raises StoreUnavailable."""
        removed = 0
        with _translated():
            for folder in _folders(self._sessions(bucket)):
                if not _is_old(folder, before):
                    continue
                with locked(paths.bucket_lock(self._data_dir, bucket)):
                    seal_file.refuse_sealed(self._data_dir)
                    file = folder / FILE
                    if not file.exists() or _older(file, before):
                        removed += _removed(folder)
                    for old in (folder / ARCHIVE).glob("*.json"):
                        if _older(old, before):
                            old.unlink()
                            removed += 1
        return removed

    def _sessions(self, bucket: Bucket) -> Path:
        return paths.sessions_folder(self._data_dir, bucket)

    def _folder(self, key: Key) -> Path:
        return self._sessions(key.bucket) / path_parts.encode(key.thread_id)

    @contextmanager
    def _writing(self, key: Key) -> Iterator[None]:
        with (
            locked(paths.owner_lock(self._data_dir, user_hash(key.user_id)), shared=True),
            locked(paths.bucket_lock(self._data_dir, key.bucket)),
        ):
            seal_file.refuse_sealed(self._data_dir)
            yield

    def _unforgotten(self, key: Key, loaded: StoredSession) -> int:
        """The generation by now. Raises SessionForgotten, SessionChanged. The caller holds the locks."""
        is_same = document_file.hash_on_disk(self._folder(key) / FILE) == loaded.content_hash
        return form.unforgotten(key, loaded, self._tombstones.find(key.user_id), is_same=is_same)


def identities(folder: Path) -> set[str]:
    """The identities of all turns that the files of a session hold. Raises StoreUnavailable."""
    try:
        data = files.read(folder / FILE)
        state = form.parsed(data) if data is not None else {}
    except DocumentDamaged:
        return set()
    return form.identities(state, (appending.read(folder, form.lines_of(state)) or b"").splitlines())


def _added(folder: Path, old: NamedLines, lines: Sequence[bytes]) -> NamedLines:
    """Append lines, durably; where they take too much, the newest are written to a new file. Raises OSError."""
    if not lines:
        return old
    data = b"".join(line + b"\n" for line in lines)
    if old.bytes + len(data) <= MAX_LINES_BYTES:
        return appending.append(folder, old, data, durable=True) or appending.begin(folder, "lines", data, durable=True)
    every = (appending.read(folder, old) or b"") + data
    return appending.begin(folder, "lines", form.newest_lines(every), durable=True)


def _sweep(folder: Path, named: NamedLines) -> None:
    """Remove files of lines that the state does not name. One that stays is swept by the next change of file."""
    for file in folder.glob("lines-*.jsonl"):
        if file.name != named.file:
            with suppress(OSError):
                file.unlink()


def _entry(folder: Path) -> SessionEntry | None:
    try:
        data = files.read(folder / FILE)
        state = form.parsed(data) if data is not None else {}
    except DocumentDamaged:
        return None
    thread = state.get("sessionId")
    if not isinstance(thread, str):
        return None
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    saved = _time((folder / FILE).stat().st_mtime_ns)
    return SessionEntry(thread, saved, StoredSession(state, None, 0).revision, size)


def _folders(sessions: Path) -> list[Path]:
    try:
        with os.scandir(sessions) as entries:
            return [sessions / entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _removed(folder: Path) -> bool:
    if not folder.exists():
        return False
    had = (folder / FILE).exists()
    (folder / FILE).unlink(missing_ok=True)  # first, so that a crash leaves no session that has lost a part
    shutil.rmtree(folder)
    return had


def _is_old(folder: Path, before: datetime) -> bool:
    """Whether something in the folder may have to go: looked at without a lock."""
    every = (folder / FILE, *(folder / ARCHIVE).glob("*.json"))
    return any(not file.exists() or _older(file, before) for file in every)


def _older(file: Path, before: datetime) -> bool:
    with suppress(FileNotFoundError):  # removed meanwhile
        return file.stat().st_mtime < before.timestamp()
    return False


def _time(ns: int) -> str:
    return iso(datetime.fromtimestamp(ns / 1e9, UTC))


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of the file system as memd's own."""
    try:
        yield
    except OSError as error:
        raise files.unavailable(error) from None
