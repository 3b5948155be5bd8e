"""Ledgers in rows: which identities a bucket has taken in, by the name of their thread. They have no cap."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from psycopg import Cursor

from memd.context import Bucket, is_single, loose
from memd.memory.ledger import Ledger
from memd.memory.store.postgres.connecting import Bounded
from memd.memory.store.protocol import Identities

KNOWN = "SELECT identity FROM memd.ledger WHERE bucket = %s AND thread = %s AND identity = ANY(%s)"
ALIKE = """
SELECT %s::text WHERE EXISTS (
  SELECT FROM memd.ledger WHERE bucket = %s AND thread = %s AND identity >= %s AND identity < %s
)
"""
"""Of a single message: whether any identity begins as it does."""

ADD = """
INSERT INTO memd.ledger (bucket, thread, identity)
SELECT %s, added.thread, added.identity FROM unnest(%s::text[], %s::text[]) AS added (thread, identity)
ON CONFLICT DO NOTHING
"""
ALL = "SELECT thread, identity FROM memd.ledger WHERE bucket = %s ORDER BY place"


def asked(connection: Bounded, bucket: Bucket, identities: Identities) -> list[Cursor[tuple[Any, ...]]]:
    """The questions which of these identities a bucket knows, one for each thread and for each single message."""
    own = key_of(bucket)
    questions = []
    for thread, names in identities.items():
        questions += [connection.execute(KNOWN, [own, thread, list(names)])] if names else []
        for name in filter(is_single, names):  # after the beginning that counts comes a hex digit
            values = [name, own, thread, loose(name), f"{loose(name)}g"]
            questions.append(connection.execute(ALIKE, values))
    return questions


def known(questions: Iterable[Cursor[tuple[Any, ...]]]) -> frozenset[str]:
    """The answers to `asked`."""
    return frozenset(name for question in questions for (name,) in question.fetchall())


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
