"""Forgetting a user on the server: removes the keys, mirrors the tombstone, rewrites the append-only file."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
import redis

from memd.inbox.connection import Call, execute, execute_past, send
from memd.inbox.decoding import text
from memd.inbox.scanning import pages_of
from memd.inbox.verbs import P
from memd.memory.store.protocol import Cut, Tombstone
from memd.memory.store.tombstone_format import wished_of

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Traces:
    """One page of a user's keys: the next cursor, the pushes in flight, and their message identities."""

    cursor: str
    pushes: int
    identities: frozenset[str]


def cut() -> Call[Cut]:
    """Read the cut of a wish that is made now."""
    return Call(("FCALL", "memd_cut_1", 1, P), lambda reply: Cut(int(reply[1]), int(reply[0])))


def traces(owner: str, bucket: str, cursor: str, cut: Cut | None, *, remove: bool) -> Call[Traces]:
    """Read what a cut takes of one page of a user's keys, of one bucket or of all (""); `remove`: and delete it."""

    def parse(reply: list[Any]) -> Traces:
        after, pushes, *identities = reply
        return Traces(text(after), int(pushes), frozenset(map(text, identities)))

    name = "memd_forget_1" if remove else "memd_traces_1"
    return Call(("FCALL", name, 1, P, owner, bucket, cursor, _text(cut)), parse)


def letters(ids: Sequence[str], cut: Cut | None, *, remove: bool) -> Call[tuple[int, frozenset[str]]]:
    """Count the dead letters that a cut takes whole, and read the identities it takes; `remove`: and delete them."""

    def parse(reply: list[Any]) -> tuple[int, frozenset[str]]:
        count, *identities = reply
        return int(count), frozenset(map(text, identities))

    name = "memd_forget_letters_1" if remove else "memd_old_letters_1"
    return Call(("FCALL", name, 1, P, _text(cut), *ids), parse)


def strike(client: redis.Redis, owner: str) -> int:
    """Remove pending and claimed messages that a user's tombstone names; returns how many. Raises as `send`."""
    struck, cursor = 0, "0"
    while True:
        call = Call(("FCALL", "memd_strike_1", 1, P, owner, cursor), _page)
        cursor, count = send(client, call)
        struck += count
        if cursor == "0":
            return struck


def _page(reply: list[Any]) -> tuple[str, int]:
    cursor, count = reply
    return text(cursor), int(count)


def strike_letters(owner: str, ids: Sequence[str]) -> Call[int]:
    """Remove the messages that a user's tombstone names from these dead letters."""
    return Call(("FCALL", "memd_strike_letters_1", 1, P, owner, *ids), int)


def _text(cut: Cut | None) -> str:
    return "" if cut is None else f"{'-' if cut.order is None else cut.order} {cut.ms}"


def tombstone(mirrored: Tombstone) -> Call[int]:
    """Mirror a user's tombstone: pushes of the messages it names are skipped as forgotten."""
    wished = orjson.dumps([list(one) for one in mirrored.wished]).decode()
    fields = (f".generation={mirrored.generation}", f".wished={wished}")
    return Call(("FCALL", "memd_tombstone_1", 1, P, mirrored.owner, mirrored.salt, *fields, *mirrored.hashes), int)


def mirrors(client: redis.Redis) -> Iterator[Tombstone]:
    """All tombstones as this server has them; their `older` hashes are nowhere but in the store."""
    for page in pages_of(client, f"{P}:forgotten:*"):
        pipeline = client.pipeline(transaction=False)
        for name in page:
            pipeline.hgetall(name)
        for name, fields in zip(page, execute_past(pipeline), strict=True):
            if fields:
                yield _mirror(name.rpartition(":")[2], {text(field): text(value) for field, value in fields.items()})


def _mirror(owner: str, fields: dict[str, str]) -> Tombstone:
    hashes = frozenset(field for field in fields if not field.startswith("."))
    wished = wished_of(orjson.loads(fields.get(".wished", "[]")))
    # Builds before 28 mirror no generation. It is older than any then, and has no wishes.
    generation = int(fields.get(".generation", 1))
    return Tombstone(owner, generation, fields.get(".salt", ""), hashes, wished=wished)


def unmirrored(client: redis.Redis, owners: Sequence[str]) -> list[str]:
    """The users (hashes) whose tombstone this server lacks."""
    pipeline = client.pipeline(transaction=False)
    for owner in owners:
        pipeline.exists(f"{P}:forgotten:{owner}")
    return [owner for owner, mirrored in zip(owners, execute(pipeline), strict=True) if not mirrored]


def knows(client: redis.Redis, owner: str) -> bool:
    """Whether the inbox has a key of this user (hash), or what the user's calls cost in these two days."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.exists(f"{P}:user:{owner}")
    (seconds, _), keys = execute(pipeline)
    today = seconds // DAY_S
    for day in (today - 1, today):
        pipeline.hexists(f"{P}:spent:{day}", owner)
    return bool(keys) or any(execute(pipeline))


def rewrite(client: redis.Redis, timeout_s: float) -> bool:
    """Have the embedded server rewrite its append-only file without deleted data; False: failed or timed out."""
    until = time.monotonic() + timeout_s
    try:
        client.bgrewriteaof()
        while time.monotonic() < until:
            info = client.info("persistence")
            if not (info.get("aof_rewrite_in_progress") or info.get("aof_rewrite_scheduled")):
                return info.get("aof_last_bgrewrite_status") == "ok"
            time.sleep(0.02)
    except redis.RedisError:  # one is already running, or the server is gone: the caller reports that the text remains
        return False
    return False
