"""The store in PostgreSQL: the same promises as files, for workers and readers on several machines.

Documents are the exact bytes that the store of JSON files writes. What is asked by itself has rows of its own, written
in the same transaction: the ledger, the said layer, sessions, tombstones, reading notes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from memd.config import StoreSettings
from memd.context import Bucket, user_hash
from memd.disk.appending import NamedLines
from memd.errors import ClaimLost, ConfigError, DocumentDamaged, DocumentTooNew, StoreUnavailable, StoreUnfit
from memd.events import Event, logger
from memd.memory.document import Document, empty_document, said_file_of
from memd.memory.ledger import Ledger
from memd.memory.said.changes import SaidChange
from memd.memory.said.turns import NOTHING_SAID, Said, decode
from memd.memory.store.postgres import document_rows, ledger_rows, line_rows
from memd.memory.store.postgres.committing import Transactions, bucket_lock, owner_lock
from memd.memory.store.postgres.connecting import NO_TABLES, Bounded, Postgres
from memd.memory.store.postgres.ledger_rows import key_of
from memd.memory.store.postgres.line_rows import SAID
from memd.memory.store.postgres.moving_rows import MovedRows
from memd.memory.store.postgres.reading_note_rows import ReadingNoteRows
from memd.memory.store.postgres.session_rows import SessionRows
from memd.memory.store.postgres.tombstone_rows import TombstoneRows
from memd.memory.store.postgres.vector_rows import VectorRows, remove_gone
from memd.memory.store.protocol import NO_IDENTITIES, Erased, Identities, Loaded, Speaker, Tombstone
from memd.memory.store.secret import keyed
from memd.memory.store.vector_sets import gone

CONNECTIONS = 8
"""Connections of a process by default: as many as a worker has threads."""

ROUNDS = 10
"""How often the said layer is looked for again because a commit has just replaced it."""

PAGE = 1_000

MARKS = "SELECT bucket, revision, hash FROM memd.documents WHERE bucket = ANY(%s)"
USERS = """
(SELECT DISTINCT user_id FROM memd.documents WHERE project_id = '' AND user_id > %(after)s ORDER BY user_id LIMIT %(n)s)
UNION (SELECT DISTINCT user_id FROM memd.sessions WHERE user_id > %(after)s ORDER BY user_id LIMIT %(n)s)
UNION (SELECT DISTINCT user_id FROM memd.checkpoints WHERE user_id > %(after)s ORDER BY user_id LIMIT %(n)s)
ORDER BY user_id LIMIT %(n)s
"""
PROJECTS = """
SELECT project_id FROM memd.documents WHERE project_id <> '' AND project_id > %(after)s ORDER BY project_id LIMIT %(n)s
"""
AGENTS = """
SELECT agent_name FROM memd.documents WHERE project_id = '' AND user_id = %(user)s AND agent_name <> ''
UNION SELECT agent_name FROM memd.sessions WHERE user_id = %(user)s AND agent_name <> ''
UNION SELECT agent_name FROM memd.checkpoints WHERE user_id = %(user)s AND agent_name <> ''
"""
LATEST = "(extract(epoch FROM max(changed_at)) * 1000000000)::bigint"
CHANGED = f"SELECT {LATEST} FROM memd.documents WHERE owner = %s"  # noqa: S608  (a text of our own)
CHANGES = f"""
SELECT user_id, {LATEST} FROM memd.documents WHERE project_id = '' AND user_id <> '' GROUP BY user_id
"""  # noqa: S608  (a text of our own)
ID = "SELECT id, key FROM memd.store"
STANDBYS = """
SELECT current_setting('synchronous_standby_names') <> '', EXISTS (SELECT FROM pg_stat_replication)
"""

BUCKETS = """
SELECT bucket FROM memd.documents WHERE owner = %(owner)s
UNION SELECT bucket FROM memd.sessions WHERE owner = %(owner)s
UNION SELECT bucket FROM memd.checkpoints WHERE owner = %(owner)s
"""
HELD = """
SELECT (SELECT count(*) FROM memd.documents WHERE bucket = ANY(%(buckets)s)),
  (SELECT count(*) FROM memd.documents WHERE bucket = ANY(%(buckets)s) AND first IS NOT NULL AND second IS NOT NULL)
  + (SELECT count(DISTINCT (bucket, file)) FROM memd.said WHERE bucket = ANY(%(buckets)s))
  + (SELECT count(*) FROM memd.checkpoints WHERE bucket = ANY(%(buckets)s))
  + (SELECT count(*) FROM memd.damaged WHERE bucket = ANY(%(buckets)s)),
  (SELECT array_agg(DISTINCT identity) FROM memd.ledger WHERE bucket = ANY(%(buckets)s)),
  (SELECT string_agg(lines, '' ORDER BY bucket, file, start) FROM memd.said WHERE bucket = ANY(%(buckets)s))
