"""A client of redis-py that keeps its connections between commands.

redis-py takes a connection from its pool for each command, looks whether it is still good, counts it and gives it back,
which costs more CPU than the command itself. Here a connection that has served a command is kept for the next one. One
that lay idle for FRESH_S goes back to the pool, which looks at it before its next use.
"""

from __future__ import annotations

import os
import time
from typing import Any, NamedTuple

import redis

FRESH_S = 1.0
"""A connection that served a command so lately needs no look. One that broke since then costs one of the retries."""

MOST = 16
"""Connections that a client keeps at once; those of more threads go through the pool."""


class _Idle(NamedTuple):
    connection: Any
    since: float
    pid: int
    """The process that opened it: a child must not write into its parent's conversation."""


class KeepingClient(redis.Redis):
    """Runs single commands over kept connections. Pipelines and blocking reads take theirs from the pool, as always.

    Only for clients that retry, and commands that may be sent twice. Thread-safe, and safe to use after a fork.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._idle: list[_Idle] = []
        super().__init__(*args, **options)

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command; its reply. Raises as redis-py's own."""
        connection = self._take()

        def attempt() -> Any:
            connection.send_command(*args, **options)
            return self.parse_response(connection, args[0], **options)  # type: ignore[no-untyped-call]  # redis-py's gap

        try:
            reply = connection.retry.call_with_retry(attempt, lambda _: connection.disconnect())
        except redis.ResponseError:  # a whole reply, too
            self._keep(connection)
            raise
        except BaseException:  # nobody knows what the server sends next
            connection.disconnect()
            self.connection_pool.release(connection)
            raise
        self._keep(connection)
        return reply

    def _take(self) -> Any:
        """A connection that is good, as far as anybody knows."""
        try:
            idle = self._idle.pop()
        except IndexError:
            return self.connection_pool.get_connection()
        if idle.pid != os.getpid():
            self._idle.clear()
            return self.connection_pool.get_connection()
        if time.monotonic() - idle.since < FRESH_S:
            return idle.connection
        self.connection_pool.release(idle.connection)
        return self.connection_pool.get_connection()

    def _keep(self, connection: Any) -> None:
        """Keep a connection, unless the pool would close it: it leads to a server that is no longer the primary."""
        pool = self.connection_pool
        if len(self._idle) < MOST and pool.owns_connection(connection) and not connection.should_reconnect():
            self._idle.append(_Idle(connection, time.monotonic(), os.getpid()))
        else:
            pool.release(connection)
