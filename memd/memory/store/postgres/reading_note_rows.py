"""Reading notes in rows, one for each fact that was found. They are a hint: their writes wait for no disk."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import psycopg

from memd.context import Bucket, user_hash
from memd.errors import StoreUnavailable
from memd.memory.store.postgres.committing import BEGIN
from memd.memory.store.postgres.connecting import Bounded, Postgres
from memd.memory.store.postgres.ledger_rows import key_of
from memd.memory.store.protocol import HALF_LIFE_S, Access, Accesses
from memd.memory.store.reading_notes import MAX_TOUCHED

COLD_S = 10 * HALF_LIFE_S
"""Seconds after its last access for which a fact's row is kept: its heat is a thousandth by then."""

NOTE = """
INSERT INTO memd.reading_notes AS n (bucket, owner, fact, last, count, heat)
SELECT %(bucket)s, %(owner)s, fact, %(now)s, 1, 1 FROM unnest(%(facts)s::text[]) AS fact
ON CONFLICT (bucket, fact) DO UPDATE SET
  last = greatest(n.last, %(now)s), count = n.count + 1,
  heat = 1 + n.heat * power(0.5, greatest(0, %(now)s - n.last) / %(half_life)s)
"""
READ = "SELECT fact, last, count, heat FROM memd.reading_notes WHERE bucket = %s"
READ_SOME = f"{READ} AND fact = ANY(%s)"
FORGET_ALL = "DELETE FROM memd.reading_notes WHERE owner = %s"
FORGET = "DELETE FROM memd.reading_notes WHERE bucket = %s"
PUT = """
INSERT INTO memd.reading_notes (bucket, owner, fact, last, count, heat)
SELECT %s, %s, * FROM unnest(%s::text[], %s::float8[], %s::bigint[], %s::float8[])
ON CONFLICT DO NOTHING
"""
SWEEP = "DELETE FROM memd.reading_notes WHERE last < %s"

_ID = re.compile(r"[^\s=][^\s]{0,63}")


class ReadingNoteRows:
    """The reading notes of a database (see `protocol.ReadingNotes`)."""

    def __init__(self, postgres: Postgres, *, shared: bool) -> None:
        self._postgres = postgres
        self._shared = shared

    def note(self, bucket: Bucket, fact_ids: Iterable[str], now: float) -> bool:
        """Note that these facts were found; False when the database refuses."""
        # In one order, so that of two searches neither waits for the other's end.
        facts = sorted(dict.fromkeys([fact_id for fact_id in fact_ids if _ID.fullmatch(fact_id)][:MAX_TOUCHED]))
        if not facts:
            return True
        owner = self._owner(bucket)
        values = {
            "bucket": key_of(owner),
            "owner": bytes.fromhex(owner.owner),
            "facts": facts,
            "now": float(now),
            "half_life": HALF_LIFE_S,
        }

        def work(connection: Bounded) -> None:
            with connection.pipeline():
                connection.execute(BEGIN)
                connection.execute("SET LOCAL synchronous_commit = off")
                connection.execute(NOTE, values)
                connection.execute("COMMIT")

        try:
            self._postgres.run(work)
        except (StoreUnavailable, psycopg.Error):  # the search returns its facts all the same
            return False
        return True

    def read(self, bucket: Bucket, now: float, fact_ids: Collection[str] | None = None) -> Accesses:
        """The accesses of these facts of a memory, or of all; none when the database cannot be asked."""
        values: list[Any] = [key_of(self._owner(bucket))]
        statement = READ if fact_ids is None else READ_SOME
        values += [] if fact_ids is None else [list(fact_ids)]
        try:
            rows = self._postgres.run(lambda connection: connection.execute(statement, values).fetchall())
        except StoreUnavailable:  # nobody waits for a hint
            return Accesses({}, now)
        return Accesses({fact: Access(last, count, heat) for fact, last, count, heat in rows}, now)

    def forget(self, user_id: str, agent_name: str | None) -> None:
        """Remove the notes of one agent's memory of the user, or of all of them (None). Raises StoreUnavailable."""
        if self._shared:
            return
        if agent_name is None:
            statement, own = FORGET_ALL, bytes.fromhex(user_hash(user_id))
        else:
            statement, own = FORGET, key_of(Bucket(user_id, agent_name))
        self._postgres.run(lambda connection: connection.execute(statement, [own]))

    def sweep(self, now: float) -> None:
        """Remove the notes of facts that nobody has found for long. Raises StoreUnavailable."""
        self._postgres.run(lambda connection: connection.execute(SWEEP, [now - COLD_S]))

    def put(self, bucket: Bucket, accesses: Mapping[str, Access]) -> None:
        """Make these the notes of a memory. Raises StoreUnavailable."""
        own, owner = key_of(bucket), bytes.fromhex(bucket.owner)
        columns = [
            list(accesses),
            *map(list, zip(*((a.last, a.count, a.heat) for a in accesses.values()), strict=True)),
        ]

        def work(connection: Bounded) -> None:
            with connection.pipeline():
                connection.execute(FORGET, [own])
                if accesses:
                    connection.execute(PUT, [own, owner, *columns])

        self._postgres.run(work)

    def _owner(self, bucket: Bucket) -> Bucket:
        return Bucket("", bucket.agent_name) if self._shared and not bucket.project_id else bucket
