"""A service that fails over: every door, through TLS and under accounts; replicas with another clock, or away."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import httpx2
import pytest
import redis
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from support import Cli, daemon, ended, execute, free_port, make_settings, part, wait_for
from support.fault_support import events
from support.sentinel_service import Guard, SentinelService, sentinel_service

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.context import identity_of_id
from memd.errors import InboxFull, InboxUnavailable, NotReady, ServerUnfit
from memd.forget import Forgetting
from memd.inbox import server_check
from memd.inbox.connection import connect
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Wish
from memd.testing import ModelServer

HOUR = 3_600


@pytest.fixture
def guarded(tmp_path: Path, cli: Cli) -> Iterator[tuple[SentinelService, dict[str, str]]]:
    """A service with TLS and the accounts of `memd acl`; their passwords by name."""
    if missing := Guard.lacks():
        pytest.skip(f"not run: {missing}")
    printed = cli("acl", "--app", "shop", "--generate")
    passwords = dict(re.findall(r"^(memd-\S+): (\S{32,})$", printed.stderr, re.MULTILINE))
    with sentinel_service(tmp_path, guard=Guard(tmp_path, printed.stdout)) as service:
        yield service, passwords


def pushes(user: str, number: int) -> dict[str, object]:
    """A context with one fact for a user."""
    turns = [{"role": "user", "content": f"I like tea number {number}.", "id": f"{user}{number}"}]
    return {"thread_id": "t", "user_id": user, "messages": turns}


class Doors:
    """All doors of one service, each with its account."""

    def __init__(
        self, service: SentinelService, passwords: dict[str, str], data_dir: Path, cli: Callable[..., object]
    ) -> None:
        self.service, self.passwords, self._cli = service, passwords, cli
        self.daemon, self.app = (
            make_settings(
                data_dir,
                service.url_of(f"{name}:{passwords[name]}"),
                inbox__min_replicas=1,
                http__port=free_port(),
                client__apps=("shop",),
            )
            for name in ("memd-daemon", "memd-app")
        )
        self.mcp = free_port()

    def client(self, number: int) -> str:
        """`Memd`."""
        with Memd(self.app) as memd:
            return memd.push(pushes("client", number)["messages"], thread_id="t", user_id="client").status  # type: ignore[arg-type]  # (a list of turns)

    def asynchronous(self, number: int) -> str:
        """`AsyncMemd`."""

        async def push() -> str:
            memd = AsyncMemd(self.app)
            try:
                receipt = await memd.push(pushes("async", number)["messages"], thread_id="t", user_id="async")  # type: ignore[arg-type]  # (a list of turns)
                return receipt.status
            finally:
                await memd.aclose()

        return asyncio.run(push())

    def http(self, number: int) -> str:
        """`memd serve`."""
        body = json.dumps(pushes("http", number)).encode()
        url = f"http://127.0.0.1:{self.app.http.port}/v1/push"
        with urllib.request.urlopen(urllib.request.Request(url, body, {"content-type": "application/json"})) as answer:
            return str(json.load(answer)["status"])

    def raw(self, number: int) -> str:
        """RPUSH and WAIT on the same connection, by an account that can do nothing else."""
        port = self.service.primary()
        with self.service.client(port, "memd-in-shop", self.passwords["memd-in-shop"]) as producer:
            producer.rpush("memd:in:shop", json.dumps(pushes("raw", number)))
            return "queued" if int(execute(producer, "WAIT", 1, 5_000)) >= 1 else "unconfirmed"

    def asked(self) -> dict[str, int] | None:
        """What `memd mcp` says is pending for a user, which it asks the inbox; None while that is away."""

        async def ask() -> dict[str, int] | None:
            async with (
                httpx2.AsyncClient() as http,
                Client(streamable_http_client(f"http://127.0.0.1:{self.mcp}/mcp", http_client=http)) as client,
            ):
                result = await client.call_tool("memory_stats", {})
                found: dict[str, int] | None = json.loads(getattr(result.content[0], "text", ""))["pending"]
                return found

        return asyncio.run(ask())


REFUSED = (InboxUnavailable, InboxFull, NotReady, redis.RedisError, OSError)
"""While nobody is the primary; the same push may be sent again."""


def through(door: Callable[[int], str], number: int) -> str:
    """Push until it is acknowledged by a replica as well."""

    def pushed() -> str:
        try:
            status = door(number)
        except REFUSED:
            return ""
        return "" if status == "unconfirmed" else status

    return wait_for(pushed, "the push is confirmed")


@pytest.mark.store
def test_every_door_goes_on_through_tls_and_accounts(
    guarded: tuple[SentinelService, dict[str, str]], data_dir: Path, cli: Cli
) -> None:
    """Before and after a failover: clients, HTTP, MCP, commands, raw lists, scheduler and workers."""
    service, passwords = guarded
    doors = Doors(service, passwords, data_dir, cli)
    names = {"client": doors.client, "async": doors.asynchronous, "http": doors.http, "raw": doors.raw}
    words = ["--http", "--user", "raw", "--port", str(doors.mcp)]
    with (
        daemon(doors.daemon),
        part("serve", doors.app),
        part("mcp", doors.daemon, words=words),
        Memd(doors.daemon) as memd,
    ):
        for number in (1, 2):
            for door in names.values():
                assert through(door, number) in ("queued", "merged")
            done = cli("push", given=json.dumps(pushes("commands", number)), MEMD_REDIS_URL=_url(doors.app))
            assert done.returncode == 0, done.stderr
            wait_for(partial(_ended, memd), "all have ended", 120)
            wait_for(partial(_listens, doors.mcp), "memd mcp listens")
            wait_for(lambda: doors.asked() is not None, "memd mcp reaches the inbox")
            status = json.loads(cli("status", "--json", MEMD_REDIS_URL=_url(doors.daemon)).stdout)
            assert status["server"]["primary"] == f"127.0.0.1:{service.primary()}"
            if number == 1:
                service.fail_over()
        users = [*names, "commands"]
        assert {user: len(memd.document(user)["facts"]) for user in users} == dict.fromkeys(users, 2)
    with service.client(service.primary()) as admin:
        assert [row for row in admin.acl_log() if row["username"].startswith("memd")] == []


def _url(settings: Settings) -> str:
    assert settings.redis_url is not None
    return settings.redis_url.reveal()


@pytest.mark.store
@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_replica_with_another_clock_takes_over(
    tmp_path: Path, data_dir: Path, shim: Path, model: ModelServer, seconds: int
) -> None:
    """Nobody's lease runs out on it, and nothing is stuck; what is worked on meanwhile is stored once."""
    (tmp_path / "shift").write_text(str(seconds))
    shifted = {"LD_PRELOAD": str(shim), "CLOCK_SHIFT": str(tmp_path / "shift")}
    with sentinel_service(tmp_path, replicas=1, shifted=shifted) as service:
        settings = make_settings(
            data_dir,
            service.url,
            inbox__min_replicas=1,
            drain__lease_s=30,
            extraction__extractor="anthropic",
            extraction__base_url=model.base_url,
            extraction__api_key="key",
            log__format="json",
        )
        model.hold()
        with daemon(settings), Memd(settings) as memd:
            said = [{"role": "user", "content": "I live in Porto.", "id": "1"}]
            wait_for(lambda: _pushed(memd, said, "ana"), "the inbox is set up")
            wait_for(lambda: model.calls == 1, "the model is asked")
            before = service.primary()
            service.kill(before)
            wait_for(lambda: service.primary() != before, "the sentinels name the replica")
            now = service.primary()
            service.bring_back(before)
            with service.client(now) as client:
                assert abs(int(client.time()[0]) - time.time() - seconds) < 300
            wait_for(lambda: events(settings, "scheduler", "server_adopted"), "the scheduler has adopted it")
            wait_for(lambda: _pushed(memd, said, "bob"), "it takes pushes")
            model.go_on()
            wait_for(lambda: _ended(memd), "both have ended")  # an outcome may come twice: its ack is not waited for
            assert memd.status().dead == 0
            assert events(settings, "scheduler", "lease_expired") == []
            assert [len(memd.document(user)["facts"]) for user in ("ana", "bob")] == [1, 1]
            assert model.calls == 2


