"""Clients of redis-py that keep their connections between commands.

redis-py takes a connection from its pool for each command, looks whether it is still good, counts it and gives it back,
which costs more CPU than the command itself. Here a connection that has served a command is kept for the next one. One
that lay idle for FRESH_S goes back to the pool, which looks at it before its next use.
"""

from __future__ import annotations

import os
import time
from typing import Any

import redis
import redis.asyncio

FRESH_S = 1.0
"""A connection that served a command so lately needs no look. One that broke since then costs one of the retries."""

MOST = 16
"""Connections that a client keeps at once; those of more threads go through the pool."""


class _Kept:
    """The idle connections of a client, the one used last in front. Thread-safe."""

    def __init__(self) -> None:
        self._idle: list[tuple[Any, float, int]] = []

    def take(self, pool: Any) -> tuple[Any, bool]:
        """A connection, and whether it is good as far as anybody knows; otherwise it belongs to the pool. None: no one.

        A child must not write into its parent's conversation, nor anybody to a server that is no longer the primary.
        """
        try:
            connection, since, process = self._idle.pop()
        except IndexError:
            return None, False
        if process != os.getpid():
            self._idle.clear()
            return None, False
        primary = getattr(pool, "master_address", None)
        leads_there = primary is None or primary == (connection.host, connection.port)
        return connection, leads_there and time.monotonic() - since < FRESH_S and not connection.should_reconnect()

    def keep(self, connection: Any) -> bool:
        """Keep a connection after a whole reply. False: there are enough."""
        if len(self._idle) >= MOST:
            return False
        self._idle.append((connection, time.monotonic(), os.getpid()))
        return True


class KeepingClient(redis.Redis):
    """Runs single commands over kept connections. Pipelines take theirs from the pool, as always.

    Only for clients that retry, and commands that may be sent twice. Thread-safe, and safe to use after a fork.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._kept = _Kept()
        super().__init__(*args, **options)

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command; its reply. Raises as redis-py's own."""
        pool = self.connection_pool
        connection, good = self._kept.take(pool)
        if not good:
            if connection is not None:
                pool.release(connection)
            connection = pool.get_connection()

        def attempt() -> Any:
            connection.send_command(*args, **options)
            return self.parse_response(connection, args[0], **options)  # type: ignore[no-untyped-call]  # redis-py's gap

        whole = False
        try:
            reply = connection.retry.call_with_retry(attempt, lambda _: connection.disconnect())
            whole = True
        except redis.ResponseError:
            whole = True
            raise
        finally:
            if not whole:  # nobody knows what the server sends next
                connection.disconnect()
            if not whole or not self._kept.keep(connection):
                pool.release(connection)
        return reply


class AsyncKeepingClient(redis.asyncio.Redis):
    """The same for coroutines of one event loop."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self._kept = _Kept()
        super().__init__(*args, **options)

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Send a command; its reply. Raises as redis-py's own."""
        pool = self.connection_pool
        connection, good = self._kept.take(pool)
        if not good:
            if connection is not None:
                await pool.release(connection)
            connection = await pool.get_connection()  # type: ignore[no-untyped-call]  # redis-py's gap

        async def attempt() -> Any:
            await connection.send_command(*args)
            return await self.parse_response(connection, args[0], **options)

        whole = False
        try:
            reply = await connection.retry.call_with_retry(attempt, lambda _: connection.disconnect())
            whole = True
        except redis.ResponseError:
            whole = True
            raise
        finally:
            if not whole:
                await connection.disconnect(nowait=True)
            if not whole or not self._kept.keep(connection):
                await pool.release(connection)
        return reply
