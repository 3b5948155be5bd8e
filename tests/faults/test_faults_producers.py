"""P1, P2, L2: producers that die, send again or flood, and an account that is refused for a while."""

from __future__ import annotations

import socket
from collections.abc import Callable

import orjson
import pytest
import redis
from support import ended, part, wait_for
from support.fault_support import once, raw, tell

from memd.client import Memd
from memd.config import Settings
from memd.extraction import endpoint
from memd.inbox import verbs
from memd.scheduler.intake import Intake
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]


def test_what_is_sent_again_is_remembered_once(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """P1: 200 messages of 50 threads, each sent twice by a door or both, as by producers that never saw an answer."""
    for number in range(200):
        user, thread = f"u{number % 50}", f"thread-{number % 50}"
        message = {"role": "user", "content": f"I like tea number {number}.", "id": f"u{number}"}
        push = orjson.dumps({"thread_id": thread, "user_id": user, "messages": [message]})
        for turn in range(2):
            if (number + turn) % 3:
                memd.push_json(push)
            else:
                client.rpush(verbs.RAW, push)
    with part("scheduler", settings), part("worker", settings):
        assert not memd.flush(wait=True, timeout_s=60).timed_out
    assert once(memd, range(200), 50)
    assert memd.status().dead == 0


def test_half_a_push_is_none(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """P1: a producer dies in the middle of its command: nothing of it was accepted, the next one's is."""
    assert settings.redis_url
    path = settings.redis_url.reveal().removeprefix("unix://")
    words = [b"RPUSH", verbs.RAW.encode(), raw("u0", 0)]
    command = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    with part("scheduler", settings), part("worker", settings):
        for cut in range(1, len(command), 40):
            with socket.socket(socket.AF_UNIX) as producer:
                producer.connect(path)
                producer.sendall(command[:cut])
        tell(memd, "u0", 1)
        assert ended(memd) == {"stored": 1}
    assert [fact["evidence"][0]["message"] for fact in memd.document("u0")["facts"]] == ["u1"]


@pytest.mark.parametrize(("pushes", "chars"), [(8_000, 20), (400, 30_000)])
def test_a_flood_of_one_app_keeps_no_other_waiting(
    client: redis.Redis, configured: Configured, pushes: int, chars: int
) -> None:
    """P2: lists get their share of time in turn: another app's push is taken in before the flood is over, be it of many
    small pushes or of large ones; and so have the other duties their turn."""
    settings = configured(client__apps=["flood", "shop"])
    large = orjson.loads(raw("u", 1))
    large["messages"][0]["content"] = "我住在波尔图。" * (chars // 7)
    client.rpush("memd:in:flood", *[orjson.dumps(large)] * pushes)
    client.rpush("memd:in:shop", raw("shopper", 1))
    taken: list[bool] = []
    intake = Intake(settings, client)
    with client.monitor() as watched:  # type: ignore[no-untyped-call]  # redis-py's gap
        assert intake.tick() == 0
        client.ping()
        for line in iter(watched.next_command, None):
            if "memd_take" in line["command"]:
                taken.append("memd:in:shop" in line["command"])
            if line["command"] == "PING":
                break
    assert 0 < taken.index(True) < pushes
    assert client.llen("memd:in:flood") > 0


def test_a_refused_account_is_waited_for(asking: Configured, client: redis.Redis, model: ModelServer) -> None:
    """L2: a 401 is said in `status`, asked about once a minute at most, costs nothing, and ends without a restart."""
    model.fail(401, times=None)
    settings = asking(drain__max_attempts=1)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        for number in range(20):
            tell(app, f"u{number}", number)
        wait_for(lambda: app.status().paused, "it is said")
        assert app.status().paused[0]["code"] == "unauthorized"
        wait_for(lambda: app.status().claimed == 0, "all is given back")
        asked = model.calls
        model.clear()
        key = f"{verbs.P}:breaker:{endpoint(settings.extraction)}"
        assert int(client.hget(key, "until") or 0) - int(client.time()[0]) * 1000 > 55_000
        client.hset(key, "until", 0)  # as when the minute is over
        assert ended(app) == {"stored": 20}
    assert asked <= 20
    assert model.calls == asked + 20
