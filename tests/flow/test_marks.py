"""Version 3 of the wire: projects and sources through every door; a message keeps the mark of its first push."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from support import Cli, execute

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.context import Context, Key, Message, identify, user_hash
from memd.errors import Rejected
from memd.inbox import library, raw_door, verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send, translated
from memd.inbox.verbs import P

KEY = Key("t", "ana")
CHAT = [
    {"role": "user", "content": "We ship on Fridays.", "id": "1"},
    {"role": "assistant", "content": "Noted.", "id": "2"},
]
SOURCE = {"kind": "project_resource", "id": "wiki/42"}
ODD = "Projekt #1/é 100%, b"
"""An id with what separates fields in the inbox."""


def push(
    client: redis.Redis, *texts: str, project: str = "", key: Key = KEY, ids: bool = True, name: str | None = None
) -> None:
    """Messages whose ids are their texts, or none."""
    turns = [Message("user", text, id=text if ids else None, project=project, name=name) for text in texts]
    send(client, verbs.push(Context(key, identify(key.thread_id, turns), now=True)))


def claim(client: redis.Redis, settings: Settings) -> Claim:
    [taken] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    assert (taken.bad, taken.refused) == (None, ())
    return taken


def marks(taken: Claim) -> dict[str, str]:
    return {message.content: message.project for message in taken.messages}


def claimed_by(client: redis.Redis, *version: int) -> list[str]:
    """The threads that a worker of this version of the wire is handed; version 1 sends none."""
    reply = execute(client, "FCALL", "memd_claim_1", 1, P, 9, 0, f"nonce-{version}", "old", "m", *version)
    return [dict(zip(flat[::2], flat[1::2], strict=True))[b".thread"].decode() for _, flat in reply[4:]]


def flush(client: redis.Redis) -> None:
    """What was given back is due now."""
    execute(client, "FCALL", "memd_flush_1", 1, P, "due", "0", "[null,null,null]")


def retry_all(client: redis.Redis) -> None:
    assert execute(client, "FCALL", "memd_retry_1", 1, P, *client.zrange(f"{P}:dead", 0, -1)) > 0


def test_every_door_carries_project_and_source(memd: Memd, client: redis.Redis, settings: Settings, cli: Cli) -> None:
    """The mark and the source arrive at the claim as they were sent, whatever characters they have."""
    fields = {"thread_id": "t", "user_id": "ana", "messages": CHAT, "now": True, "source": SOURCE}
    named = {**fields, "project_id": ODD}

    async def push_async() -> None:
        other = AsyncMemd(settings)
        await other.push(CHAT, thread_id="t", user_id="ana", now=True, project_id=ODD, source=SOURCE)
        await other.aclose()

    def push_raw() -> None:
        client.rpush(verbs.RAW, json.dumps({**named, "v": 3}))
        while raw_door.RawDoor(settings, client).take_in():
            pass

    for door in (
        lambda: memd.push(CHAT, thread_id="t", user_id="ana", now=True, project_id=ODD, source=SOURCE),
        lambda: asyncio.run(push_async()),
        push_raw,
        lambda: memd.push_json(json.dumps(named).encode()),
        lambda: memd.push_json(json.dumps(fields).encode(), project_id=ODD),
        lambda: memd.push_json(json.dumps(named).encode(), project_id="not this one"),
        lambda: cli("push", "--project", ODD, given=json.dumps(fields)),
    ):
        door()
        taken = claim(client, settings)
        assert {(m.project, m.source_kind, m.source_id) for m in taken.messages} == {(ODD, *SOURCE.values())}
        assert send(client, verbs.ack(taken.id, {"state": "stored"}, {}))


def test_the_list_of_an_app_takes_them_too(client: redis.Redis, configured: Callable[..., Settings]) -> None:
    """Only the thread is in the app's namespace; whose the project is, is asked when the document is written."""
    settings = configured(client__apps=["shop"])
    fields = {"thread_id": "t", "user_id": "ana", "messages": CHAT, "now": True}
    client.rpush("memd:in:shop", json.dumps({**fields, "project_id": "p"}))
    while raw_door.RawDoor(settings, client).take_in():
        pass
    taken = claim(client, settings)
    assert (taken.key.thread_id, {m.project for m in taken.messages}) == ("shop/t", {"p"})


