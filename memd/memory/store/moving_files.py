"""Moving the content of a data folder (see `moving.Moving`)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from memd.context import DEFAULT_AGENT, Bucket, Key, of_project
from memd.disk import appending, files, path_parts
from memd.disk.lock import locked
from memd.errors import DocumentDamaged
from memd.memory.document import said_file_of
from memd.memory.parsing import parse
from memd.memory.store import paths, said_file, seal_file, session_files
from memd.memory.store import session_format as form
from memd.memory.store.moving import MovedCheckpoint, MovedMemory, MovedSession, Seal
from memd.memory.store.named_folders import agent_of_folder, folders_in, project_of_folder, user_of_folder
from memd.memory.store.protocol import Access, Tombstone
from memd.memory.store.reading_notes import ReadingNoteFiles
from memd.memory.store.tombstone import TombstoneFiles

PLACES = ((session_files.CHECKPOINTS, False), (session_files.ARCHIVE, True))
"""The folders of checkpoints, and whether they are the archive's."""


class MovedFiles:
    """The content of a data folder. What a killed `put` leaves differs from the source, and is written again."""

    def __init__(self, data_dir: Path, tombstones: TombstoneFiles, reading_notes: ReadingNoteFiles) -> None:
        self._data_dir = data_dir
        self._tombstones = tombstones
        self._reading_notes = reading_notes

    def buckets(self) -> Iterator[Bucket]:
        """Everything that has a document or a session: shared memories, users, projects. Raises StoreUnavailable."""
        users = paths.users_folder(self._data_dir)
        named = ((part, user_of_folder(users, part)) for part in folders_in(users))
        for user_id, folder in (
            ("", self._data_dir / paths.SHARED),
            *((user_id, users / part) for part, user_id in named if user_id is not None),
        ):
            agents = folder / paths.AGENTS
            names = (agent_of_folder(agents / part) for part in folders_in(agents))
            for agent_name in (DEFAULT_AGENT, *(name for name in names if name is not None)):
                bucket = Bucket(user_id, agent_name)
                if self._holds(bucket):
                    yield bucket
        projects = paths.projects_folder(self._data_dir)
        ids = (project_of_folder(projects / part) for part in folders_in(projects))
        yield from (bucket for one in ids if one is not None and self._holds(bucket := of_project(one)))

    def threads(self, bucket: Bucket) -> list[str]:
        """The threads of a bucket, by the names of their folders, or by what is in them. Raises StoreUnavailable."""
        folder = self._sessions(bucket)
        return sorted(name for part in folders_in(folder) if (name := _thread_of(folder / part)) is not None)

    def memory(self, bucket: Bucket) -> MovedMemory | None:
        """The files of a document, read under its lock. Raises StoreUnavailable, DocumentDamaged, DocumentTooNew."""
        file = self._folder(bucket) / paths.FILE
        previous = file.with_name(paths.PREVIOUS)
        with locked(paths.bucket_lock(self._data_dir, bucket)), _translated():
            data = files.read(file, sibling=previous)
            if data is None:
                return None
            said = said_file.read(file.parent, said_file_of(parse(data, bucket)))
            before = _good(previous, file, bucket)
            return MovedMemory(data, before, said or b"", file.lstat().st_mtime_ns // 1000)

    def put_memory(self, bucket: Bucket, memory: MovedMemory | None) -> None:
        """Write the files of a document, the document last; without one remove whatever is left."""
        file = self._folder(bucket) / paths.FILE
        previous = file.with_name(paths.PREVIOUS)
        with locked(paths.bucket_lock(self._data_dir, bucket)), _translated():
            if memory is None:
                self._remove(file.parent)
                return
            document = parse(memory.document, bucket)
            named = said_file_of(document)
            file.with_name(paths.VECTORS).unlink(missing_ok=True)  # of another document; they are made anew
            if memory.said:
                files.replace(file.with_name(named.file), memory.said, file.with_name(paths.TEMP))
            if memory.previous is None:
                previous.unlink(missing_ok=True)
            else:
                files.replace(previous, memory.previous, file.with_name(paths.TEMP))
            files.replace(file, memory.document, file.with_name(paths.TEMP))
            _date(file, memory.changed_us)
            said_file.sweep(file.parent, document)
            for aside in file.parent.glob(f"{paths.ASIDE}*"):  # damaged once, and none of the other store's
                aside.unlink()

    def session(self, key: Key) -> MovedSession | None:
        """The files of a session, read under its bucket's lock. Raises StoreUnavailable, DocumentDamaged."""
        folder = self._sessions(key.bucket) / path_parts.encode(key.thread_id)
        with locked(paths.bucket_lock(self._data_dir, key.bucket)), _translated():
            checkpoints = tuple(_checkpoints(folder))
            file = folder / session_files.FILE
            state = files.read(file)
            if state is None:
                return MovedSession(None, b"", checkpoints, 0) if checkpoints else None
            lines = appending.read(folder, form.lines_of(form.parsed(state)))
            return MovedSession(state, lines or b"", checkpoints, file.stat().st_mtime_ns // 1000)

    def put_session(self, key: Key, session: MovedSession | None) -> None:
        """Write the files of a session anew, its state last; without one remove them."""
        folder = self._sessions(key.bucket) / path_parts.encode(key.thread_id)
        with locked(paths.bucket_lock(self._data_dir, key.bucket)), _translated():
            if folder.exists():
                shutil.rmtree(folder)
            if session is None:
                self._remove_empty(folder.parent)
                return
            for checkpoint in session.checkpoints:
                place = folder / (session_files.ARCHIVE if checkpoint.archived else session_files.CHECKPOINTS)
                _write(place / f"{form.checked(checkpoint.id)}.json", checkpoint.data, checkpoint.made_us)
            if session.state is None:
                return
            if session.lines:
                _write(folder / form.lines_of(form.parsed(session.state)).file, session.lines, session.saved_us)
            _write(folder / session_files.FILE, session.state, session.saved_us)

    def put_tombstone(self, owner: str, tombstone: Tombstone | None) -> None:
        """Write the files of a tombstone. Raises StoreUnavailable."""
        self._tombstones.put(owner, tombstone)

    def put_notes(self, bucket: Bucket, accesses: Mapping[str, Access]) -> None:
        """Write the file of reading notes. Raises StoreUnavailable."""
        self._reading_notes.put(bucket, accesses)

    def seal(self) -> Seal | None:
        """What `store.sealed` says. Raises StoreUnavailable."""
        return seal_file.read_seal(self._data_dir)

    def set_seal(self, seal: Seal | None) -> None:
        """Write `store.sealed`, or remove it. Raises StoreUnavailable."""
        seal_file.write_seal(self._data_dir, seal)

    def _folder(self, bucket: Bucket) -> Path:
        return paths.folder(self._data_dir, bucket, shared=not bucket.user_id)

    def _sessions(self, bucket: Bucket) -> Path:
        return self._folder(bucket) / paths.SESSIONS

    def _holds(self, bucket: Bucket) -> bool:
        """Whether there is anything, also what a kill has left without its document."""
        try:
            return any(one.name != paths.AGENTS for one in self._folder(bucket).iterdir())
        except FileNotFoundError:
            return False
        except OSError as error:
            raise files.unavailable(error) from None

    def _remove(self, folder: Path) -> None:
        """Remove all but sessions and agents: the document, old versions, what was set aside, what was said."""
        if not folder.exists():
            return
        for file in folder.iterdir():
            if file.name not in (paths.SESSIONS, paths.AGENTS):
                shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()
        self._remove_empty(folder)

    def _remove_empty(self, folder: Path) -> None:
        """Remove folders that hold nothing any more: their names tell ids."""
        tops = {paths.users_folder(self._data_dir), paths.projects_folder(self._data_dir), self._data_dir}
        while folder not in tops and folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
            files.sync_folder(folder.parent)
            folder = folder.parent


def _good(previous: Path, file: Path, bucket: Bucket) -> bytes | None:
    """The version before; None when there is none that could ever be restored."""
    try:
        data = files.read(previous, sibling=file)
        if data is not None:
            parse(data, bucket)
    except DocumentDamaged:
        return None
    return data


def _thread_of(folder: Path) -> str | None:
    if not folder.name.startswith("~"):
        return path_parts.decode(folder.name)
    try:
        data = files.read(folder / session_files.FILE)
        thread = form.parsed(data).get("sessionId") if data is not None else None
    except DocumentDamaged:
        return None
    return thread if isinstance(thread, str) and path_parts.encode(thread) == folder.name else None


def _checkpoints(folder: Path) -> Iterator[MovedCheckpoint]:
    """All checkpoints of a session, by id; of two of one id the one that is found first by who asks for it."""
    found: dict[str, MovedCheckpoint] = {}
    for place, archived in PLACES:
        for file in (folder / place).glob("*.json"):
            data = files.read(file)
            if data is not None:
                made_us = file.stat().st_mtime_ns // 1000
                found.setdefault(file.stem, MovedCheckpoint(file.stem, data, made_us, archived))
    yield from (found[name] for name in sorted(found))


def _write(file: Path, data: bytes, at_us: int) -> None:
    files.replace(file, data, file.with_name(f"{file.name}.tmp"))
    _date(file, at_us)


def _date(file: Path, at_us: int) -> None:
    os.utime(file, ns=(at_us * 1000, at_us * 1000))


@contextmanager
def _translated() -> Iterator[None]:
    """Errors of the file system as memd's own."""
    try:
        yield
    except OSError as error:
        raise files.unavailable(error) from None
