"""The store memd ships: one JSON file for each bucket, read by anyone at any time, replaced atomically under locks."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from memd.config import Settings, StoreSettings, dotted
from memd.context import DEFAULT_AGENT, Bucket, user_hash
from memd.disk import files, mounts, path_parts
from memd.disk.lock import locked
from memd.errors import ClaimLost, ConfigError, Conflict, DocumentDamaged, DocumentTooNew, StoreUnavailable
from memd.events import Event, logger
from memd.memory import ledger
from memd.memory.document import Document, empty_document, facts_of, ledger_of, said_file_of
from memd.memory.parsing import fact_count, parse
from memd.memory.said.changes import SaidChange
from memd.memory.said.turns import NOTHING_SAID, Said, decode
from memd.memory.store import damage, document_file, erase, paths, said_file, seal_file, tombstone_names, vector_file
from memd.memory.store.moving_files import MovedFiles
from memd.memory.store.named_folders import agent_of_folder, folders_in, project_of_folder, user_of_folder
from memd.memory.store.protocol import NO_IDENTITIES, Entry, Erased, Identities, Loaded, Speaker, Store
from memd.memory.store.reading_notes import ReadingNoteFiles
from memd.memory.store.secret import keyed
from memd.memory.store.session_files import SessionFiles
from memd.memory.store.tombstone import TombstoneFiles
from memd.memory.store.user_changes import UserChanges, mark_change
from memd.memory.store.vector_file import VectorFiles

ROUNDS = 10
"""How often the said layer is looked for again because a commit has just replaced its file."""

NETWORK = (
    "setting store.network: the data folder is on a network file system ({}), whose locks may not lock between "
    "machines: keep memories in PostgreSQL (docs/operations.md), or set store.network to true when you know they do"
)


def open_store(settings: Settings) -> Store:
    """The store that `store.class` names. Raises ConfigError when the class cannot be loaded or is not a store."""
    store = dotted.make("store.class", settings.store.class_, settings.data_dir, settings.store)
    if not isinstance(store, Store):
        raise ConfigError("setting store.class: the class named there is not a store")
    return store


class JsonStore:
    """Documents as files below `data_dir`. Reading needs no lock: a replaced file stays whole for its readers."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        """Raises ConfigError for options and an address, as this store has none, and for a network file system."""
        if settings.url:
            raise ConfigError("setting store.url: the store of JSON files has none; is store.class missing?")
        if settings.options:
            raise ConfigError("setting store.options: the store of JSON files takes none; they are for your own store")
        if not settings.network and (kind := mounts.network_kind(data_dir)):
            raise ConfigError(NETWORK.format(kind))
        self._data_dir = data_dir
        self._shared = settings.shared
        self._key = tombstone_names.store_key(data_dir)
        self._changes = UserChanges(data_dir)
        self._named: dict[str, str] = {}
        """The users by path part, as of the last list: of a hashed part only a document has the id."""

        self.tombstones = TombstoneFiles(data_dir)
        self.reading_notes = ReadingNoteFiles(data_dir, shared=settings.shared)
        self.sessions = SessionFiles(data_dir, self.tombstones)
        self.vectors = VectorFiles(data_dir, self.tombstones, self._owner, self._file, self._read)
        self.moving = MovedFiles(data_dir, self.tombstones, self.reading_notes)

    def load(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """The bucket's document, an empty one when there is none, and which of `identities` its ledger has.

        A file that is not the bucket's document is set aside and the previous version restored; the event log says so.
        Raises DocumentTooNew (the file is left alone), StoreUnavailable, DocumentDamaged (it could not be set aside).
        """
        tombstone = None if bucket.project_id else self.tombstones.find(bucket.user_id)
        loaded = self._read_or_mend(self._owner(bucket))
        known = ledger.known(loaded.document["ledger"], identities) if identities else frozenset[str]()
        return replace(loaded, known=known, tombstone=tombstone)

    def _read_or_mend(self, owner: Bucket) -> Loaded:
        try:
            return self._read(owner)
        except DocumentTooNew:
            raise
        except DocumentDamaged:  # looked at again under the lock, where nobody else is mending or writing
            with locked(paths.bucket_lock(self._data_dir, owner)):
                return self._mend(owner)

    def peek(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """The bucket's document for a reader, who changes nothing: of a damaged one the previous version, or none.

        The file may be half written by an editor at this moment; only a writer sets it aside, under the lock.
        Raises DocumentTooNew, StoreUnavailable.
        """
        owner = self._owner(bucket)
        for name in (paths.FILE, paths.PREVIOUS):
            try:
                loaded = self._read(owner, name)
                return replace(loaded, known=ledger.known(loaded.document["ledger"], identities))
            except DocumentTooNew:
                raise
            except DocumentDamaged:
                continue
        return Loaded(empty_document(owner), 0, None)

    def inspect(self, bucket: Bucket) -> None:
        """Read the bucket's file and leave it as it is, whatever it holds.

        Raises DocumentDamaged with the place of what is wrong, DocumentTooNew, StoreUnavailable.
        """
        self._read(self._owner(bucket))

    def commit(
        self,
        bucket: Bucket,
        loaded: Loaded,
        document: Document,
        still_ours: Callable[[], bool],
        taken: Identities = NO_IDENTITIES,
        said: SaidChange | None = None,
        speaker: Speaker | None = None,
    ) -> Loaded:
        """Replace what was loaded, durably and all at once; the old version is kept as `memory.prev.json`.

        After a removal (a tombstone more) no old version is kept: `memory.prev.json` is a copy of the new one, and the
        damaged files that were set aside are deleted.
        Raises ClaimLost, Conflict, StoreUnavailable; DocumentDamaged for a document that JSON cannot express. Each
        time the old document is intact and the temp file gone.
        """
        owner, owner_lock = self._owner(bucket), paths.owner_lock(self._data_dir, bucket.owner)
        with (
            self._speaking(speaker),
            locked(owner_lock, shared=True),
            locked(paths.bucket_lock(self._data_dir, owner)),
        ):
            seal_file.refuse_sealed(self._data_dir)
            if not still_ours():
                raise ClaimLost("the claim is somebody else's by now; nothing was written")
            if not bucket.project_id and self.tombstones.generation(bucket.user_id) != loaded.generation:
                raise Conflict("the user had something forgotten since the document was loaded; nothing was written")
            self._check_folders(owner)
            file = self._file(owner)
            if document_file.hash_on_disk(file) != loaded.content_hash:
                raise Conflict("the document changed since it was loaded; nothing was written")
            document = said_file.write(file.parent, loaded.document, document, said)
            data = document_file.serialised(document)
            vector_file.remove_gone(file, loaded.document, document)
            document_file.replace(file, loaded.document, document, data)
            mark_change(owner_lock)
            if said_file_of(document).file != said_file_of(loaded.document).file:
                said_file.sweep(file.parent, document)
        return Loaded(document, document["revision"], document_file.hash_of(data), tombstone=loaded.tombstone)

    @contextmanager
    def _speaking(self, speaker: Speaker | None) -> Iterator[None]:
        """Hold the owner's lock of a speaker. Raises ClaimLost when anything of theirs was forgotten since."""
        if speaker is None:
            yield
            return
        with locked(paths.owner_lock(self._data_dir, user_hash(speaker.user_id)), shared=True):
            if self.tombstones.generation(speaker.user_id) != speaker.generation:
                raise ClaimLost("the speaker had something forgotten meanwhile; nothing was written")
            yield

    def read_ledger(self, bucket: Bucket, document: Document) -> ledger.Ledger:
        """The ledger, which is in the document."""
        return ledger_of(document)

    def read_said(self, bucket: Bucket, document: Document, last_bytes: int | None = None) -> Said:
        """The said layer that a document names. Raises StoreUnavailable.

        The file may be gone because a commit replaced it since the document was read: then the present one is read.
        """
        folder = self._file(self._owner(bucket)).parent
        said = said_file_of(document)
        for _ in range(ROUNDS):
            data = said_file.read(folder, said, last_bytes)
            if data is not None:
                return decode(data)
            before, said = said, said_file_of(self.peek(bucket).document)
            if said == before:  # gone for good: removed by hand, or named by a version that was restored
                break
        return NOTHING_SAID

    def sweep_said(self, bucket: Bucket) -> int:
        """Remove said files that killed commits left and no document names. Raises StoreUnavailable."""
        owner = self._owner(bucket)
        folder = self._file(owner).parent
        try:
            present = {file.name for file in said_file.present(folder)}
        except OSError as error:
            raise files.unavailable(error) from None
        if present <= {said_file_of(self.peek(bucket).document).file}:
            return 0
        with locked(paths.bucket_lock(self._data_dir, owner)):
            seal_file.refuse_sealed(self._data_dir)
            try:
                return said_file.sweep(folder, self._read(owner).document)
            except (DocumentDamaged, DocumentTooNew):  # nobody knows what it names
                return 0

    def sync(self, bucket: Bucket) -> None:
        """Make the bucket's file durable when another process renamed it and died before the fsync of the folder.

        Raises StoreUnavailable.
        """
        folder = self._file(self._owner(bucket)).parent
        try:
            files.sync_folder(folder)
        except FileNotFoundError:  # no document, nothing to lose
            return
        except OSError as error:
            raise files.unavailable(error) from None

    def probe(self, bucket: Bucket) -> None:
        """Write and sync a temporary file without a name in the bucket's folder. Raises StoreUnavailable."""
        seal_file.refuse_sealed(self._data_dir)
        files.probe(self._file(self._owner(bucket)).parent)

    def marks(self, buckets: Sequence[Bucket]) -> list[Hashable]:
        """Inode, times and size of each bucket's file; None when there is none. Raises StoreUnavailable."""
        return list(map(self._mark, buckets))

    def _mark(self, bucket: Bucket) -> Hashable:
        try:
            status = os.lstat(self._file(self._owner(bucket)))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise files.unavailable(error) from None
        return status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size

    def agents(self, user_id: str) -> list[str]:
        """The agents that have a memory of this user, sorted. Raises StoreUnavailable."""
        folder = paths.agents_folder(self._data_dir, user_id, shared=self._shared)
        return sorted(name for part in folders_in(folder) if (name := agent_of_folder(folder / part)) is not None)

    def users(self) -> Iterator[str]:
        """The users that have a folder of their own, in no order; none with a shared store. Raises StoreUnavailable."""
        folder = paths.users_folder(self._data_dir)
        named: dict[str, str] = {}
        for part in folders_in(folder) if not self._shared else ():
            user_id = self._named.get(part) or user_of_folder(folder, part)
            if user_id is not None:
                named[part] = user_id
                yield user_id
        self._named = named

    def projects(self) -> Iterator[str]:
        """The projects that have a folder, in no order. Raises StoreUnavailable."""
        folder = paths.projects_folder(self._data_dir)
        for part in folders_in(folder):
            project_id = project_of_folder(folder / part)
            if project_id is not None:
                yield project_id

    def changed_ns(self, user_id: str) -> int:
        """The latest time of the files of the user's documents; 0 without any. Raises StoreUnavailable."""
        if self._shared:
            return 0
        # Joined as texts: ten thousand users take a quarter of the time that paths take.
        own = f"{paths.users_folder(self._data_dir)}/{path_parts.encode(user_id)}"
        agents = f"{own}/{paths.AGENTS}"
        folders = (own, *(f"{agents}/{part}" for part in folders_in(agents)))
        return max(_written_ns(f"{folder}/{paths.FILE}") for folder in folders)

    def changes(self) -> dict[str, int]:
        """All users with `changed_ns`; quick when asked again. Raises StoreUnavailable."""
        return self._changes.of(self.users(), self.changed_ns)

    def fact_count(self, bucket: Bucket) -> int | None:
        """How many facts the bucket's file has, mostly without a check of what they are. Raises StoreUnavailable."""
        try:
            data = self._data(self._owner(bucket))
            counted = 0 if data is None else fact_count(data)
            return len(facts_of(self.peek(bucket).document)) if counted is None else counted
        except DocumentDamaged:
            return None

    def sweep(self, older_than_s: float = 600.0) -> int:
        """Remove temp files that crashes left behind; returns how many. It walks all folders: once at a start.

        The next commit of a bucket removes its temp file too, so this is for buckets that are never written again.
        Raises StoreUnavailable.
        """
        oldest = time.time() - older_than_s
        removed = 0
        try:
            for temp in self._data_dir.glob("**/*.tmp"):
                if not (temp.match(paths.ANY_TEMP) or temp.name == paths.VECTORS_TEMP):
                    continue
                with suppress(FileNotFoundError):  # renamed by its commit just now
                    if temp.lstat().st_mtime < oldest:
                        temp.unlink()
                        removed += 1
            for trash in paths.trash_folders(self._data_dir):  # left by a forgetting that was killed in its last step
                shutil.rmtree(trash, ignore_errors=True)
                removed += 1
        except OSError as error:
            raise files.unavailable(error) from None
        return removed

    def entries(self) -> Iterator[Entry]:
        """The files and folders of the store, in no order; what a commit removes meanwhile is left out."""
        for top in paths.OWN_FOLDERS:
            for folder, folders, names in os.walk(self._data_dir / top):
                for name in (*folders, *names):
                    path = Path(folder, name)
                    try:
                        yield Entry(path, path.lstat(), _leftover(name))
                    except FileNotFoundError:  # a commit replaced or removed it since it was listed
                        continue

    def read_id(self) -> str | None:
        """The text of `store.id`; None when there is no such file. Raises StoreUnavailable, DocumentDamaged."""
        data = files.read(self._data_dir / paths.ID)
        return None if data is None else data.decode(errors="replace").strip()

    def make_id(self) -> str:
        """The text of `store.id`, which is written durably when it is missing. Raises StoreUnavailable."""
        file = self._data_dir / paths.ID
        with locked(paths.id_lock(self._data_dir)):
            known = self.read_id()
            if known is None:
                known = os.urandom(16).hex()
                files.replace(file, f"{known}\n".encode(), file.with_suffix(".tmp"))
        return known

    def pseudonym(self, plain: str) -> str:
        """The keyed hash of a plain one, for log lines; empty while `store.key` cannot be read. Raises nothing."""
        try:
            return keyed(self._key.get(), "log", plain)
        except (StoreUnavailable, DocumentDamaged):  # the event is logged all the same, without a name
            return ""

    def erase(
        self,
        user_id: str,
        agent_name: str | None,
        *,
        dry_run: bool = False,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> Erased:
        """Remove an agent's memory of a user, or all documents of the user (None). Raises StoreUnavailable.

        Where all users share one store, a user's own folder holds sessions alone.
        """
        whole = agent_name is None
        bucket = Bucket(user_id, agent_name or DEFAULT_AGENT)
        self._check_folders(bucket)
        folder = paths.folder(self._data_dir, bucket, shared=False)
        if dry_run:
            return erase.look(folder, whole=whole)
        with locked(paths.owner_lock(self._data_dir, user_hash(user_id))):  # commits hold it shared
            seal_file.refuse_sealed(self._data_dir)
            if not still_wanted():
                return Erased()
            agents = ["", *self.agents(user_id)] if agent_name is None else [agent_name]
            locks = [paths.bucket_lock(self._data_dir, Bucket(user_id, agent)) for agent in agents]
            return erase.erase(folder, paths.trash_folder(self._data_dir), locks, whole=whole)

    def close(self) -> None:
        """Nothing stays open."""

    def _owner(self, bucket: Bucket) -> Bucket:
        """The owner of the document; with a shared store it has no user."""
        return Bucket("", bucket.agent_name) if self._shared and not bucket.project_id else bucket

    def _file(self, owner: Bucket) -> Path:
        return paths.folder(self._data_dir, owner, shared=self._shared) / paths.FILE

    def _data(self, owner: Bucket, name: str = paths.FILE) -> bytes | None:
        self._check_folders(owner)
        file = self._file(owner).with_name(name)
        return files.read(file, sibling=file.with_name(paths.PREVIOUS if name == paths.FILE else paths.FILE))

    def _read(self, owner: Bucket, name: str = paths.FILE) -> Loaded:
        data = self._data(owner, name)
        if data is None:
            return Loaded(empty_document(owner), 0, None)
        document = parse(data, owner)
        return Loaded(document, document["revision"], document_file.hash_of(data))

    def _check_folders(self, owner: Bucket) -> None:
        """Refuse a folder that is a link: what is behind it is not in this store, and no forgetting would reach it."""
        bottom = paths.folder(self._data_dir, owner, shared=self._shared)
        is_top = owner.project_id or owner.agent_name == DEFAULT_AGENT  # else: the user's, and that of their agents
        between = [bottom] if is_top else [bottom, bottom.parent, bottom.parent.parent]
        try:
            linked = any(folder.is_symlink() for folder in between)
        except OSError as error:
            raise files.unavailable(error) from None
        if linked:
            raise StoreUnavailable("E_STORE_LINK: a user's or an agent's folder is a link; put the folder itself there")

    def _mend(self, owner: Bucket) -> Loaded:
        """Read once more, under the lock; a document that is still damaged is set aside."""
        try:
            return self._read(owner)
        except DocumentTooNew:
            raise
        except DocumentDamaged as error:
            seal_file.refuse_sealed(self._data_dir)
            code, place = str(error).partition(":")[0], error.place
        restored = damage.mend(self._file(owner), lambda data: parse(data, owner))
        name = self.pseudonym(owner.hash)
        logger().error(Event.DOCUMENT_DAMAGED, bucket=name, code=code, place=place, restored=restored)
        return self._read(owner)


def _leftover(name: str) -> Literal["", "temp", "damaged"]:
    if name in {paths.TEMP, paths.VECTORS_TEMP}:
        return "temp"
    return "damaged" if name.startswith(paths.ASIDE) else ""


def _written_ns(file: str) -> int:
    try:
        return os.lstat(file).st_mtime_ns
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise files.unavailable(error) from None
