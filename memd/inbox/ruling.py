"""Which scheduler's settings the inbox goes by: one set at a time.

Every scheduler beats once a second, in a field of `{memd}:config`. One that starts with other settings than the inbox's
waits for a beat: when there is one, another scheduler is alive, and the new one ends unless it was told to take over.
One that finds the inbox's settings changed has been taken over, and ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import redis

from memd.config import Settings
from memd.errors import OtherSettings
from memd.inbox import library
from memd.inbox.connection import translate
from memd.inbox.verbs import P

SILENT_S = 3.0
"""Seconds without a beat after which no other scheduler is alive; three times the pause between two beats."""

LOOK_S = 0.1

RIVAL = (
    "E_OTHER_SETTINGS: a scheduler with other settings runs on this inbox (they differ in {}): give all of them "
    "the same settings, or start this one with --take-over, which ends the other"
)
TAKEN_OVER = (
    "E_OTHER_SETTINGS: a scheduler with other settings has taken this inbox over (they differ in {}): give this "
    "one the same settings"
)


def beat(client: redis.Redis, settings: Settings) -> None:
    """Say that a scheduler with these settings is alive. Raises OtherSettings when another one has taken over."""
    if names := library.differing(client, settings):
        raise OtherSettings(TAKEN_OVER.format(", ".join(names)))
    try:
        client.hincrby(f"{P}:config", "beat", 1)
    except redis.OutOfMemoryError:  # it only says less: the scheduler goes on draining
        return
    except redis.RedisError as error:
        translate(error, client)


def step_down(client: redis.Redis) -> None:
    """Say that this scheduler ends; another one with the same settings says in its next beat that it does not."""
    try:
        client.hdel(f"{P}:config", "beat")
    except redis.RedisError as error:
        translate(error, client)


def require_no_rival(client: redis.Redis, settings: Settings, is_stopping: Callable[[], bool]) -> None:
    """Wait until nobody with other settings is alive, SILENT_S at most. Raises OtherSettings when somebody is."""
    names = library.differing(client, settings)
    first = _beats(client) if names else None
    if first is None:
        return
    until = time.monotonic() + SILENT_S
    while time.monotonic() < until and not is_stopping():
        time.sleep(LOOK_S)
        if _beats(client) not in (first, None):
            raise OtherSettings(RIVAL.format(", ".join(names)))


def _beats(client: redis.Redis) -> bytes | str | None:
    try:
        return client.hget(f"{P}:config", "beat")
    except redis.RedisError as error:
        translate(error, client)
