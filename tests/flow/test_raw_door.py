"""The raw door: plain bytes over a socket, strict checks, and nothing that gets lost on the way in."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import orjson
import pytest
import redis
from support import daemon, dead_letter, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.errors import MemdError
from memd.inbox import library, raw_door, verbs
from memd.inbox.connection import Call, Flight, send
from memd.scheduler.intake import Intake

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]


def command(*words: bytes) -> bytes:
    """A command in the protocol that every client speaks."""
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


def raw_push(user: str, text: str = "I live in Porto.", **fields: object) -> bytes:
    messages = [{"id": "1", "role": "user", "content": text}, {"id": "2", "role": "assistant", "content": "Good."}]
    return orjson.dumps({"thread_id": "t", "user_id": user, "messages": messages, "now": True, **fields})


def test_a_raw_socket_pushes(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Bytes on a socket, as `redis-cli` sends them, are enough to be remembered."""
    assert settings.redis_url
    path = settings.redis_url.reveal().removeprefix("unix://")
    with daemon(settings), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        connection.sendall(command(b"RPUSH", b"memd:in", raw_push("socket")))
        assert connection.recv(64).startswith(b":")
        wait_for(lambda: memd.document("socket")["facts"], "the push is remembered")


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"", "E_JSON"),
        (b"\xff\xfe", "E_UTF8"),
        (b"[]", "E_PUSH_TYPE"),
        (b'{"thread_id":"t","user_id":"u","messages":[]}', "E_MESSAGES_EMPTY"),
        (b'{"user_id":"u","messages":[{"role":"user","content":"x"}]}', "E_THREAD_ID_MISSING"),
        (b'{"thread_id":"t","messages":[{"role":"user","content":"x"}]}', "E_USER_ID_MISSING"),
        (b"[" * 100_000, "E_JSON"),
        (b'{"thread_id":"t","user_id":"u","who":1,"messages":[{"role":"user","content":"x"}]}', "E_UNKNOWN_FIELD"),
        (b"x" * 8_388_609, "E_PUSH_SIZE"),
    ],
)
def test_bad_bytes_go_to_the_dead_with_their_code(
    memd: Memd, client: redis.Redis, settings: Settings, raw: bytes, code: str
) -> None:
    """Whatever comes by RPUSH is kept with code, bytes and origin, and the list is empty afterwards."""
    client.rpush(verbs.RAW, raw)
    with part("scheduler", settings):
        wait_for(lambda: client.zcard(f"{verbs.P}:dead") == 1, "the push is in the dead")
    dead = dead_letter(client)
    assert dead[b".code"].decode() == code
    assert dead[b".raw"] == raw
    assert dead[b".origin"] == b"memd:in"
    assert client.llen(verbs.RAW) == 0


