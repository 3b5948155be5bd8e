"""Events for apps: one for each end of a push, with no ids in it; read at least once; nothing while they are off."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
import redis
from support import ENDS_S, code_blocks, daemon, ended, execute

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket, user_hash
from memd.extraction.protocol import Usage
from memd.inbox import library, verbs
from memd.inbox.app_events import EVENTS
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.inbox.raw_door import RawDoor
from memd.workers.steps import usage_stats

TURN = {"role": "user", "content": "I own a secret boat.", "id": "m1"}
STORED = {"state": "stored", "facts": ["fact_1"]}


@pytest.fixture
def kept(configured: Callable[..., Settings], client: redis.Redis) -> Settings:
    """Settings that keep events."""
    settings = configured(events__keep=1_000, budget__user_tokens_per_day=10)
    library.install(client, settings)
    return settings


def told(client: redis.Redis) -> list[dict[str, str]]:
    """The events so far, oldest first."""
    rows = execute(client, "XRANGE", EVENTS, "-", "+")
    return [{name.decode(): value.decode() for name, value in fields.items()} for _, fields in rows]


def push(app: Memd, user: str, *turns: dict[str, str]) -> str:
    return str(app.push(list(turns) or [TURN], thread_id=f"thread-of-{user}", user_id=user, now=True).id)


def claim(settings: Settings, client: redis.Redis) -> Claim:
    [taken] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    return taken


def test_each_end_is_told(memd: Memd, client: redis.Redis, kept: Settings) -> None:
    """Stored with its receipt and counts; dead, whole or in part; a raw letter; a budget. Skipped is not told."""
    pushes = [push(memd, "ana", {**TURN, "id": name}) for name in ("m1", "m2")]
    first = claim(kept, client)
    used = usage_stats("model", Usage(input_tokens=11), batch=False)
    for _ in range(2):  # the reply may be lost
        send(client, verbs.ack(first.id, STORED, {"stored": 2, "facts_added": 1, **used}))
    receipt = push(memd, "bob", TURN, {**TURN, "id": "m2"})
    second = claim(kept, client)
    send(client, verbs.bury_part(second.id, "too_long", "too_long: x", [second.messages[0].identity]))
    send(client, verbs.bury(second.id, "E_X", "E_X: x"))
    client.rpush(verbs.RAW, "no JSON")
    RawDoor(kept, client).take_in()
    push(memd, "eve")
    send(client, verbs.ack(claim(kept, client).id, {"state": "skipped", "reason": "no_user_turn"}, {}))
    letters = {letter.code: letter.id for letter in memd.dead()}
    ana = {"user": user_hash("ana"), "bucket": Bucket("ana").hash}
    bob = {"receipt": receipt, "pushes": "1", "user": user_hash("bob"), "bucket": Bucket("bob").hash}
    events = told(client)
    assert events[1].pop("until").isdigit()
    assert events == [
        {"event": "stored", "receipt": pushes[1], "pushes": "2", **ana, "facts_added": "1"},
        {"event": "budget", "budget": "user", "tokens_per_day": "10", "user": ana["user"]},
        {"event": "dead", **bob, "code": "too_long", "letter": letters["too_long"]},
        {"event": "dead", **bob, "code": "E_X", "letter": letters["E_X"]},
        {"event": "dead", "pushes": "1", "code": "E_JSON", "letter": letters["E_JSON"], "list": verbs.RAW},
    ]


def test_forgetting_leaves_only_that(memd: Memd, client: redis.Redis, kept: Settings) -> None:
    """What was told of the user goes, of one agent only what was told of that; what is told of others stays."""
    for user in ("ana", "bob"):
        push(memd, user)
        send(client, verbs.ack(claim(kept, client).id, STORED, {}))
    memd.forget("ana", agent_name="helper")
    assert [event["event"] for event in told(client)] == ["stored", "stored", "forgotten"]
    assert told(client)[2] == {
        "event": "forgotten", "user": user_hash("ana"), "bucket": Bucket("ana", "helper").hash,
    }  # fmt: skip
    memd.forget("ana")
    events = told(client)
    assert [event["event"] for event in events] == ["stored", "forgotten", "forgotten"]
    assert events[0]["user"] == user_hash("bob")
    assert events[2] == {"event": "forgotten", "user": user_hash("ana")}


def test_off_nothing_is_written(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """That is the default."""
    push(memd, "ana")
    send(client, verbs.ack(claim(settings, client).id, STORED, {}))
    client.rpush(verbs.RAW, "no JSON")
    RawDoor(settings, client).take_in()
    memd.forget("ana")
    assert not client.exists(EVENTS)


def test_the_stream_is_bounded(client: redis.Redis, configured: Callable[..., Settings]) -> None:
    """The oldest events go, in blocks of the server's."""
    library.install(client, configured(events__keep=100))
    pipeline = client.pipeline(transaction=False)
    for number in range(500):
        pipeline.fcall("memd_forget_events_1", 1, verbs.P, f"{number:032}", "", 0, "-")
    pipeline.execute()
    assert 100 <= client.xlen(EVENTS) <= 300
    assert told(client)[-1]["user"] == f"{499:032}"


def test_a_wrong_type_stops_nothing(memd: Memd, client: redis.Redis, kept: Settings) -> None:
    """Events are lost and counted; the move is made."""
    client.set(EVENTS, "not a stream")
    receipt = push(memd, "ana")
    assert send(client, verbs.ack(claim(kept, client).id, STORED, {}))
    assert memd.receipt(receipt).state == "stored"
    memd.forget("ana")
    assert memd.status().events_lost == 2


def example(settings: Settings, code: str) -> list[str]:
    """What the consumer of the page prints."""
    assert settings.redis_url is not None
    env = {**os.environ, "REDIS_URL": settings.redis_url.reveal()}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=ENDS_S, check=False
    )
    assert done.returncode in (0, 9), done.stderr
    return done.stdout.splitlines()


@pytest.mark.timing
def test_the_consumer_of_the_page(kept: Settings, client: redis.Redis) -> None:
    """One that dies before it acknowledges leaves its event to the next; what is acknowledged is not seen again."""
    [code] = code_blocks("docs/events.md", "python")
    code = code.replace("IDLE_MS = 60_000", "IDLE_MS = 0")
    dying = code.replace("        server.xack(", "        os._exit(9)\n        server.xack(")
    assert dying != code
    with Memd(kept) as app, daemon(kept):
        receipt = push(app, "ana", {"role": "user", "content": "I live in Porto.", "id": "m1"})
        assert ended(app) == {"stored": 1}
    line = f"stored {receipt} 1"
    assert [example(kept, one) for one in (dying, dying, code, code)] == [[line], [line], [line], []]
    with Memd(kept) as app:
        app.forget("ana")
    assert example(kept, code) == ["forgotten  0"]
