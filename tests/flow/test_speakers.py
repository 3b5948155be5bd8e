"""Version 2 of the wire: who speaks, through every door; and what version 1 has to do with it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
import redis
from support import daemon, ended, execute

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.context import Context, Key, Message, identify
from memd.errors import Rejected
from memd.inbox import raw_door, verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send, translated
from memd.inbox.verbs import P

KEY = Key("t", "u-1")
CHAT = [
    {"role": "user", "content": "I live in Porto.", "name": "Ana", "id": "1"},
    {"role": "assistant", "content": "A fine city.", "name": "guide", "id": "2"},
    {"role": "user", "content": "And I live in Berlin.", "name": "Ben", "id": "3"},
]


def claim(client: redis.Redis, settings: Settings) -> Claim:
    [taken] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    return taken


def claim_as_before(client: redis.Redis, room: int = 9) -> list[Any]:
    """The claims that a worker of version 1 gets: it sends what it always sent."""
    reply = execute(client, "FCALL", "memd_claim_1", 1, P, room, 0, "nonce-of-an-old-one", "old", "m")
    return [dict(zip(flat[::2], flat[1::2], strict=True))[b".thread"].decode() for _, flat in reply[4:]]


def next_due(client: redis.Redis) -> int:
    return int(execute(client, "FCALL", "memd_claim_1", 1, P, 9, 0, "another-nonce", "old", "m")[1])


def push(client: redis.Redis, thread: str, *, name: str | None = None, user: str = "u-1", **options: Any) -> None:
    messages = identify(thread, [Message("user", f"hello from {thread}", name=name)])
    send(client, verbs.push(Context(Key(thread, user), messages, now=True, **options)))


def test_every_door_carries_speakers(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """The user's own turns lose the user's name; those of others keep theirs, and so do the assistant's."""
    fields = {"thread_id": "t", "user_id": "u-1", "user_name": "Ana", "messages": CHAT, "now": True}
    wrapped = [{"type": m["role"], "data": {**m, "role": m["role"]}} for m in CHAT]

    async def push_async() -> None:
        client_async = AsyncMemd(settings)
        await client_async.push(CHAT, thread_id="t", user_id="u-1", user_name="Ana", now=True)
        await client_async.aclose()

    def push_raw() -> None:
        client.rpush(verbs.RAW, json.dumps(fields))
        while raw_door.RawDoor(settings, client).take_in():
            pass

    for door in (
        lambda: memd.push(CHAT, thread_id="t", user_id="u-1", user_name="Ana", now=True),
        lambda: asyncio.run(push_async()),
        push_raw,
        lambda: memd.push_json(json.dumps({**fields, "v": 2}).encode()),
        lambda: memd.push(wrapped, thread_id="t", user_id="u-1", user_name="Ana", now=True),
    ):
        door()
        taken = claim(client, settings)
        assert [(m.role, m.name) for m in taken.messages] == [("user", None), ("assistant", "guide"), ("user", "Ben")]
        assert (taken.user_name, taken.bad, taken.refused) == ("Ana", None, ())
        assert send(client, verbs.ack(taken.id, {"state": "stored"}, {}))


def test_what_others_say_is_no_fact_of_the_user(memd: Memd, settings: Settings) -> None:
    """Ben's sentence is no fact of Ana's, though it has the form of one."""
    with daemon(settings):
        receipt = memd.push(CHAT, thread_id="t", user_id="u-1", user_name="Ana", now=True)
        assert ended(memd) == {"stored": 1}
    contents = [fact["content"] for fact in memd.document("u-1")["facts"]]
    assert len(contents) == 1
    assert "Porto" in contents[0]
    assert receipt.wire == memd.status().wire == 4


def test_a_push_without_names_is_of_version_1() -> None:
    """Byte for byte what it was, and what an older server takes."""
    plain = Context(KEY, identify("t", [Message("user", "I live in Porto.", id="1", created_at="2026-01-02")]))
    _, _, _, _, header, message = verbs.push(plain).command
    fields = json.loads(header)
    assert list(fields) == ["v", "key", "bucket", "owner", "ids", "gen", "m"]
    assert fields["v"] == 1
    assert message == b'{"role":"user","content":"I live in Porto.","id":"1","created_at":"2026-01-02"}'
    for named in (
        Context(KEY, identify("t", [Message("user", "x", name="Ben")])),
        Context(KEY, identify("t", [Message("user", "x")]), user_name="Ana"),
    ):
        assert json.loads(verbs.push(named).command[4])["v"] == 2