"""
ERASE = tuple(
    f"DELETE FROM memd.{table} WHERE bucket = ANY(%s)"  # noqa: S608  (names of our own)
    for table in ("documents", "damaged", "ledger", "said", "vectors", "vector_sets")
)


class PostgresStore:
    """Documents as rows of a database. The data folder holds nothing of it."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        """Nothing is opened yet. Raises ConfigError for an address or options that are none."""
        if settings.url is None:
            raise ConfigError("setting store.url is missing: the address of the database, postgresql://user@host/name")
        self._shared = settings.shared
        self._postgres = Postgres.at(settings.url.reveal(), _connections(settings))
        self._transactions = Transactions(self._postgres)
        self._key = b""
        self.tombstones = TombstoneRows(self._postgres)
        self.reading_notes = ReadingNoteRows(self._postgres, shared=settings.shared)
        self.sessions = SessionRows(self._postgres, self.tombstones)
        self.vectors = VectorRows(self._postgres, self._owner)
        self.moving = MovedRows(self._postgres, self.tombstones, self.reading_notes)

    def load(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """The bucket's document without its ledger, an empty one when there is none, and which identities it knows.

        What is not the bucket's document is set aside and the previous version restored; the event log says so.
        Raises DocumentTooNew (it is left alone), StoreUnavailable, DocumentDamaged (it could not be set aside).
        """
        owner = self._owner(bucket)
        try:
            return self._postgres.run(lambda connection: self._load(connection, bucket, owner, identities))
        except DocumentTooNew:
            raise
        except DocumentDamaged as error:
            self._mend(bucket, owner, error)
        return self._postgres.run(lambda connection: self._load(connection, bucket, owner, identities))

    def _load(self, connection: Bounded, bucket: Bucket, owner: Bucket, identities: Identities) -> Loaded:
        """One round trip, or three when the user's tombstone has to be read: it is read before the document."""
        tombstone: Tombstone | None = None
        while True:
            with connection.pipeline():
                asked = None if bucket.project_id else self.tombstones.asked(connection, bucket.owner)
                found = connection.execute(document_rows.READ, [key_of(owner)])
                known = ledger_rows.asked(connection, owner, identities)
                row = asked.fetchone() if asked else None
                tombstone = tombstone or (self.tombstones.kept(bucket.owner, row[0]) if row else None)
                if row is None or tombstone is not None:
                    loaded = document_rows.loaded(found.fetchone(), owner)
                    return replace(loaded, known=ledger_rows.known(known), tombstone=tombstone)
            tombstone = self.tombstones.read(connection, bucket.owner)

    def peek(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """The bucket's document for a reader, who changes nothing: of a damaged one the previous version, or none.

        Raises DocumentTooNew, StoreUnavailable.
        """
        owner = self._owner(bucket)

        def read(connection: Bounded) -> Loaded:
            with connection.pipeline():
                found = connection.execute(document_rows.READ, [key_of(owner)])
                known = ledger_rows.asked(connection, owner, identities)
                try:
                    loaded = document_rows.loaded(found.fetchone(), owner)
                except DocumentTooNew:
                    raise
                except DocumentDamaged:
                    both = connection.execute(document_rows.READ_BOTH, [key_of(owner)]).fetchone()
                    loaded = document_rows.last_good(both, owner) or Loaded(empty_document(owner), 0, None)
                return replace(loaded, known=ledger_rows.known(known))

        return self._postgres.run(read)

    def inspect(self, bucket: Bucket) -> None:
        """Read the bucket's document and leave it as it is, whatever it holds.

        Raises DocumentDamaged with the place of what is wrong, DocumentTooNew, StoreUnavailable.
        """
        owner, place = self._owner(bucket), [key_of(self._owner(bucket))]
        document_rows.loaded(
            self._postgres.run(lambda connection: connection.execute(document_rows.READ, place).fetchone()), owner
        )

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
        """Replace what was loaded, durably and all at once, with ledger and said layer; the old version stays.

        After a removal (a tombstone more) no old version stays, and what was set aside is deleted. `still_ours` is
        asked right before the transaction; inside it are only fences of the database.
        Raises ClaimLost, Conflict, StoreUnavailable; DocumentDamaged for a document that JSON cannot express.
        """
        owner = self._owner(bucket)
        fence = speaker if bucket.project_id else Speaker(bucket.user_id, loaded.generation)
        added = document.get("ledger") or {}
        named = line_rows.with_change(loaded.document, document, said)
        new = document_rows.version(owner, fence, loaded, named)
        vanished = gone(loaded.document, document)
        locks = {owner_lock(bucket.owner, shared=True), bucket_lock(owner.hash)}
        if speaker is not None:
            locks.add(owner_lock(user_hash(speaker.user_id), shared=True))

        def ask() -> None:
            if not still_ours():
                raise ClaimLost("the claim is somebody else's by now; nothing was written")

        def work(connection: Bounded) -> Loaded:
            written = document_rows.write(connection, new)
            line_rows.write_change(connection, key_of(owner), loaded.document, named, said)
            ledger_rows.add(connection, owner, added, taken)
            remove_gone(connection, key_of(owner), vanished)
            if written.fetchone() is None:
                raise document_rows.why(connection, new, is_project=bool(bucket.project_id))
            return Loaded(new.document, new.document["revision"], new.content_hash, tombstone=loaded.tombstone)

        return self._transactions.run(locks, work, lambda connection: document_rows.landed(connection, new), ask)

    def read_ledger(self, bucket: Bucket, document: Document) -> Ledger:
        """The ledger, which has rows of its own. Raises StoreUnavailable."""
        owner = self._owner(bucket)
        return self._postgres.run(lambda connection: ledger_rows.read(connection, owner))

    def read_said(self, bucket: Bucket, document: Document, last_bytes: int | None = None) -> Said:
        """The said layer that a document names. Raises StoreUnavailable.

        It may be gone because a commit replaced it since the document was read: then the present one is read.
        """
        said, place = said_file_of(document), [key_of(self._owner(bucket))]
        for _ in range(ROUNDS):
            named = NamedLines(said.file, said.bytes)
            data = self._postgres.run(partial(SAID.read, owner=place, named=named, last=last_bytes))
            if data is not None:
                return decode(data)
            before, said = said, said_file_of(self.peek(bucket).document)
            if said == before:  # gone for good: named by a version that was restored
                break
        return NOTHING_SAID

    def sync(self, bucket: Bucket) -> None:
        """Make sure that what was read survives a failover: every commit is on this server's disk when it is seen.

        After a crash a commit can be seen that no standby has confirmed. Raises StoreUnavailable.
        """
        if self._standbys()[0]:
            self._transactions.touch()

    def probe(self, bucket: Bucket) -> None:
        """Write a row durably, and remove it. Raises StoreUnavailable."""
        self._transactions.touch()

    def marks(self, buckets: Sequence[Bucket]) -> list[Hashable]:
        """Revision and hash of each bucket's document, from the primary; None without one. Raises StoreUnavailable."""
        places = [key_of(self._owner(bucket)) for bucket in buckets]
        rows = self._postgres.run(lambda connection: connection.execute(MARKS, [places]).fetchall())
        found: dict[bytes, Hashable] = {row[0]: row[1:] for row in rows}
        return [found.get(place) for place in places]

    def sweep(self) -> int:
        """Look at the server, and remove the notes of facts that nobody finds any more: crashes leave nothing here.

        Raises StoreUnavailable, StoreUnfit for a server that loses or tears what it has acknowledged.
        """
        is_synchronous, has_standbys = self._standbys()
        if has_standbys and not is_synchronous:
            logger().warning(Event.STORE_NOT_SYNCHRONOUS)
        self.reading_notes.sweep(time.time())
        return 0

    def agents(self, user_id: str) -> list[str]:
        """The agents that have a memory of this user, sorted. Raises StoreUnavailable."""
        values = {"user": "" if self._shared else user_id}
        rows = self._postgres.run(lambda connection: connection.execute(AGENTS, values).fetchall())
        return sorted(name for (name,) in rows)

    def users(self) -> Iterator[str]:
        """The users that have a memory, by page; none with a shared store. Raises StoreUnavailable."""
        return iter(()) if self._shared else self._pages(USERS)

    def projects(self) -> Iterator[str]:
        """The projects that have a document, by page. Raises StoreUnavailable."""
        return self._pages(PROJECTS)

    def changed_ns(self, user_id: str) -> int:
        """The latest commit of the user's documents; 0 without any. Raises StoreUnavailable."""
        owner = [bytes.fromhex(user_hash(user_id))]
        row = self._postgres.run(lambda connection: connection.execute(CHANGED, owner).fetchone())
        return int(row[0] or 0) if row and not self._shared else 0

    def changes(self) -> Mapping[str, int]:
        """When each user's documents were last committed to; 0 for users of sessions alone. Raises StoreUnavailable."""
        found = dict.fromkeys(self.users(), 0)
        rows = self._postgres.run(lambda connection: connection.execute(CHANGES).fetchall())
        return found if self._shared else {**found, **dict(rows)}

    def fact_count(self, bucket: Bucket) -> int | None:
        """How many facts the bucket's document has. Raises StoreUnavailable."""
        place = [key_of(self._owner(bucket))]
        row = self._postgres.run(lambda connection: connection.execute(document_rows.READ, place).fetchone())
        return document_rows.count_of_facts(row)

    def erase(
        self,
        user_id: str,
        agent_name: str | None,
        *,
        dry_run: bool = False,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> Erased:
        """Remove an agent's memory of a user, or all documents of the user (None). Raises StoreUnavailable.

        Where all users share one store, only sessions have an owner. The rows are gone at once; their old places on
        the disk are free after the next VACUUM, and those of the log with its next checkpoint.
        """
        tries: list[Erased] = []

        def work(connection: Bounded) -> None:
            if still_wanted():
                buckets = self._buckets(connection, user_id, agent_name)
                tries.append(self._look(connection, buckets))
                for statement in ERASE:
                    connection.execute(statement, [buckets])
                self.sessions.erase(connection, buckets)

        if dry_run:
            return self._postgres.run(lambda c: self._look(c, self._buckets(c, user_id, agent_name)))
        self._transactions.run([owner_lock(user_hash(user_id))], work)
        if not tries:
            return Erased()
        # Of a try whose end was not known the identities count as well: they were there.
        most = max(tries, key=lambda erased: erased.files)
        return replace(most, identities=frozenset[str]().union(*(erased.identities for erased in tries)))

    def read_id(self) -> str | None:
        """The id of this store. Raises StoreUnavailable."""
        row = self._postgres.run(lambda connection: connection.execute(ID).fetchone())
        return row[0] if row else None

    def make_id(self) -> str:
        """The id of this store, which `memd store init` has made. Raises StoreUnavailable."""
        found = self.read_id()
        if found is None:
            raise StoreUnfit(NO_TABLES)
        return found

    def pseudonym(self, plain: str) -> str:
        """The keyed hash of a plain one, for log lines; empty while the key cannot be read. Raises nothing."""
        if not self._key:
            try:
                row = self._postgres.run(lambda connection: connection.execute(ID).fetchone())
            except StoreUnavailable:  # the event is logged all the same, without a name
                return ""
            self._key = bytes(row[1] or b"") if row else b""
        return keyed(self._key, "log", plain) if self._key else ""

    def close(self) -> None:
        """Close the connections of this process."""
        self._postgres.close()

    def _owner(self, bucket: Bucket) -> Bucket:
        """The owner of the document; with a shared store it has no user."""
        return Bucket("", bucket.agent_name) if self._shared and not bucket.project_id else bucket

    def _mend(self, bucket: Bucket, owner: Bucket, error: DocumentDamaged) -> None:
        """Set a damaged document aside, under the locks. Raises DocumentTooNew, StoreUnavailable."""
        locks = (owner_lock(bucket.owner, shared=True), bucket_lock(owner.hash))
        restored = self._transactions.run(locks, lambda connection: document_rows.mend(connection, owner))
        if restored is not None:
            name, code = self.pseudonym(owner.hash), str(error).partition(":")[0]
            logger().error(Event.DOCUMENT_DAMAGED, bucket=name, code=code, place=error.place, restored=restored)

    def _standbys(self) -> tuple[bool, bool]:
        """Whether a commit waits for standbys, and whether there are any."""
        row = self._postgres.run(lambda connection: connection.execute(STANDBYS).fetchone())
        return (bool(row[0]), bool(row[1])) if row else (False, False)

    def _pages(self, statement: str) -> Iterator[str]:
        after = ""
        while True:
            rows = self._postgres.run(partial(_all, statement=statement, values={"after": after, "n": PAGE}))
            yield from (name for (name,) in rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def _buckets(self, connection: Bounded, user_id: str, agent_name: str | None) -> list[bytes]:
        if agent_name is not None:
            return [key_of(Bucket(user_id, agent_name))]
        rows = connection.execute(BUCKETS, {"owner": bytes.fromhex(user_hash(user_id))}).fetchall()
        return [bucket for (bucket,) in rows]

    def _look(self, connection: Bounded, buckets: list[bytes]) -> Erased:
        row: Any = connection.execute(HELD, {"buckets": buckets}).fetchone()
        documents, others, taken, said = row
        sessions, turns = self.sessions.held(connection, buckets)
        told = {turn.id for turn in decode(said or b"").turns}
        return Erased(documents, documents + others + sessions, frozenset({*(taken or ()), *told, *turns}))


def _all(connection: Bounded, statement: str, values: dict[str, Any]) -> list[tuple[Any, ...]]:
    return connection.execute(statement, values).fetchall()


def _connections(settings: StoreSettings) -> int:
    given = dict(settings.options)
    connections = given.pop("connections", CONNECTIONS)
    if given or type(connections) is not int or not 1 <= connections <= 100:
        raise ConfigError("setting store.options: PostgresStore takes connections (a whole number from 1 to 100) alone")
    return connections
