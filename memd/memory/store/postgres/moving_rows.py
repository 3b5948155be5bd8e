"""Moving the content of a database (see `moving.Moving`): rows become the bytes of files, and files become rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson

from memd.context import Bucket, Key
from memd.disk.appending import NamedLines
from memd.errors import DocumentDamaged
from memd.memory.document import ledger_of, revision_of, said_file_of
from memd.memory.ledger import Ledger
from memd.memory.parsing import parse
from memd.memory.store import session_format as form
from memd.memory.store.document_file import hash_of, serialised
from memd.memory.store.moving import MovedCheckpoint, MovedMemory, MovedSession, Seal
from memd.memory.store.postgres import ledger_rows
from memd.memory.store.postgres.committing import Transactions, bucket_lock, store_lock
from memd.memory.store.postgres.connecting import Bounded, Postgres
from memd.memory.store.postgres.ledger_rows import key_of
from memd.memory.store.postgres.line_rows import SAID, SESSION_LINES
from memd.memory.store.postgres.reading_note_rows import ReadingNoteRows
from memd.memory.store.postgres.tombstone_rows import TombstoneRows
from memd.memory.store.protocol import Access, Tombstone

PAGE = 1_000
BOM = b"\xef\xbb\xbf"
BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

NAMES = """
(SELECT user_id, agent_name FROM memd.documents
 WHERE project_id = '' AND (user_id, agent_name) >= (%(user)s, %(agent)s) ORDER BY user_id, agent_name LIMIT %(n)s)
UNION (SELECT user_id, agent_name FROM memd.sessions
 WHERE (user_id, agent_name) >= (%(user)s, %(agent)s) ORDER BY user_id, agent_name LIMIT %(n)s)
UNION (SELECT user_id, agent_name FROM memd.checkpoints
 WHERE (user_id, agent_name) >= (%(user)s, %(agent)s) ORDER BY user_id, agent_name LIMIT %(n)s)
ORDER BY user_id, agent_name LIMIT %(n)s
"""
PROJECTS = """
SELECT project_id FROM memd.documents WHERE project_id <> '' AND project_id > %s ORDER BY project_id LIMIT %s
"""
THREADS = """
SELECT thread FROM memd.sessions WHERE bucket = %(bucket)s
UNION SELECT thread FROM memd.checkpoints WHERE bucket = %(bucket)s ORDER BY thread
"""

READ = """
SELECT CASE latest WHEN 1 THEN first ELSE second END, encode(hash, 'hex'),
  CASE latest WHEN 1 THEN second ELSE first END, before_is_file, changed_at
FROM memd.documents WHERE bucket = %s
"""
PUT = """
INSERT INTO memd.documents (bucket, owner, user_id, agent_name, project_id, revision, hash, commit_id, latest,
  first, second, before_is_file, changed_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 1, %s, %s, true, %s)
ON CONFLICT (bucket) DO UPDATE SET revision = excluded.revision, hash = excluded.hash,
  commit_id = excluded.commit_id, latest = 1, first = excluded.first, second = excluded.second, before_is_file = true,
  changed_at = excluded.changed_at
