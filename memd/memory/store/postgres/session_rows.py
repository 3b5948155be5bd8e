"""Sessions in rows: the state of each as the bytes that a session's file has, its lines, its checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import uuid4

from memd.context import Bucket, Key
from memd.disk.appending import NamedLines
from memd.errors import DocumentDamaged, DocumentTooNew
from memd.memory.store import session_format as form
from memd.memory.store.document_file import hash_of
from memd.memory.store.postgres.committing import Transactions, bucket_lock, owner_lock
from memd.memory.store.postgres.connecting import Bounded, Postgres
from memd.memory.store.postgres.ledger_rows import key_of
from memd.memory.store.postgres.line_rows import SESSION_LINES, new_name
from memd.memory.store.postgres.tombstone_rows import TombstoneRows
from memd.memory.store.sessions import MAX_LINES_BYTES, CheckpointEntry, SessionEntry, State, StoredSession
from memd.push.times import iso

T = TypeVar("T")

READ = "SELECT data FROM memd.sessions WHERE bucket = %s AND thread = %s"
HASH = "SELECT encode(hash, 'hex') FROM memd.sessions WHERE bucket = %s AND thread = %s"
LANDED = "SELECT commit_id = %s FROM memd.sessions WHERE bucket = %s AND thread = %s"
SAVE = """
INSERT INTO memd.sessions (bucket, thread, owner, user_id, agent_name, hash, commit_id, data)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (bucket, thread) DO UPDATE
SET hash = excluded.hash, commit_id = excluded.commit_id, data = excluded.data, saved_at = clock_timestamp()
"""
SET_ASIDE = "INSERT INTO memd.damaged (bucket, thread, data) VALUES (%s, %s, %s)"
ENTRIES = """
SELECT thread, data, saved_at, octet_length(data)
  + (SELECT coalesce(sum(octet_length(lines)), 0) FROM memd.session_lines AS l
     WHERE l.bucket = s.bucket AND l.thread = s.thread)
  + (SELECT coalesce(sum(octet_length(c.data)), 0) FROM memd.checkpoints AS c
     WHERE c.bucket = s.bucket AND c.thread = s.thread)
