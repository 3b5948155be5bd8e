"""What the network and the server may do: die, freeze, be slow, lose replies, refuse; and a model that half answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis
from fault_support import once, raw, tell
from proxy import Proxy
from support import make_settings, part

from memd import inbox, library
from memd.client import Memd
from memd.config import Settings
from memd.connection import connect, send
from memd.context import Context, Key, Message, identify

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
