"""Ledgers in rows: which identities a bucket has taken in, by the name of their thread. They have no cap."""

from __future__ import annotations

from typing import Any

from psycopg import Cursor

from memd.context import Bucket, is_single, loose
from memd.memory.ledger import Ledger
from memd.memory.store.postgres.connecting import Bounded
from memd.memory.store.protocol import Identities

KNOWN = """
SELECT asked.identity FROM unnest(%s::text[], %s::text[], %s::text[]) AS asked (thread, identity, alike)
WHERE EXISTS (
  SELECT FROM memd.ledger WHERE bucket = %s AND ledger.thread = asked.thread COLLATE "C"
    AND ledger.identity = asked.identity COLLATE "C"
) OR asked.alike IS NOT NULL AND EXISTS (
  SELECT FROM memd.ledger WHERE bucket = %s AND ledger.thread = asked.thread COLLATE "C"
    AND ledger.identity >= asked.alike COLLATE "C" AND ledger.identity < (asked.alike || 'g') COLLATE "C"
)
"""
"""`alike`: the beginning of the identities that a single message matches too; after it comes a hex digit."""

ADD = """
INSERT INTO memd.ledger (bucket, thread, identity)
SELECT %s, added.thread, added.identity FROM unnest(%s::text[], %s::text[]) AS added (thread, identity)
ON CONFLICT DO NOTHING
"""
ALL = "SELECT thread, identity FROM memd.ledger WHERE bucket = %s ORDER BY place"


def asked(connection: Bounded, bucket: Bucket, identities: Identities) -> Cursor[tuple[Any, ...]] | None:
    """The question which of these identities a bucket knows; None when none are asked for."""
    threads, names = _columns(identities)
    if not names:
        return None
    alike = [loose(name) if is_single(name) else None for name in names]
    own = key_of(bucket)
    return connection.execute(KNOWN, [threads, names, alike, own, own])


def known(question: Cursor[tuple[Any, ...]] | None) -> frozenset[str]:
    """The answer to `asked`."""
    return frozenset() if question is None else frozenset(name for (name,) in question.fetchall())


def add(connection: Bounded, bucket: Bucket, *given: Identities) -> None:
    """Take identities in; those known already stay as they are."""
    for identities in given:
        threads, names = _columns(identities)
        if names:
            connection.execute(ADD, [key_of(bucket), threads, names])


def read(connection: Bounded, bucket: Bucket) -> Ledger:
    """The whole ledger of a bucket, in the order in which it was taken in."""
    ledger: Ledger = {}
    for thread, identity in connection.execute(ALL, [key_of(bucket)]).fetchall():
        ledger.setdefault(thread, []).append(identity)
    return ledger


def key_of(bucket: Bucket) -> bytes:
    """The key of a bucket in every table."""
    return bytes.fromhex(bucket.hash)


def _columns(identities: Identities) -> tuple[list[str], list[str]]:
    pairs = [(thread, name) for thread, names in identities.items() for name in dict.fromkeys(names)]
    return [thread for thread, _ in pairs], [name for _, name in pairs]