FROM memd.sessions AS s WHERE bucket = %s ORDER BY saved_at DESC
"""
PARTS = ("sessions", "session_lines", "checkpoints")
REMOVE = tuple(f"DELETE FROM memd.{part} WHERE bucket = %s AND thread = %s" for part in PARTS)  # noqa: S608
PUT_CHECKPOINT = """
INSERT INTO memd.checkpoints (bucket, thread, id, owner, user_id, agent_name, data) VALUES (%s, %s, %s, %s, %s, %s, %s)
ON CONFLICT (bucket, thread, id) DO UPDATE
SET data = excluded.data, made_at = clock_timestamp(), archived = false
"""
CHECKPOINTS = """
SELECT id, made_at FROM memd.checkpoints WHERE bucket = %s AND thread = %s AND NOT archived ORDER BY made_at, id
"""
CHECKPOINT = "SELECT data FROM memd.checkpoints WHERE bucket = %s AND thread = %s AND id = %s"
ARCHIVE = """
UPDATE memd.checkpoints SET archived = true
WHERE bucket = %s AND thread = %s AND id = ANY(%s) AND NOT archived RETURNING id
"""
OLD = "SELECT thread FROM memd.sessions WHERE bucket = %s AND saved_at < %s"
EXPIRE_ARCHIVE = """
DELETE FROM memd.checkpoints AS c WHERE bucket = %s AND (
  archived AND made_at < %s
  OR NOT EXISTS (SELECT FROM memd.sessions AS s WHERE s.bucket = c.bucket AND s.thread = c.thread)
) RETURNING archived AND made_at < %s
"""
HELD = "SELECT bucket, thread, data FROM memd.sessions WHERE bucket = ANY(%s)"
ERASE = tuple(f"DELETE FROM memd.{part} WHERE bucket = ANY(%s)" for part in PARTS)  # noqa: S608


class SessionRows:
    """The sessions of a database (see `sessions.Sessions`)."""

    def __init__(self, postgres: Postgres, tombstones: TombstoneRows) -> None:
        self._postgres = postgres
        self._transactions = Transactions(postgres)
        self._tombstones = tombstones

    def load(self, key: Key) -> StoredSession:
        """The session of a key; what is none is set aside. Raises DocumentTooNew, StoreUnavailable."""
        tombstone = self._tombstones.find(key.user_id)
        generation = tombstone.generation if tombstone else 0
        row = self._postgres.run(lambda connection: connection.execute(READ, _place(key)).fetchone())
        if row is None:
            return StoredSession(None, None, generation)
        try:
            return StoredSession(form.state_of(row[0], key), hash_of(row[0]), generation)
        except DocumentTooNew:
            raise
        except DocumentDamaged:
            self._set_aside(key, row[0])
        return StoredSession(None, None, generation)

    def save(self, key: Key, loaded: StoredSession, state: State, lines: Sequence[bytes] = ()) -> StoredSession:
        """Replace what was loaded and add lines.

        Raises SessionChanged, SessionForgotten, Rejected, StoreUnavailable.
        """
        name, old = uuid4(), form.lines_of(loaded.state)
        added = b"".join(line + b"\n" for line in lines)
        is_full = old.bytes + len(added) > MAX_LINES_BYTES

        def work(connection: Bounded) -> StoredSession:
            generation = self._unforgotten(connection, key, loaded)
            named, data = old, added
            if added and (is_full or not old.file):
                before = SESSION_LINES.read(connection, _place(key), old) or b"" if is_full else b""
                named, data = NamedLines(new_name("lines"), 0), before + added
                data = form.newest_lines(data) if is_full else data
            full = form.saved(state, loaded, NamedLines(named.file, named.bytes + len(data)))
            stored = form.serialised(full)
            content_hash = hash_of(stored)
            values = [*_place(key), *_owner(key), bytes.fromhex(content_hash), name, stored]
            connection.execute(SAVE, values)
            if data:
                SESSION_LINES.append(connection, _place(key), named, data)
            if named.file != old.file:
                SESSION_LINES.remove_others(connection, _place(key), named.file)
            return StoredSession(full, content_hash, generation)

        def landed(connection: Bounded) -> bool:
            row = connection.execute(LANDED, [name, *_place(key)]).fetchone()
            return row is not None and bool(row[0])

        return self._write(key.bucket, work, landed)

    def lines(self, key: Key, loaded: StoredSession) -> Iterator[bytes]:
        """The lines of the session, oldest first. Raises StoreUnavailable."""
        named = form.lines_of(loaded.state)
        data = self._postgres.run(lambda connection: SESSION_LINES.read(connection, _place(key), named))
        yield from (data or b"").splitlines()

    def entries(self, bucket: Bucket) -> list[SessionEntry]:
        """The sessions of a bucket, the one saved last first. Raises StoreUnavailable."""
        rows = self._postgres.run(lambda connection: connection.execute(ENTRIES, [key_of(bucket)]).fetchall())
        return [
            SessionEntry(thread, _time(saved_at), StoredSession(state, None, 0).revision, int(size))
            for thread, data, saved_at, size in rows
            if (state := _readable(data)) is not None
        ]

    def remove(self, key: Key) -> bool:
        """Remove a session with all that belongs to it; whether there was one. Raises StoreUnavailable."""
        return self._write(key.bucket, lambda connection: _removed(connection, _place(key)))

    def put_checkpoint(self, key: Key, loaded: StoredSession, checkpoint_id: str, state: State) -> None:
        """Write a checkpoint. Raises SessionForgotten, Rejected, StoreUnavailable."""
        data = form.serialised({**state, "version": form.VERSION})
        values = [*_place(key), form.checked(checkpoint_id), *_owner(key), data]

        def work(connection: Bounded) -> None:
            self._unforgotten(connection, key, loaded)
            connection.execute(PUT_CHECKPOINT, values)

        self._write(key.bucket, work)

    def checkpoints(self, key: Key) -> list[CheckpointEntry]:
        """The checkpoints of a session, oldest first. Raises StoreUnavailable."""
        rows = self._postgres.run(lambda connection: connection.execute(CHECKPOINTS, _place(key)).fetchall())
        return [CheckpointEntry(name, _time(made_at)) for name, made_at in rows]

    def checkpoint(self, key: Key, checkpoint_id: str) -> State | None:
        """The state of a checkpoint. Raises DocumentDamaged, StoreUnavailable."""
        values = [*_place(key), form.checked(checkpoint_id)]
        row = self._postgres.run(lambda connection: connection.execute(CHECKPOINT, values).fetchone())
        return None if row is None else form.parsed(row[0])

    def archive(self, key: Key, checkpoint_ids: Sequence[str]) -> int:
        """Move checkpoints to the archive. Raises StoreUnavailable."""
        values = [*_place(key), list(map(form.checked, checkpoint_ids))]
        return self._write(key.bucket, lambda connection: len(connection.execute(ARCHIVE, values).fetchall()))

    def expire(self, bucket: Bucket, before: datetime) -> int:
        """Remove what is older than that; returns how many sessions and checkpoints. Raises StoreUnavailable."""
        own = key_of(bucket)

        def work(connection: Bounded) -> int:
            old = connection.execute(OLD, [own, before]).fetchall()
            removed = sum(_removed(connection, [own, thread]) for (thread,) in old)
            rest = connection.execute(EXPIRE_ARCHIVE, [own, before, before]).fetchall()
            return removed + sum(bool(counts) for (counts,) in rest)

        return self._write(bucket, work)

    def held(self, connection: Bounded, buckets: Sequence[bytes]) -> tuple[int, set[str]]:
        """How many sessions buckets have, and the identities of all turns in them."""
        found: set[str] = set()
        rows = connection.execute(HELD, [buckets]).fetchall()
        for bucket, thread, data in rows:
            state = _readable(data)
            if state is not None:
                lines = SESSION_LINES.read(connection, [bucket, thread], form.lines_of(state))
                found |= form.identities(state, (lines or b"").splitlines())
        return len(rows), found

    def erase(self, connection: Bounded, buckets: Sequence[bytes]) -> None:
        """Remove all sessions of these buckets."""
        for statement in ERASE:
            connection.execute(statement, [buckets])

    def _unforgotten(self, connection: Bounded, key: Key, loaded: StoredSession) -> int:
        row = connection.execute(HASH, _place(key)).fetchone()
        is_same = (row[0] if row else None) == loaded.content_hash
        return form.unforgotten(key, loaded, self._tombstones.find(key.user_id), is_same=is_same)

    def _set_aside(self, key: Key, data: bytes) -> None:
        def work(connection: Bounded) -> None:
            row = connection.execute(READ, _place(key)).fetchone()
            if row is not None and row[0] == data:
                connection.execute(SET_ASIDE, [*_place(key), data])
                connection.execute(REMOVE[0], _place(key))

        self._write(key.bucket, work)

    def _write(
        self, bucket: Bucket, work: Callable[[Bounded], T], landed: Callable[[Bounded], bool] = lambda _: False
    ) -> T:
        locks = (owner_lock(bucket.owner, shared=True), bucket_lock(bucket.hash))
        return self._transactions.run(locks, work, landed)


def _place(key: Key) -> list[Any]:
    return [key_of(key.bucket), key.thread_id]


def _owner(key: Key) -> list[Any]:
    return [bytes.fromhex(key.bucket.owner), key.user_id, key.agent_name]


def _removed(connection: Bounded, place: Sequence[Any]) -> bool:
    session, *others = REMOVE
    had = connection.execute(f"{session} RETURNING thread", place).fetchone() is not None
    for statement in others:
        connection.execute(statement, place)
    return had


def _readable(data: bytes) -> State | None:
    try:
        state = form.parsed(data)
    except DocumentDamaged:
        return None
    return state if isinstance(state.get("sessionId"), str) else None


def _time(moment: datetime) -> str:
    return iso(moment.astimezone(UTC))
