"""The contents of the inbox as a backup keeps them: contexts with their messages, and dead letters.

They are read while contexts move. A context and its claim are read in one step, so no message is between the two; the
dead are read before the contexts and once more behind them, as letters come and go. What is read twice is one when it
comes back: messages are merged by identity, letters by their id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import redis

from memd.context import FUNCTIONS_VERSION
from memd.inbox.connection import Call, execute_past, send
from memd.inbox.decoding import text
from memd.inbox.scanning import pages_of
from memd.inbox.verbs import P

KEYS = 25
"""Keys that one call reads; one may have some megabytes of messages."""

LETTERS = 100

BYTES = "latin-1"
"""How bytes become text of JSON and back, whatever they are: a letter may have any."""


@dataclass(frozen=True, slots=True)
class KeptRecord:
    """A context or a claim of a key (`letter` is empty), or a dead letter, with the fields that the server has.

    `seq`, `gen`: the last number of the key's receipts, and their generation.
    """

    letter: str
    key: str
    seq: str
    gen: str
    fields: dict[bytes, bytes]

    def text(self, field: str) -> str:
        """A field as text; empty without it."""
        return self.fields.get(field.encode(), b"").decode(errors="replace")

    def line(self) -> bytes:
        """The line of a file."""
        fields = [[name.decode(BYTES), value.decode(BYTES)] for name, value in self.fields.items()]
        row = {"letter": self.letter, "key": self.key, "seq": self.seq, "gen": self.gen, "fields": fields}
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


def of_line(line: bytes) -> KeptRecord:
    """What a line of `KeptRecord.line` keeps. Raises ValueError, KeyError, TypeError."""
    row: dict[str, Any] = orjson.loads(line)
    fields = {name.encode(BYTES): value.encode(BYTES) for name, value in row["fields"]}
    return KeptRecord(row["letter"], row["key"], row["seq"], row["gen"], fields)


def read(client: redis.Redis) -> Iterator[KeptRecord]:
    """Everything that has not ended, and the dead. Raises InboxUnavailable, NotReady."""
    known = set[str]()
    yield from _letters(client, known)
    for names in pages_of(client, f"{P}:outcome:*"):
        for start in range(0, len(names), KEYS):
            keys = [name.rpartition(":")[2] for name in names[start : start + KEYS]]
            yield from send(client, Call(("FCALL", f"memd_contents_{FUNCTIONS_VERSION}", 1, P, *keys), _contexts))
    yield from _letters(client, known)


def _contexts(rows: list[Any]) -> list[KeptRecord]:
    return [
        KeptRecord("", text(key), text(seq), text(gen), dict(zip(flat[::2], flat[1::2], strict=True)))
        for key, seq, gen, flat in rows
    ]


def _letters(client: redis.Redis, known: set[str]) -> Iterator[KeptRecord]:
    """The letters that are not known yet."""
    pipeline = client.pipeline(transaction=False)
    pipeline.zrange(f"{P}:dead", 0, -1)
    ids = [name for name in map(text, execute_past(pipeline)[0] or ()) if name not in known]
    for start in range(0, len(ids), LETTERS):
        part = ids[start : start + LETTERS]
        pipeline = client.pipeline(transaction=False)
        for letter in part:
            pipeline.hgetall(f"{P}:dead:{letter}")
        for letter, fields in zip(part, execute_past(pipeline), strict=True):
            if fields:  # else it was retried or dropped just now
                known.add(letter)
                yield KeptRecord(letter, text(fields.get(b".key", b"")), "", "", fields)


def restore(client: redis.Redis, kept: KeptRecord) -> int:
    """Bring a context or a letter back; returns how many messages are pending again, or 1 for a letter.

    What was forgotten, or is there already, does not come twice. Raises InboxUnavailable.
    """
    flat = [part for pair in kept.fields.items() for part in pair]
    name, place = (
        ("memd_restore_letter", [kept.letter]) if kept.letter else ("memd_restore", [kept.key, kept.seq, kept.gen])
    )
    return send(client, Call(("FCALL", f"{name}_{FUNCTIONS_VERSION}", 1, P, *place, *flat), int))


def unsettle(client: redis.Redis, since_ms: int) -> int:
    """Drop how keys have ended since then, and which messages were taken in; returns how many keys these were.

    For a store that is one of that time again. Raises InboxUnavailable.
    """
    return sum(_unsettled(client, names, since_ms) for names in pages_of(client, f"{P}:outcome:*"))


def _unsettled(client: redis.Redis, names: Sequence[str], since_ms: int) -> int:
    keys: Iterable[str] = (name.rpartition(":")[2] for name in names)
    return send(client, Call(("FCALL", f"memd_unsettle_{FUNCTIONS_VERSION}", 1, P, since_ms, *keys), int))