def test_names_in_a_push_of_version_1_are_not_read(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """A producer that says `v: 1` means what it always meant, however long its names are."""
    turns = [{"role": "user", "content": "I live in Porto.", "name": "x" * 99}]
    raw = {"v": 1, "thread_id": "t", "user_id": "u-1", "messages": turns, "now": True}
    memd.push_json(json.dumps(raw).encode())
    taken = claim(client, settings)
    assert [message.name for message in taken.messages] == [None]


def test_an_older_server_refuses_names_and_says_what_to_do(client: redis.Redis) -> None:
    """Its function knows version 1 alone."""
    reply = redis.ResponseError("MEMDREJECTED E_VERSION: this server takes version 1 of the wire format")
    error = translated(reply, client)
    assert isinstance(error, Rejected)
    assert (error.code, "`name`" in str(error), "`user_name`" in str(error)) == ("E_VERSION", True, True)


def test_an_older_worker_gets_no_key_with_names(client: redis.Redis, settings: Settings) -> None:
    """It gets the others, also behind more of such keys than one page has; the line of a bucket stays."""
    for number in range(300):
        push(client, f"named-{number}", name="Ben", user=f"u-{number}")
    push(client, "behind", user="u-7")  # in line behind a conversation that the older worker cannot read
    push(client, "plain", user="else")
    assert claim_as_before(client) == ["plain"]
    assert next_due(client) == -1
    assert client.zscore(f"{P}:due", Key("behind", "u-7").hash) is not None
    first = [one.key.thread_id for one in send(client, verbs.claim(settings, 8, 0, "new", "m")).taken]
    assert len(first) == 8
    assert all(thread.startswith("named-") for thread in first)


def test_a_key_with_names_stays_one_over_release_part_and_retry(client: redis.Redis, settings: Settings) -> None:
    """However it comes back, also into pushes without names, no older worker is handed it; names of users add up."""
    push(client, "t", name="Ben", user_name="Ana")
    taken = claim(client, settings)
    for user_name in (None, "Anna", "Ana", "Anna"):
        messages = identify("t", [Message("user", f"later, {user_name}", id=f"2-{user_name}")])
        send(client, verbs.push(Context(KEY, messages, now=True, user_name=user_name)))
    assert send(client, verbs.release(taken.id, "paused")) == "released"
    assert claim_as_before(client) == []
    back = claim(client, settings)
    assert back.user_names == ("Ana", "Anna")
    assert send(client, verbs.bury_part(back.id, "E_X", "x", [back.messages[0].identity])) == 1
    assert send(client, verbs.ack(back.id, {"state": "stored"}, {}))
    [letter] = client.zrange(f"{P}:dead", 0, -1)
    assert execute(client, "FCALL", "memd_retry_1", 1, P, letter) == 1
    assert claim_as_before(client) == []
    assert claim(client, settings).messages[0].name == "Ben"


def test_what_a_trusted_client_calls_the_user_is_checked(client: redis.Redis, settings: Settings) -> None:
    """By the function as far as it can, and by the drain, which buries the claim."""
    for name, code in (("", "E_USER_NAME"), ("x" * 257, "E_USER_NAME"), ("a\nb", "E_USER_NAME")):
        with pytest.raises(Rejected, match=code):
            push(client, "t", user_name=name)
    command = [*verbs.push(Context(KEY, identify("t", [Message("user", "x")]), user_name="Ana")).command]
    command[4] = command[4].replace(b'"v":2', b'"v":1')
    with pytest.raises(redis.ResponseError, match="E_VERSION"):
        execute(client, *command)
    push(client, "t", user_name="x" * 65)
    assert claim(client, settings).bad == "E_USER_NAME_LENGTH"
