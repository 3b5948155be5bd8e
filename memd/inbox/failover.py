"""A server that sentinels made the primary: what has to be looked at before anything is claimed from it.

It has what was replicated until the one before went away: the functions and the keys, perhaps not the last writes. Its
memory limit, its append-only file and its accounts are its own.
"""

from __future__ import annotations

import redis

from memd.context import FUNCTIONS_VERSION
from memd.inbox.connection import Call, translate
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