def _ended(memd: Memd) -> bool:
    """Whether all pushes have ended; False as well while the primary takes no commands."""
    try:
        return not memd.flush(wait=True, timeout_s=10).timed_out
    except (InboxUnavailable, InboxFull, NotReady):
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _pushed(memd: Memd, said: list[dict[str, str]], user: str) -> str:
    try:
        return memd.push(said, thread_id="t", user_id=user, now=True).status
    except (InboxUnavailable, InboxFull, NotReady):
        return ""


def test_a_server_that_lost_a_forgetting_gets_it_again(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Its tombstones come from the store, and what they name goes from what is pending; the rest stays."""
    for name, texts in (("ana", "ab"), ("eve", "a")):
        for text in texts:
            said = [{"role": "user", "content": f"I live in {text}.", "id": text}]
            memd.push(said, thread_id=text, user_id=name)
    store = open_store(settings)
    wish = Wish("ana")
    store.tombstones.begin(wish, [identity_of_id("a", "a")])
    store.tombstones.close(wish)
    assert Forgetting(settings, client, store).repeat() == 1
    assert Forgetting(settings, client, store).repeat() == 0
    left = {(row.thread_id, user) for user in ("ana", "eve") for row in memd.pending(user_id=user).keys}
    assert left == {("b", "ana"), ("a", "eve")}
    receipt = memd.push([{"role": "user", "content": "I live in a.", "id": "a"}], thread_id="a", user_id="ana")
    assert (receipt.status, receipt.reason) == ("skipped", "forgotten")


@pytest.mark.store
def test_a_primary_without_its_replicas_is_an_outage(tmp_path: Path, data_dir: Path) -> None:
    """Pushes are refused, workers wait and spend no attempt; a service whose servers demand none is refused at once."""
    with sentinel_service(tmp_path, replicas=1) as service:
        settings = make_settings(data_dir, service.url, drain__max_attempts=1, log__format="json")
        said = [{"role": "user", "content": "I live in Porto.", "id": "1"}]
        with daemon(settings), Memd(settings) as memd:
            wait_for(lambda: _pushed(memd, said, "ana"), "the inbox is set up")
            assert ended(memd) == {"stored": 1}
            away = next(port for port in service.servers if port != service.primary())
            service.kill(away)
            wait_for(lambda: not service.takes_writes(service.primary(), 1), "the replica is missed")
            with pytest.raises(InboxUnavailable, match="too few replicas"):
                memd.push(said, thread_id="u", user_id="ana", now=True)
            wait_for(lambda: events(settings, "scheduler", "outage_began"), "the scheduler says so")
            service.bring_back(away)
            wait_for(lambda: _pushed(memd, said, "bob"), "pushes are taken again")
            wait_for(lambda: _ended(memd), "it has ended")
            assert (len(memd.document("bob")["facts"]), memd.status().dead) == (1, 0)
        with connect(settings) as client:
            with service.client(service.primary()) as admin:
                admin.config_set("min-replicas-to-write", 0)
            with pytest.raises(ServerUnfit, match="min-replicas-to-write is 0"):
                server_check.require(client, settings)
