"""Forgetting a user on the server: removes the keys, mirrors the tombstone, rewrites the append-only file."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import redis

from memd.inbox.connection import Call, execute
from memd.inbox.decoding import text
from memd.inbox.verbs import P


@dataclass(frozen=True, slots=True)
class Traces:
    """A page of what the inbox holds of a user: the cursor of the next one, pushes under way, and identities."""

    cursor: str
    pushes: int
    identities: frozenset[str]


def traces(owner: str, bucket: str, cursor: str, *, remove: bool) -> Call[Traces]:
    """Look at one page of a user's keys, of one bucket or of all (""); with `remove` they are gone afterwards."""

    def parse(reply: list[Any]) -> Traces:
        after, pushes, *identities = reply
        return Traces(text(after), int(pushes), frozenset(map(text, identities)))

    name = "memd_forget_1" if remove else "memd_traces_1"
    return Call(("FCALL", name, 1, P, owner, bucket, cursor), parse)


def tombstone(owner: str, salt: str, hashes: Iterable[str]) -> Call[int]:
    """Mirror a user's tombstone: pushes of what it names are skipped as forgotten."""
    return Call(("FCALL", "memd_tombstone_1", 1, P, owner, salt, *hashes), int)


def unmirrored(client: redis.Redis, owners: Sequence[str]) -> list[str]:
    """Of these users those whose tombstone this server does not have."""
    pipeline = client.pipeline(transaction=False)
    for owner in owners:
        pipeline.exists(f"{P}:forgotten:{owner}")
    return [owner for owner, there in zip(owners, execute(pipeline), strict=True) if not there]


def rewrite(client: redis.Redis, timeout_s: float) -> bool:
    """Have a server of our own write its append-only file anew, without what is gone; False: not within the time."""
    until = time.monotonic() + timeout_s
    try:
        client.bgrewriteaof()
        while time.monotonic() < until:
            info = client.info("persistence")
            if not (info.get("aof_rewrite_in_progress") or info.get("aof_rewrite_scheduled")):
                return info.get("aof_last_bgrewrite_status") == "ok"
            time.sleep(0.02)
    except redis.RedisError:  # one is running already, or the server went away: the caller says that the text is there
        return False
    return False
