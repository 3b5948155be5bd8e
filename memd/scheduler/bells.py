"""Bells: keeps one RQ job queued per idle worker with work to do. The inbox is the truth, a bell only a hint."""

from __future__ import annotations

import redis

from memd.config import Settings
from memd.events import Event, logger
from memd.inbox import figures
from memd.inbox.bell import bell_queue, ring
from memd.inbox.connection import connect, translate
from memd.inbox.verbs import Tick


class Bells:
    """Raises RQ's queue length to min(idle workers, ceil(waiting keys / concurrency)), and to one at least."""

    name = "bells"

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._client = client
        self._queue = bell_queue(connect(settings))
        self._refused = False
        self._concurrency = settings.drain.concurrency
        self._log = logger(duty=self.name)

    def look(self, tick: Tick) -> None:
        """Ring when keys wait for a worker. When the server refuses RQ for memory, the workers drain directly."""
        if not tick.waiting:
            return
        try:
            queued, idle = figures.bells_and_idle(self._client)
            # At least one: RQ can lose its register of workers (a deleted key, a clock that jumped past their expiry).
            missing = max(1, min(idle, -(-tick.waiting // self._concurrency))) - queued
            for _ in range(missing):
                ring(self._queue)
        except redis.OutOfMemoryError:
            if not self._refused:
                self._log.warning(Event.BELL_REFUSED, code="out_of_memory")
            self._refused = True
            return
        except redis.RedisError as error:
            translate(error, self._client)
        if missing > 0:
            self._refused = False
            self._log.debug(Event.BELL_RUNG, bells=missing, waiting=tick.waiting)