def test_long_things_are_taken_in(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """8 MiB of tool output, 1,001 messages, a paste of 100,001 characters: nothing is refused; cuts are counted."""
    tool = {"role": "tool", "content": "x" * 8_000_000}
    many = [{"id": f"m{n}", "role": "user", "content": f"message {n}"} for n in range(1_001)]
    client.rpush(
        verbs.RAW,
        raw_push("tool", messages=[tool, {"role": "user", "content": "I live in Porto."}]),
        raw_push("many", messages=many),
        raw_push("long", "I live in Porto." + "x" * 100_000),
    )
    while raw_door.RawDoor(settings, client).take_in():
        pass
    assert memd.dead() == []
    counts = {user: sum(key.turns for key in memd.pending(user_id=user).keys) for user in ("tool", "many", "long")}
    assert counts == {"tool": 1, "many": 1_000, "long": 2}
    assert memd.status().dropped == {"tool": 1, "over_limit": 1, "truncated": 1}


def test_large_pushes_are_read_one_by_one(client: redis.Redis) -> None:
    """A part ends with the push that reaches its bytes, so the scheduler never holds many large ones."""
    client.rpush(verbs.RAW, *(b"%d" % n + b"x" * 299_999 for n in range(9)), b"y" * 5_000_000, b"z")

    def heads(start: int, count: int, size: int) -> list[bytes]:
        return [head[:1] for head in send(client, verbs.raw_heads(verbs.RAW, start, count, size))]

    assert heads(0, 25, 900_000) == [b"0", b"1", b"2"]
    assert heads(3, 2, 900_000) == [b"3", b"4"]
    assert heads(8, 25, 900_000) == [b"8", b"y"]
    assert heads(9, 25, 900_000) == [b"y"]
    assert heads(10, 25, 900_000) == [b"z"]
    assert heads(11, 25, 900_000) == []


def test_two_schedulers_take_each_push_in_once_and_in_order(
    memd: Memd, client: redis.Redis, configured: Configured
) -> None:
    """500 pushes of one thread, two schedulers: every message is pending once, in the order it came."""
    slow = configured(scheduler__quiet_s=60, scheduler__max_wait_s=60, scheduler__flush_tokens=1_000_000)
    pushes = [
        orjson.dumps(
            {"thread_id": "t", "user_id": "u", "messages": [{"id": str(n), "role": "user", "content": f"message {n}"}]}
        )
        for n in range(500)
    ]
    client.rpush(verbs.RAW, *pushes)
    with part("scheduler", slow), part("scheduler", slow):
        wait_for(lambda: client.llen(verbs.RAW) == 0, "the list is empty")
    assert raw_door.taken(client, [verbs.RAW]) == [500]
    memd.flush()
    claim = wait_for(lambda: client_claim(client, slow), "the key is due")
    assert claim == [f"message {n}" for n in range(500)]


def test_what_is_refused_half_way_keeps_the_rest_in_order(client: redis.Redis, configured: Configured) -> None:
    """Among 160 pushes of one thread some are no JSON, some say nothing, some only the functions refuse; some come
    while the others are taken in. Each ends once: pending, dead or skipped; what is pending is in the order it came."""
    settings = configured(scheduler__quiet_s=60, scheduler__max_wait_s=60, scheduler__flush_tokens=1_000_000)
    library.install(client, configured(client__max_messages=2))
    pushes = [odd_push(n) for n in range(160)]
    client.rpush(verbs.RAW, *pushes[:100])
    intake = Intake(settings, client)
    with ThreadPoolExecutor(1) as producer:
        late = producer.submit(lambda: [client.rpush(verbs.RAW, one) for one in pushes[100:]])
        while not late.done() or client.llen(verbs.RAW):
            intake.tick()
    assert raw_door.taken(client, [verbs.RAW]) == [160]
    stats = client.hmget(f"{verbs.P}:stats", ["dead:E_JSON", "dead:E_MESSAGES_COUNT", "skipped:nothing_left", "pushes"])
    assert [int(value or 0) for value in stats] == [16, 16, 16, 112]
    with Memd(settings) as app:
        app.flush()
    assert client_claim(client, settings) == [f"message {n}" for n in range(160) if n % 10 not in (3, 5, 7)]


def odd_push(number: int) -> bytes:
    """The `number`th push of a thread: every tenth is no JSON, too long for the functions, or not worth reading."""
    if number % 10 == 3:
        return b"{"
    texts = {5: ["one", "two", "three"], 7: ["ok"]}.get(number % 10, [f"message {number}"])
    said = [{"id": f"{number}-{place}", "role": "user", "content": text} for place, text in enumerate(texts)]
    return orjson.dumps({"thread_id": "t", "user_id": "u", "messages": said})


def client_claim(client: redis.Redis, settings: Settings) -> list[str]:
    taken = send(client, verbs.claim(settings, 1, 0, "w", "model")).taken
    return [message.content for message in taken[0].messages] if taken else []


def test_apps_have_lists_of_their_own(memd: Memd, client: redis.Redis, configured: Configured) -> None:
    """An app named in the config is read; a list that nobody named stays where it is."""
    settings = configured(client__apps=["shop"])
    client.rpush("memd:in:shop", raw_push("shopper"))
    client.rpush("memd:in:other", raw_push("other"))
    with daemon(settings):
        wait_for(lambda: memd.document("shopper")["facts"], "the app's push is remembered")
    assert client.llen("memd:in:other") == 1


def test_a_list_that_nobody_reads_is_said_in_status(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """An app that the config does not name: its pushes stay where they are, and status says so until it is named."""
    client.rpush("memd:in:shop", b"{}")
    with part("scheduler", settings):
        wait_for(lambda: memd.status().unread == ("memd:in:shop",), "the stray list is said")
        client.delete("memd:in:shop")
        wait_for(lambda: memd.status().unread == (), "it is gone")


def test_calls_under_way_give_their_connection_back(client: redis.Redis) -> None:
    """However they end: with an error of the server's, with an answer that cannot be read, or called off."""

    def unreadable(_: object) -> str:
        raise ValueError("not what was asked for")

    client.set("text", "x")
    before = len(client.client_list())
    for _ in range(20):
        wrong, right = Call(("INCR", "text"), str), Call(("GET", "text"), str)
        refused, answered = Flight(client, [wrong, right]).land()
        assert isinstance(refused, MemdError)
        assert answered == "b'x'"
        with pytest.raises(ValueError, match="not what was asked for"):
            Flight(client, [Call(("GET", "text"), unreadable), right]).land()
        flight = Flight(client, [right])
        flight.call_off()
        flight.call_off()
        assert client.get("text") == b"x"  # and no answer of theirs is left on it
    wait_for(lambda: len(client.client_list()) <= before, "their connections are gone")
