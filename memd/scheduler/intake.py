"""Intake: takes raw pushes in through the raw door, with a share of the time for each list."""

from __future__ import annotations

import redis

from memd.config import Settings
from memd.inbox.raw_door import RawDoor

ROUNDS_A_TICK = 2
"""After this many rounds the other duties run."""


class Intake:
    """Takes in every raw list in turn."""

    name = "intake"

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._door = RawDoor(settings, client)
        self._pause_s = settings.scheduler.tick_ms / 1000

    def tick(self) -> float:
        """Take in the pushes that are there. Returns 0 when more may be left."""
        return 0.0 if self._door.take_in(ROUNDS_A_TICK) else self._pause_s
