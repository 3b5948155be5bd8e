"""A server that sentinels made the primary: what has to be looked at before anything is claimed from it.

It has what was replicated until the one before went away: the functions and the keys, perhaps not the last writes. Its
memory limit, its append-only file and its accounts are its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis

from memd.context import FUNCTIONS_VERSION
from memd.inbox.connection import Call, send, translate
from memd.inbox.decoding import text
from memd.inbox.verbs import P


def is_another(client: redis.Redis) -> bool:
    """Whether another server than the one adopted last is the primary. Raises InboxUnavailable."""
    try:
        known = client.hget(f"{P}:config", "run_id")
        here = client.info("server")["run_id"]
    except redis.RedisError as error:
        translate(error, client)
    return known is None or text(known) != here


def adopt() -> Call[int]:
    """Let this server be claimed from: every lease begins anew, by its clock. Returns how many there are."""
    return Call(("FCALL", f"memd_adopt_{FUNCTIONS_VERSION}", 1, P), int)


def strike(client: redis.Redis, owners: Iterable[str]) -> int:
    """Remove pending messages that the tombstones of these users (hashes) name; returns how many. Raises as `send`."""
    return sum(_strike(client, owner) for owner in owners)


def _strike(client: redis.Redis, owner: str) -> int:
    struck, cursor = 0, "0"
    while True:
        call = Call(("FCALL", f"memd_strike_{FUNCTIONS_VERSION}", 1, P, owner, cursor), _page)
        cursor, count = send(client, call)
        struck += count
        if cursor == "0":
            return struck


def _page(reply: list[Any]) -> tuple[str, int]:
    cursor, count = reply
    return text(cursor), int(count)
