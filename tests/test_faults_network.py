"""What the network and the server may do: die, freeze, be slow, lose replies, refuse; and a model that half answers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from fault_support import OwnServer, events, once, raw, tell
from proxy import Proxy
from support import make_settings, part, wait_for

from memd import inbox, library
from memd.client import Memd
from memd.config import Settings
from memd.connection import connect, send
from memd.context import Context, Key, Message, identify
from memd.errors import InboxUnavailable, NotReady

Configured = Callable[..., Settings]


@pytest.fixture
def proxy(server_url: str) -> Iterator[Proxy]:
    """A proxy before the real server."""
    with Proxy(server_url) as proxy:
        yield proxy


@pytest.fixture
def behind(proxy: Proxy, settings: Settings, client: redis.Redis) -> Callable[..., Settings]:
    """Settings that reach the real server through the proxy, written to it."""

    def make(**changes: object) -> Settings:
        slow = make_settings(settings.data_dir, proxy.url, **changes)
        library.install(client, slow)
        return slow

    return make


@pytest.fixture
def own(data_dir: Path) -> Settings:
    """Settings whose server is one of this test's own, in the data folder."""
    return make_settings(data_dir, None)


def tell_again(app: Memd, user: str, number: int) -> None:
    """Push until it is acknowledged, as an app does whose server comes and goes."""

    def pushed() -> bool:
        try:
            return bool(tell(app, user, number))
        except (InboxUnavailable, NotReady):
            return False

    wait_for(pushed, "the push was acknowledged")


def has_logged(settings: Settings, event: str, times: int) -> None:
    """Wait until the scheduler has logged an event so often."""
    wait_for(lambda: len(events(settings, "scheduler", event)) >= times, f"{event} is logged")


@contextmanager
def own_daemon(settings: Settings) -> Iterator[tuple[OwnServer, Memd]]:
    """A server of its own with a scheduler and a worker, which have started."""
    with (
        OwnServer(settings) as server,
        Memd(settings) as app,
        part("scheduler", settings),
        part("worker", settings),
    ):
        has_logged(settings, "scheduler_started", 1)
        wait_for(lambda: app.status().workers, "the worker listens")
        yield server, app


def test_a_server_killed_again_and_again_loses_nothing(own: Settings) -> None:
    """R1: five kills of the server while contexts come in: all are stored, once; each outage is logged once."""
    with own_daemon(own) as (server, app):
        for number in range(100):
            if number % 20 == 10:
                outages = number // 20 + 1
                server.kill()
                has_logged(own, "outage_began", outages)
                server.start()
                has_logged(own, "outage_ended", outages)
            tell_again(app, f"u{number % 7}", number)
        assert not app.flush(wait=True).timed_out
        assert once(app, range(100), 7)
        assert len(events(own, "scheduler", "outage_began")) == 5


def test_an_emptied_server_is_noticed_and_set_up_again(own: Settings) -> None:
    """R1: restarted without its data: said loudly, the documents are untouched, and workers are rung as before."""
    file = own.data_dir / "users" / "u0" / "memory.json"
    with own_daemon(own) as (server, app):
        tell(app, "u0", 0)
        assert app.flush(wait=True).counts == {"stored": 1}
        document = file.read_bytes()
        server.kill()
        shutil.rmtree(own.data_dir / "server" / "appendonlydir")
        server.start()
        has_logged(own, "server_emptied", 1)
        assert events(own, "scheduler", "server_emptied")[0]["level"] == "error"
        assert file.read_bytes() == document
        tell_again(app, "u0", 1)
        wait_for(lambda: once(app, range(2), 1), "what came since is remembered too")
        wait_for(lambda: [worker["state"] for worker in app.status().workers] == ["idle"], "the worker is known again")


def test_a_flushed_server_is_set_up_again_without_a_restart(
    configured: Configured, client: redis.Redis, settings: Settings
) -> None:
    """R1: emptied under running connections: the same, at once, though no connection tells of it."""
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        has_logged(settings, "scheduler_started", 1)
        wait_for(lambda: "blmove" in {row["cmd"] for row in client.client_list()}, "the worker waits for a bell")
        client.flushall()
        client.function_flush()
        has_logged(settings, "server_emptied", 1)
        tell_again(app, "u0", 0)
        wait_for(lambda: once(app, range(1), 1), "what came since is remembered", timeout_s=10)
        wait_for(lambda: [worker["state"] for worker in app.status().workers] == ["idle"], "the worker is known again")


def test_a_claim_whose_reply_was_lost_is_answered_again(client: redis.Redis, settings: Settings) -> None:
    """R1: the same claim sent twice takes the same keys, and never other ones under the same ids."""
    for user in ("ana", "bob", "eve"):
        send(client, inbox.push(Context(Key("t", user), identify("t", [Message("user", "I own a boat.")]), now=True)))
    call = inbox.claim(settings, 2, 0, "w", "model")
    first = send(client, call).taken
    send(client, inbox.ack(first[0].id, {"state": "stored"}, {}))
    assert send(client, call).taken == first[1:]
    other = send(client, inbox.claim(settings, 2, 0, "w", "model")).taken
    assert {claim.key.user_id for claim in first + other} == {"ana", "bob", "eve"}


def test_lost_replies_lose_nothing(behind: Callable[..., Settings], proxy: Proxy, settings: Settings) -> None:
    """R1: every kind of call loses replies again and again: each context is stored, once."""
    slow = behind(drain__concurrency=4, drain__lease_s=1)
    lossy = ("memd_claim_1", "memd_extend_1", "memd_ack_1", "memd_release_1", "memd_take_1", "memd_tick_1")
    with Memd(settings) as app, part("scheduler", slow), part("worker", slow), connect(settings) as direct:
        for number in range(60):
            for name in lossy if number % 5 == 0 else ():
                proxy.drop_replies(name)
            if number % 2:
                tell(app, f"u{number % 7}", number)
            else:
                direct.rpush(inbox.RAW, raw(f"u{number % 7}", number))
        assert not app.flush(wait=True).timed_out
        assert once(app, range(60), 7)
        status = app.status()
    assert (status.dead, status.pending, status.claimed) == (0, 0, 0)
    assert all(proxy.losing[name] == 0 for name in lossy if name != "memd_release_1")
