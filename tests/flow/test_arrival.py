"""When a message arrived: stamped once, by the server's clock, and kept over every return to the inbox."""

from __future__ import annotations

from datetime import timedelta

import pytest
import redis
from support import execute, next_millisecond

from memd.config import Settings
from memd.context import Context, Key, Message, identify
from memd.inbox import batches, raw_door, verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.inbox.verbs import P
from memd.push.times import iso, moment

KEY = Key("t", "ana")
WEEKS_AGO = timedelta(weeks=3)
RAW_PUSH = b'{"thread_id":"t","user_id":"ana","now":true,"messages":[{"role":"user","content":"Braga.","id":"1"}]}'


def context(text: str = "I live in Porto.", created_at: str | None = None) -> Context:
    [message] = identify(KEY.thread_id, [Message("user", text, id="1", created_at=created_at)])
    return Context(KEY, (message,), now=True)


def claim(client: redis.Redis, settings: Settings) -> Claim:
    [taken] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    return taken


def pushed_weeks_ago(client: redis.Redis) -> str:
    """One pending message that arrived three weeks ago; when that was."""
    send(client, verbs.push(context()))
    ctx = f"{P}:ctx:{KEY.hash}"
    name = f"m:{context().messages[0].identity}"
    value = client.hget(ctx, name)
    assert isinstance(value, bytes)
    head, _, rest = value.partition(b"@")
    at, _, rest = rest.partition(b" ")
    earlier = int(at) - int(WEEKS_AGO.total_seconds() * 1000)
    client.hset(ctx, name, head + b"@%d " % earlier + rest)
    seconds, millis = divmod(earlier, 1000)
    arrived = moment("1970-01-01T00:00:00Z")
    assert arrived is not None
    return iso(arrived + timedelta(seconds=seconds, milliseconds=millis))


def send_back(client: redis.Redis, settings: Settings, taken: Claim, how: str) -> None:
    """Make a claim's message pending again."""
    match how:
        case "buried":
            assert send(client, verbs.bury(taken.id, "E_X", "x"))
        case "in part":
            assert send(client, verbs.bury_part(taken.id, "E_X", "x", [taken.messages[0].identity])) == 1
            assert send(client, verbs.ack(taken.id, {"state": "stored"}, {}))
        case "batched":
            assert send(client, batches.defer(taken.id, "batch", "m", "print"))
            send(client, verbs.push(context("I live in Lisbon.")))
        case "joined":
            send(client, verbs.push(context("I live in Porto, still.")))
            assert send(client, verbs.release(taken.id, "paused")) == "released"
        case _:
            assert send(client, verbs.release(taken.id, "paused")) == "released"
    for letter in client.zrange(f"{P}:dead", 0, -1):
        assert execute(client, "FCALL", "memd_retry_1", 1, P, letter) == 1
    if how == "raw":
        client.rpush(verbs.RAW, RAW_PUSH)
        while raw_door.RawDoor(settings, client).take_in():
            pass


@pytest.mark.parametrize("how", ["released", "joined", "buried", "in part", "batched", "raw"])
def test_the_arrival_stays_over_every_return(client: redis.Redis, settings: Settings, how: str) -> None:
    """Released, also into a newer push; buried and retried in whole and in part; in a batch; pushed by another door."""
    arrived = pushed_weeks_ago(client)
    taken = claim(client, settings)
    send_back(client, settings, taken, how)
    [message] = claim(client, settings).messages
    assert (message.at, message.said_at, message.order) == (arrived, arrived, taken.messages[0].order)


def test_a_producer_says_when_it_was_said(client: redis.Redis, settings: Settings) -> None:
    """By `created_at`, except if that lies ahead of the arrival."""
    for created_at, kept in (("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"), ("2099-01-01T00:00:00Z", "")):
        send(client, verbs.push(context(created_at=created_at)))
        taken = claim(client, settings)
        [message] = taken.messages
        assert message.said_at == (kept or message.at)
        assert message.at > "2026-01-03"
        assert send(client, verbs.ack(taken.id, {"state": "stored"}, {}))


def test_a_server_that_lost_its_data_orders_above_what_it_had(client: redis.Redis, settings: Settings) -> None:
    """What documents hold stays earlier than what is pushed after the loss."""
    send(client, verbs.push(context()))
    before = claim(client, settings).messages[0].order
    for name in client.scan_iter(f"{P}:*"):
        if name != f"{P}:config".encode():
            client.delete(name)
    next_millisecond(client)
    send(client, verbs.push(context()))
    assert claim(client, settings).messages[0].order > before