def test_older_versions_are_what_they_were() -> None:
    """Byte for byte, and with the lowest version that can carry them; identities do not depend on the mark."""
    plain = [Message("user", "I live in Porto.", id="1", created_at="2026-01-02")]
    body = b'{"role":"user","content":"I live in Porto.","id":"1","created_at":"2026-01-02"'
    for turns, version, signals, sent in (
        (plain, 1, "-", body + b"}"),
        ([Message("user", "I live in Porto.", "1", "2026-01-02", name="Ben")], 2, "-", body + b',"name":"Ben"}'),
        ([Message("user", "I live in Porto.", "1", "2026-01-02", project="a#b")], 3, "-#a%23b", body + b"}"),
        (
            [Message("user", "I live in Porto.", "1", "2026-01-02", source_kind="ai")],
            3,
            "-",
            body + b',"source":{"kind":"ai"}}',
        ),
    ):
        _, _, _, _, header, message = verbs.push(Context(KEY, identify("t", turns))).command
        fields = json.loads(header)
        assert list(fields) == ["v", "key", "bucket", "owner", "ids", "gen", "m"]
        assert (fields["v"], fields["m"]) == (version, [[identify("t", plain)[0].identity, 5, signals]])
        assert message == sent


ENOUGH = settings_of(
    max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

FIRST = [("", "p"), ("p", ""), ("p", "q")]


@pytest.mark.parametrize(("first", "later"), FIRST)
def test_pushed_again_while_pending(client: redis.Redis, settings: Settings, first: str, later: str) -> None:
    """The first mark stays, also where a later push brings a newer text and signals; new messages get theirs."""
    push(client, "a", project=first)
    again = [
        Message("user", "a, edited", "a", signals=frozenset({"goal"}), project=later),
        Message("user", "b", "b", project=later),
    ]
    send(client, verbs.push(Context(KEY, identify("t", again))))
    taken = claim(client, settings)
    assert marks(taken) == {"a, edited": first, "b": later}
    assert taken.messages[0].signals == {"goal"}


@pytest.mark.parametrize(("first", "later"), FIRST)
@pytest.mark.parametrize("single_first", [True, False])
def test_a_twin_without_id(client: redis.Redis, settings: Settings, first: str, later: str, single_first: bool) -> None:
    """A message without predecessor that is pending as one with a predecessor, or as itself, keeps the first mark."""
    if single_first:
        push(client, "b", project=first, ids=False)
    else:
        push(client, "a", "b", project=first, ids=False)
    push(client, "b", project=later, ids=False)
    assert marks(claim(client, settings))["b"] == first


@pytest.mark.parametrize(("first", "later"), FIRST)
def test_pushed_again_while_claimed(client: redis.Redis, settings: Settings, first: str, later: str) -> None:
    """However often the claim is given back, its messages keep their mark, and bring it along."""
    push(client, "a", project=first)
    for _ in range(2):
        taken = claim(client, settings)
        push(client, "a", "b", project=later)
        assert send(client, verbs.release(taken.id, "paused")) == "released"
        flush(client)
    assert marks(claim(client, settings)) == {"a": first, "b": later}


@pytest.mark.parametrize("first", ["", "q"])
def test_a_claim_that_dies_leaves_no_other_mark(client: redis.Redis, settings: Settings, first: str) -> None:
    """What was pushed again for a project while a worker had it is not that project's, though its claim is gone."""
    push(client, "a", project=first)
    taken = claim(client, settings)
    push(client, "a", "b", project="p")
    assert send(client, verbs.bury(taken.id, "E_X", "x"))
    assert marks(claim(client, settings)) == {"a": first, "b": "p"}


@pytest.mark.parametrize(("first", "later"), FIRST)
@pytest.mark.parametrize("part", [True, False])
def test_dead_and_retried(client: redis.Redis, settings: Settings, first: str, later: str, part: bool) -> None:
    """A letter keeps the marks of its messages; pushed again while dead they are skipped."""
    push(client, "a", "b", project=first)
    taken = claim(client, settings)
    if part:
        assert send(client, verbs.bury_part(taken.id, "E_X", "x", [taken.messages[0].identity])) == 1
        assert send(client, verbs.ack(taken.id, {"state": "stored"}, {}))
    else:
        assert send(client, verbs.bury(taken.id, "E_X", "x"))
    push(client, "a", "c", project=later)
    retry_all(client)
    assert marks(claim(client, settings)) == {"a": first, **({} if part else {"b": first}), "c": later}


def test_a_letter_is_retried_into_what_came_meanwhile(client: redis.Redis, settings: Settings) -> None:
    """Pushed again while claimed, dead, and retried: the message is one, with its first mark and the newest text."""
    push(client, "a", project="p")
    taken = claim(client, settings)
    send(client, verbs.push(Context(KEY, identify("t", [Message("user", "a, edited", "a", project="q")]), now=True)))
    assert send(client, verbs.bury(taken.id, "E_X", "x"))
    retry_all(client)
    assert marks(claim(client, settings)) == {"a, edited": "p"}


def test_a_claim_of_a_part(client: redis.Redis, settings: Settings) -> None:
    """What one claim has no room for stays pending with its marks; what is claimed later has them too."""
    execute(client, "HSET", f"{P}:config", "claim_tokens", 1)
    for text, project in (("a", "p"), ("b", ""), ("c", ODD)):
        push(client, text, project=project)
    found: dict[str, str] = {}
    for _ in range(3):
        taken = claim(client, settings)
        found |= marks(taken)
        assert send(client, verbs.ack(taken.id, {"state": "stored"}, {}))
    assert found == {"a": "p", "b": "", "c": ODD}


def test_the_newest_source_wins(client: redis.Redis, settings: Settings) -> None:
    """A source is part of what a message says, so the newest push of a pending one has it, unlike the mark."""
    for source in (("knowledge_base", "kb-1"), ("ai", ""), ("user", "u-9")):
        turn = Message("user", "a", "a", source_kind=source[0], source_id=source[1])
        send(client, verbs.push(Context(KEY, identify("t", [turn]), now=True)))
    [message] = claim(client, settings).messages
    assert (message.source_kind, message.source_id) == ("user", "u-9")


def test_pending_messages_say_their_project(client: redis.Redis) -> None:
    """What is read for a prompt before a worker had it."""
    push(client, "a", project=ODD)
    push(client, "b")
    _, found = send(client, verbs.waiting(user_hash("ana"), "0", [KEY.bucket.hash]))
    assert {json.loads(row.body)["content"]: row.project for row in found} == {"a": ODD, "b": ""}


def test_an_older_worker_gets_no_marked_key(client: redis.Redis, settings: Settings) -> None:
    """Workers of versions 1 and 2 get the others; a later push of an older version does not hand it to them."""
    push(client, "a", project="p", key=Key("marked", "u-1"))
    push(client, "b", name="Ben", key=Key("named", "u-2"))
    push(client, "c", key=Key("plain", "u-3"))
    push(client, "d", name="Ben", key=Key("marked", "u-1"))
    push(client, "e", key=Key("marked", "u-1"))
    assert claimed_by(client) == ["plain"]
    assert claimed_by(client, 2) == ["named"]
    assert claimed_by(client, 2) == ["named"]  # the same nonce: what it has already
    assert [one.key.thread_id for one in send(client, verbs.claim(settings, 8, 0, "new", "m")).taken] == ["marked"]


def test_an_older_claim_that_is_given_back_hides_no_mark(client: redis.Redis, settings: Settings) -> None:
    """A worker of version 2 has the key; what is pushed meanwhile is marked, and the key is not handed to it again."""
    push(client, "a", name="Ben")
    assert claimed_by(client, 2) == ["t"]
    push(client, "b", project="p")
    [old] = execute(client, "ZRANGE", f"{P}:claimed", 0, -1)
    assert send(client, verbs.release(old.decode(), "paused")) == "released"
    flush(client)
    assert execute(client, "FCALL", "memd_claim_1", 1, P, 9, 0, "another", "old", "m", 2)[4:] == []
    assert marks(claim(client, settings)) == {"a": "", "b": "p"}


def test_what_a_trusted_client_marks_is_checked(client: redis.Redis, settings: Settings) -> None:
    """By the function as far as it can, and by the drain, which buries the message alone."""
    turns = identify("t", [Message("user", "a", "a", project="p"), Message("user", "b", "b")])
    command = [*verbs.push(Context(KEY, turns, now=True)).command]
    good: bytes = command[4]
    for mark, version, code in (
        (b"#p", b"1", "E_VERSION"),
        (b"#p", b"2", "E_VERSION"),
        (b"#p", b"4", "E_VERSION"),
        (b"#", b"3", "E_PROJECT_ID"),
        (b"#a b", b"3", "E_PROJECT_ID"),
        (b"#a#b", b"3", "E_PROJECT_ID"),
        (b"#" + b"x" * 769, b"3", "E_PROJECT_ID"),
    ):
        command[4] = good.replace(b'"v":3', b'"v":' + version).replace(b"#p", mark)
        with pytest.raises(redis.ResponseError, match=code):
            execute(client, *command)
    command[4] = good.replace(b"#p", b"#" + b"x" * 257)
    execute(client, *command)
    [taken] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    assert taken.refused == ((turns[0].identity, "E_PROJECT_ID_LENGTH"),)
    assert [message.content for message in taken.messages] == ["b"]


def test_a_source_that_older_clients_sent_costs_no_message(client: redis.Redis, settings: Settings) -> None:
    """Before version 3 memd did not read the field, so clients of the trusted door may have sent anything in it."""
    command = [*verbs.push(Context(KEY, identify("t", [Message("user", "a", "a")]), now=True)).command]
    command[5] = command[5].replace(b'"role"', b'"source":"web","role"')
    execute(client, *command)
    [message] = claim(client, settings).messages
    assert (message.content, message.source_kind) == ("a", "")


def test_an_older_server_names_the_fields(client: redis.Redis) -> None:
    """Its function knows versions 1 and 2."""
    reply = redis.ResponseError("MEMDREJECTED E_VERSION: this server takes versions 1 and 2 of the wire format")
    error = translated(reply, client)
    assert isinstance(error, Rejected)
    assert (error.code, "`project_id`" in str(error), "`source`" in str(error)) == ("E_VERSION", True, True)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["push", "push", "push", "claim", "release", "bury", "part", "retry"]),
        st.sets(st.sampled_from("abc"), min_size=1),
        st.sampled_from(["", "p", "q"]),
    ),
    max_size=14,
)


