"""Connections that are kept between commands: one for a row of commands, none that may hold another command's reply."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from support import execute, wait_for

from memd.config import Settings
from memd.inbox.connection import connect, connect_async, inbox_url
from memd.inbox.kept_connections import MOST, KeepingClient


@pytest.fixture
def kept(settings: Settings) -> Iterator[redis.Redis]:
    """A client that keeps its connections."""
    with connect(settings) as client:
        assert isinstance(client, KeepingClient)
        yield client


def number(client: redis.Redis) -> int:
    """The server's number of the connection that a command goes over."""
    return int(client.client_id())


def test_a_row_of_commands_goes_over_one_connection_also_when_some_are_refused(kept: redis.Redis) -> None:
    first = number(kept)
    with pytest.raises(redis.ResponseError):
        execute(kept, "NO_SUCH_COMMAND")
    assert number(kept) == first


def test_replies_are_read_as_redis_py_reads_them(kept: redis.Redis, client: redis.Redis) -> None:
    client.hset("hash", mapping={"a": "1"})
    assert kept.hgetall("hash") == {b"a": b"1"}
    assert kept.info("server")["redis_version"] == client.info("server")["redis_version"]


def test_a_connection_that_the_server_closed_meanwhile_is_replaced(kept: redis.Redis, client: redis.Redis) -> None:
    first = number(kept)
    client.client_kill_filter(_id=str(first))
    assert number(kept) != first


def test_a_connection_that_lay_idle_is_looked_at_before_its_next_use(
    settings: Settings, client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it costs none of the retries, of which this client has none."""
    monkeypatch.setattr("memd.inbox.kept_connections.FRESH_S", 0.0)
    with KeepingClient.from_url(inbox_url(settings), retry=Retry(NoBackoff(), 0)) as kept:
        first = number(kept)
        client.client_kill_filter(_id=str(first))
        assert number(kept) != first


def test_a_command_that_is_broken_off_leaves_its_reply_to_nobody(kept: redis.Redis, client: redis.Redis) -> None:
    """Its connection is closed, so that the next command does not read the reply of this one."""

    def break_off() -> None:
        wait_for(lambda: client.info("clients")["blocked_clients"] == 1, "the command waits")
        os.kill(os.getpid(), signal.SIGINT)

    with ThreadPoolExecutor(1) as threads:
        threads.submit(break_off)
        with pytest.raises(KeyboardInterrupt):
            kept.blpop(["list"], timeout=0)
    client.rpush("list", "late")
    assert kept.echo("mine") == b"mine"


def test_a_forked_child_has_connections_of_its_own(kept: redis.Redis) -> None:
    first = number(kept)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(number(kept)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as told:
        assert int(told.read()) != first
    assert number(kept) == first


def test_many_threads_share_a_client(kept: redis.Redis) -> None:
    """Each gets the reply to its own command, and the connections of a burst are not all kept from the pool."""

    def echoes(name: int) -> bool:
        return all(kept.echo(f"{name} {turn}") == f"{name} {turn}".encode() for turn in range(50))

    def in_a_pipeline(name: int) -> bool:
        pipeline = kept.pipeline()
        pipeline.echo(str(name))
        return pipeline.execute() == [str(name).encode()]

    with ThreadPoolExecutor(3 * MOST) as threads:
        assert all(threads.map(echoes, range(3 * MOST)))
    with ThreadPoolExecutor(3 * MOST) as threads:
        assert all(threads.map(in_a_pipeline, range(3 * MOST)))


def flags_of(client: redis.Redis, client_id: int) -> str:
    """What the server says of a connection; "b": it is blocked."""
    return next((str(one["flags"]) for one in client.client_list() if one["id"] == str(client_id)), "")


def test_coroutines_keep_theirs_as_well(settings: Settings, client: redis.Redis) -> None:
    """Over errors, but not over a close of the server, nor over a command that was called off."""

    async def go() -> None:
        async with connect_async(settings) as kept:
            first = await kept.client_id()
            with pytest.raises(redis.ResponseError):
                await kept.execute_command("NO_SUCH_COMMAND")  # type: ignore[no-untyped-call]  # redis-py's gap
            assert await kept.client_id() == first
            client.client_kill_filter(_id=str(first))
            second = await kept.client_id()
            assert second != first
            waiting: asyncio.Future[Any] = asyncio.ensure_future(kept.blpop(["list"], timeout=0))
            await asyncio.to_thread(wait_for, lambda: "b" in flags_of(client, second), "it waits")
            while not waiting.done():  # until 3.12 asyncio.wait_for, which redis-py writes with, may swallow the first
                waiting.cancel()
                await asyncio.wait({waiting}, timeout=0.05)
            assert waiting.cancelled()
            client.rpush("list", "late")
            assert await kept.echo("mine") == b"mine"
            names = [str(name) for name in range(3 * MOST)]
            assert await asyncio.gather(*map(kept.echo, names)) == [name.encode() for name in names]

    asyncio.run(go())