"""
REMOVE = tuple(
    f"DELETE FROM memd.{table} WHERE bucket = %s"  # noqa: S608  (names of our own)
    for table in ("documents", "damaged", "ledger", "said", "vectors", "vector_sets")
)
EMPTY = REMOVE[1:]

READ_SESSION = "SELECT data, saved_at FROM memd.sessions WHERE bucket = %s AND thread = %s"
READ_CHECKPOINTS = """
SELECT id, data, made_at, archived FROM memd.checkpoints WHERE bucket = %s AND thread = %s ORDER BY id
"""
PUT_SESSION = """
INSERT INTO memd.sessions (bucket, thread, owner, user_id, agent_name, hash, commit_id, data, saved_at)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
PUT_CHECKPOINT = """
INSERT INTO memd.checkpoints (bucket, thread, owner, user_id, agent_name, id, data, made_at, archived)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
REMOVE_SESSION = tuple(
    f"DELETE FROM memd.{table} WHERE bucket = %s AND thread = %s"  # noqa: S608  (names of our own)
    for table in ("sessions", "session_lines", "checkpoints")
)

SEAL = "SELECT role, other FROM memd.seals"
UNSEAL = "DELETE FROM memd.seals"
PUT_SEAL = "INSERT INTO memd.seals (role, other) VALUES (%s, %s)"


class MovedRows:
    """The content of a database."""

    def __init__(self, postgres: Postgres, tombstones: TombstoneRows, reading_notes: ReadingNoteRows) -> None:
        self._postgres = postgres
        self._transactions = Transactions(postgres)
        self._tombstones = tombstones
        self._reading_notes = reading_notes

    def buckets(self) -> Iterator[Bucket]:
        """Everything that has a document or a session, by page. Raises StoreUnavailable."""
        last: tuple[str, str] | None = None
        while True:
            user_id, agent_name = last or ("", "")
            rows = self._all(NAMES, {"user": user_id, "agent": agent_name, "n": PAGE + 1})
            yield from (Bucket(*row) for row in rows if row != last)
            if len(rows) <= PAGE:
                break
            last = rows[-1]
        after = ""
        while True:
            rows = self._all(PROJECTS, [after, PAGE])
            yield from (Bucket("", "", project_id) for (project_id,) in rows)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def threads(self, bucket: Bucket) -> list[str]:
        """The threads of a bucket. Raises StoreUnavailable."""
        return [thread for (thread,) in self._all(THREADS, {"bucket": key_of(bucket)})]

    def memory(self, bucket: Bucket) -> MovedMemory | None:
        """The document of a bucket, as its file would be. Raises StoreUnavailable, DocumentDamaged, DocumentTooNew."""
        own = key_of(bucket)

        def read(connection: Bounded) -> MovedMemory | None:
            row = connection.execute(READ, [own]).fetchone()
            if row is None:
                return None
            data, content_hash, previous, is_file, changed_at = row
            if data is None or hash_of(data) != content_hash:
                raise DocumentDamaged("E_DOCUMENT_HASH: a memory document is not what was written")
            said = said_file_of(parse(data, bucket))
            lines = SAID.read(connection, [own], NamedLines(said.file, said.bytes))
            ledger = ledger_rows.read(connection, bucket)
            before = _good(previous, {} if is_file else ledger, bucket)
            return MovedMemory(_with_ledger(data, ledger), before, lines or b"", _us(changed_at))

        return self._postgres.steadily(read)

    def put_memory(self, bucket: Bucket, memory: MovedMemory | None) -> None:
        """Write the rows of a document; without one remove whatever is left."""
        own = key_of(bucket)
        if memory is None:
            self._write(bucket, lambda connection: _execute(connection, REMOVE, [own]))
            return
        document = parse(memory.document, bucket)
        named, ledger = said_file_of(document), ledger_of(document)
        data = _without_ledger(memory.document, ledger)
        values = [
            own, bytes.fromhex(bucket.owner), bucket.user_id, bucket.agent_name, bucket.project_id,
            revision_of(document), bytes.fromhex(hash_of(data)), uuid4(), data, memory.previous,
            _moment(memory.changed_us),
        ]  # fmt: skip

        def work(connection: Bounded) -> None:
            _execute(connection, EMPTY, [own])
            connection.execute(PUT, values)
            ledger_rows.add(connection, bucket, ledger)
            if memory.said:
                SAID.append(connection, [own], NamedLines(named.file), memory.said)

        self._write(bucket, work)

    def session(self, key: Key) -> MovedSession | None:
        """The session of a key. Raises StoreUnavailable, DocumentDamaged."""
        place = [key_of(key.bucket), key.thread_id]

        def read(connection: Bounded) -> MovedSession | None:
            row = connection.execute(READ_SESSION, place).fetchone()
            rows = connection.execute(READ_CHECKPOINTS, place).fetchall()
            checkpoints = tuple(MovedCheckpoint(name, data, _us(at), archived) for name, data, at, archived in rows)
            if row is None:
                return MovedSession(None, b"", checkpoints, 0) if checkpoints else None
            lines = SESSION_LINES.read(connection, place, form.lines_of(form.parsed(row[0])))
            return MovedSession(row[0], lines or b"", checkpoints, _us(row[1]))

        return self._postgres.steadily(read)

    def put_session(self, key: Key, session: MovedSession | None) -> None:
        """Write the rows of a session anew; without one remove them."""
        bucket = key.bucket
        place = [key_of(bucket), key.thread_id]
        owner = [bytes.fromhex(bucket.owner), key.user_id, key.agent_name]

        def work(connection: Bounded) -> None:
            _execute(connection, REMOVE_SESSION, place)
            if session is None:
                return
            for name, data, made_us, archived in session.checkpoints:
                values = [*place, *owner, form.checked(name), data, _moment(made_us), archived]
                connection.execute(PUT_CHECKPOINT, values)
            if session.state is not None:
                content_hash = bytes.fromhex(hash_of(session.state))
                values = [*place, *owner, content_hash, uuid4(), session.state, _moment(session.saved_us)]
                connection.execute(PUT_SESSION, values)
                if session.lines:
                    named = form.lines_of(form.parsed(session.state))
                    SESSION_LINES.append(connection, place, NamedLines(named.file), session.lines)

        self._write(bucket, work)

    def put_tombstone(self, owner: str, tombstone: Tombstone | None) -> None:
        """Write the row of a tombstone. Raises StoreUnavailable."""
        self._tombstones.put(owner, tombstone)

    def put_notes(self, bucket: Bucket, accesses: Mapping[str, Access]) -> None:
        """Write the rows of reading notes. Raises StoreUnavailable."""
        self._reading_notes.put(bucket, accesses)

    def seal(self) -> Seal | None:
        """The seal, if there is one. Raises StoreUnavailable."""
        rows = self._all(SEAL, [])
        return Seal(*rows[0]) if rows else None

    def set_seal(self, seal: Seal | None) -> None:
        """Write the seal, or remove it, while nobody writes. Raises StoreUnavailable."""

        def work(connection: Bounded) -> None:
            connection.execute(UNSEAL)
            if seal is not None:
                connection.execute(PUT_SEAL, list(seal))

        self._transactions.run([store_lock()], work, although_sealed=True)

    def _write(self, bucket: Bucket, work: Any) -> None:
        self._transactions.run([bucket_lock(bucket.hash)], work, although_sealed=True)

    def _all(self, statement: str, values: Any) -> list[tuple[Any, ...]]:
        return self._postgres.run(lambda connection: connection.execute(statement, values).fetchall())


def _execute(connection: Bounded, statements: Sequence[str], values: Sequence[Any]) -> None:
    for statement in statements:
        connection.execute(statement, values)


def _good(previous: bytes | None, ledger: Ledger, bucket: Bucket) -> bytes | None:
    """The version before, as its file would be; None when there is none that could ever be restored."""
    try:
        if previous is not None:
            parse(previous, bucket)
            return _with_ledger(previous, ledger)
    except DocumentDamaged:
        pass
    return None


def _with_ledger(data: bytes, ledger: Ledger) -> bytes:
    """The bytes of a file: with the ledger inside, unless it is there already."""
    if not ledger:
        return data
    document = orjson.loads(data.removeprefix(BOM))
    return data if document.get("ledger") else serialised({**document, "ledger": ledger})


def _without_ledger(data: bytes, ledger: Ledger) -> bytes:
    """The bytes of a row: without the ledger. What a person edited, so that it would not come back, stays as it is."""
    if not ledger:
        return data
    bare = serialised({**orjson.loads(data.removeprefix(BOM)), "ledger": {}})
    taken_in = {thread: list(dict.fromkeys(names)) for thread, names in ledger.items() if names}
    return bare if _with_ledger(bare, taken_in) == data else data


def _us(moment: datetime) -> int:
    return (moment - BEGINNING) // timedelta(microseconds=1)


def _moment(us: int) -> datetime:
    return BEGINNING + timedelta(microseconds=us)