@ENOUGH
@given(steps=STEPS)
def test_no_message_gets_a_project_that_its_first_push_did_not_name(
    client: redis.Redis, settings: Settings, steps: list[tuple[str, set[str], str]]
) -> None:
    """In any order of pushes, claims, releases, deaths and retries; at most it has none, where it was pushed again
    without one while a worker had it, and that claim died.
    """
    client.flushall()
    library.install(client, settings)
    first: dict[str, str] = {}
    held: Claim | None = None
    for step, texts, project in steps:
        if step == "push":
            first = dict.fromkeys(texts, project) | first
            push(client, *sorted(texts), project=project)
        elif step == "retry" and client.zcard(f"{P}:dead"):
            retry_all(client)
        elif step == "claim" and held is None:
            flush(client)
            held = next(iter(send(client, verbs.claim(settings, 1, 0, "w", "m")).taken), None)
            for message in held.messages if held else ():
                assert message.project in {"", first[message.content]}
        elif held is not None and step in {"release", "bury", "part"}:
            held = end(client, held, step, texts)


def end(client: redis.Redis, held: Claim, step: str, texts: set[str]) -> Claim | None:
    """End a claim, or bury a part of it; returns what is left of it."""
    gone, rest = part_of(held, texts)
    if step == "release":
        send(client, verbs.release(held.id, "paused"))
        return None
    if step == "bury" or not rest:
        send(client, verbs.bury(held.id, "E_X", "x"))
        return None
    if gone:
        send(client, verbs.bury_part(held.id, "E_X", "x", [message.identity for message in gone]))
    return replace(held, messages=tuple(rest))


def part_of(held: Claim, texts: set[str]) -> tuple[list[Message], list[Message]]:
    gone = [message for message in held.messages if message.content in texts]
    return gone, [message for message in held.messages if message.content not in texts]
