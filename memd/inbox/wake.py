"""The scheduler's sleep: until a push wakes it, or until a moment known to the millisecond, whichever is first."""

from __future__ import annotations

import time
from typing import Any

import redis

from memd.config import Settings
from memd.inbox import verbs
from memd.inbox.connection import connect

BLOCK_S = 0
"""BLPOP without a time-out: the server rounds time-outs up to its own timer (100 ms), so the clock is ours."""


class WakeList:
    """Waits on the `wake` list over a connection of its own; its BLPOP stays in flight between two sleeps."""

    def __init__(self, settings: Settings) -> None:
        self._pool = connect(settings, retries=0).connection_pool
        self._connection: Any = None

    def wait(self, seconds: float) -> bool:
        """Sleep at most `seconds`; returns True when woken. Without a server it just sleeps: the duties report that."""
        if seconds <= 0:
            return False
        until = time.monotonic() + seconds
        try:
            if self._connection is None:
                self._connection = self._pool.get_connection()
                self._connection.send_command("BLPOP", verbs.WAKE, BLOCK_S)
            if not self._connection.can_read(timeout=seconds):
                return False
            self._connection.read_response()
            self._connection.send_command("BLPOP", verbs.WAKE, BLOCK_S)
        except (redis.RedisError, OSError):  # nothing is in hand; the next sleep opens a new connection
            self._drop()
            time.sleep(max(0.0, until - time.monotonic()))
            return False
        return True

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.disconnect()
            self._pool.release(self._connection)
            self._connection = None
