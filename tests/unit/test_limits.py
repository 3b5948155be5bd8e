"""Limits: whatever is too long is made to fit, nothing is refused, and no cut leaves a part of a secret."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from memd.config import ClientSettings
from memd.context import Context
from memd.inbox import verbs
from memd.push.filtering import to_context
from memd.push.limits import GAP, REACH, shorten, shorten_redacted
from memd.push.redaction import find, redact
from memd.push.validation import check_push, parse_push

LIMITS = ClientSettings()
LINE = "We talked about the garden, and it rained. "


def context(messages: list[dict[str, Any]], **changes: Any) -> Context:
    push = {"thread_id": "t", "user_id": "u", "messages": messages}
    return to_context(parse_push(orjson.dumps(push), ClientSettings(**changes)))


def user(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


def prose(size: int) -> str:
    return (LINE * (size // len(LINE) + 1))[:size]


def test_one_paste_too_long_keeps_head_and_tail() -> None:
    """100,001 characters in any form of text: the message is kept, as long as allowed, counted; so are the others."""
    long = "I live in Porto. " + prose(100_000) + " My cat is called Mia."
    parts = [{"text": long[:60_000]}, {"text": long[60_000:]}]
    for message in (user(long), user([{"type": "text", "text": long}]), user(parts), {"role": "user", "parts": parts}):
        taken = context([user("Hello there, memd!"), message])
        first, cut = taken.messages
        assert first.content == "Hello there, memd!"
        assert 99_990 <= len(cut.content) <= 100_000
        assert cut.content.startswith("I live in Porto. ")
        assert cut.content.endswith(" My cat is called Mia.")
        assert (cut.content.count(GAP), taken.dropped) == (1, {"truncated": 1})


def test_a_text_within_the_limit_stays() -> None:
    """The last character that fits is kept."""
    taken = context([user("x" * 100_000)])
    assert (taken.messages[0].content, taken.dropped) == ("x" * 100_000, {})


def test_the_newest_messages_stay() -> None:
    """Of 1,001 turns the oldest is left out and counted; tools and systems do not count."""
    said = [user(f"message {n}", id=str(n)) for n in range(1_001)]
    noise: list[dict[str, Any]] = [
        {"role": "system", "content": "rules"},
        {"role": "tool", "content": "x" * 1_200_000},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1"}]},
    ]
    taken = context([*noise, *said, *noise * 2])
    assert [message.content for message in taken.messages] == [f"message {n}" for n in range(1, 1_001)]
    assert taken.dropped == {"over_limit": 1, "system": 3, "tool": 3, "tool_call": 3}
    assert context([*noise, *said[1:]]).dropped == {"system": 1, "tool": 1, "tool_call": 1}


@pytest.mark.parametrize("text", ["x" * 90_000, "好" * 90_000, '"\\\n' * 30_000, "😀" * 90_000])
def test_what_is_left_fits_the_trusted_door(text: str) -> None:
    """The functions count the bytes of the messages as they are on the wire; the newest that fit are kept."""
    taken = context([user(f"{n} {text}", id=f'"{n}"' * 60) for n in range(16)])
    fcall = verbs.push(taken).command
    assert sum(map(len, fcall[5:])) <= LIMITS.max_push_bytes
    assert 2 <= len(taken.messages) < 16
    assert taken.dropped == {"over_limit": 16 - len(taken.messages)}
    assert taken.messages[-1].content.startswith("15 ")


@pytest.mark.parametrize("text", ["x" * 5_000, "😀" * 1_800, '"' * 3_000])
def test_one_message_always_fits(text: str) -> None:
    """With the smallest limits, too: it is cut until its bytes fit."""
    least = {"max_push_bytes": 1_024, "max_message_chars": 100_000, "max_read_bytes": 8_192}
    taken = context([user(text, id='"' * 256, created_at="2026-11-22T10:00:00+01:00")], **least)
    assert sum(map(len, verbs.push(taken).command[5:])) <= 1_024
    assert taken.dropped == {"truncated": 1}
    assert GAP in taken.messages[0].content


def test_a_named_message_fits_too() -> None:
    """The name of who speaks takes room from the text, and none from messages without one."""
    least = {"max_push_bytes": 1_024, "max_message_chars": 100_000, "max_read_bytes": 8_192}
    taken = context([{**user("x" * 5_000, id="1" * 256), "name": "😀" * 64}], **least)
    assert sum(map(len, verbs.push(taken).command[5:])) <= 1_024
    assert taken.dropped == {"truncated": 1}
    assert GAP in taken.messages[0].content


def test_a_changed_limit_changes_no_identity() -> None:
    """Identities are those of the whole texts in the whole list, so what one limit took in another one knows."""
    said = [user(f"{n} {LINE * 20}") for n in range(9)]
    wide = [message.identity for message in context(said).messages]
    narrow = context(said, max_messages=4, max_message_chars=100)
    assert [message.identity for message in narrow.messages] == wide[-4:]
    assert narrow.dropped == {"truncated": 4, "over_limit": 5}


@pytest.mark.parametrize(
    ("raw", "code"),
    [(b" " * (8_388_608 + 1), "E_PUSH_SIZE"), (b"[" + b"1," * 150_000 + b"1]", "E_ITEMS")],
)
def test_only_what_is_malformed_is_refused(raw: bytes, code: str) -> None:
    """8 MiB are read, and values enough for any conversation; the limit of what is left may be raised above that."""
    with pytest.raises(Exception, match=code):
        parse_push(raw, LIMITS)
    with pytest.raises(Exception, match=code if code == "E_ITEMS" else "E_JSON"):
        parse_push(raw, ClientSettings(max_push_bytes=16_777_216))


def test_a_push_of_8_mib_is_read() -> None:
    """By either entrance, with 1,200 messages in LangChain's long form."""
    meta = {"response_metadata": {"usage": {f"k{n}": n for n in range(25)}}, "additional_kwargs": {}, "name": None}
    said = [{"type": "human", "content": f"turn {n} {'x' * 6_600}", **meta} for n in range(1_200)]
    push = {"thread_id": "t", "user_id": "u", "messages": said}
    raw = json.dumps(push).encode()
    assert 8_000_000 < len(raw) <= 8_388_608
    for parsed in (parse_push(raw, LIMITS), check_push(push, LIMITS)):
        taken = to_context(parsed)
        assert taken.messages[-1].content.startswith("turn 1199 ")
        assert len(taken.messages) + taken.dropped["over_limit"] == 1_200


# Redact, then cut

BODY = "MIIEpAIBAAKCAQEAx1pTq9Zl3kVwY7nB2sDf8gHj4kLm6NpQ"
SECRETS = {
    "key": "sk-proj-9fK2xQ7vLm4RtY8wZb3N",
    "token": "ghp_Zk7Qm2Xv9Lp4Rt8Yw3Nb6Hc1Jd5Fg0As",
    "JWT": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI3NzE5In0.Qm2Xv9Lp4Rt8Yw3Nb6Hc1Jd5",
    "card": "4539 1488 0343 6467",
    "named": "my wifi password is Vk7!qPz93xLw",
    "named in Chinese": "我的密码是Vk7!qPz93xLw",
    "in a URL": "postgres://admin:Vk7qPz93xLw@db.example.org/app",
    "wrapped": "sk-proj-9fK2xQ7vLm4R\n    tY8wZb3NQm2Xv9Lp4Rt8",
    "seed phrase": "legal winner thank year wave sausage worth useful legal winner thank yellow",
    "private key": f"-----BEGIN PRIVATE KEY-----\n{BODY}\n{BODY[::-1]}\n-----END PRIVATE KEY-----",
}


def pieces(secret: str) -> set[str]:
    """What a text must not have: every four characters of what redaction finds."""
    start, end, _ = find(secret)[0]
    return {secret[place : place + 4] for place in range(start, end - 3)}


@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS)
def test_a_secret_across_every_cut_leaves_nothing(secret: str) -> None:
    """At every place of both cuts and around them, and before the drain has seen it."""
    most, size = 400, 900
    head, tail = (most - len(GAP) + 1) // 2, size - (most - len(GAP)) // 2
    bad = pieces(secret)
    for cut in (head, tail):
        for place in range(cut - len(secret) - 3, cut + 4, 1 + len(secret) // 60):
            before = prose(place - 1) + " "
            text = before + secret + " " + prose(size - len(before) - len(secret) - 1)
            short = shorten(text, most)
            assert len(short) <= most
            assert not [piece for piece in bad if piece in short], place - cut


@pytest.mark.parametrize(
    "secret",
    [
        "-----BEGIN PRIVATE KEY-----\n" + f"{BODY}\n" * 1_000 + "-----END PRIVATE KEY-----",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIi" + BODY * 150 + ".Qm2Xv9Lp4Rt8Yw3Nb6Hc1Jd5",
        "token=ghp_" + BODY * 500,
    ],
    ids=["private key of 49,000 characters", "JWT of 7,000", "run of 24,000"],
)
def test_a_long_secret_across_a_cut_leaves_nothing(secret: str) -> None:
    """In a text of the usual limits: a little over either cut, and nearly whole."""
    reach = len(secret) if secret.startswith("-----") else REACH
    for share in (50, min(len(secret), reach) - 50):
        for before in (50_000 - share, 250_000 - 50_000 - share):
            text = prose(before - 1) + " " + secret + " "
            text += prose(250_000 - len(text))
            short = shorten(text, 100_000)
            assert len(short) <= 100_000
            assert BODY[:9] not in redact(short)[0]


def test_marks_that_are_longer_than_their_secrets_are_not_cut() -> None:
    """Hundreds of short passwords around the cuts: each is a whole mark or gone, and the limit holds."""
    text = "my pin is 4821. " * 2_000
    short = shorten(text, 2_000)
    assert "4821" not in short
    assert len(short) <= 2_000
    assert "[redacted" not in short.replace("[redacted:password]", "")


def test_far_from_the_cuts_a_text_is_left_to_the_drain() -> None:
    """The inbox holds it as it came, so that redaction is counted in one place."""
    text = f"{SECRETS['key']} {prose(150_000)} {SECRETS['token']}"
    short = shorten(text, 100_000)
    assert short.startswith(SECRETS["key"])
    assert short.endswith(SECRETS["token"])


def test_a_redacted_text_is_cut_between_marks() -> None:
    """What the drain has redacted needs no second search, and its marks stay whole."""
    text = "a [redacted:seed_phrase] " * 200
    for most in range(100, 130):
        short = shorten_redacted(text, most)
        assert len(short) <= most
        assert "[redacted" not in short.replace("[redacted:seed_phrase]", "")
    assert shorten_redacted("short", 100) == "short"


def test_long_sources_count_towards_the_bytes_of_a_push() -> None:
    """900 short messages, whose other fields and source are as long as they may be, are made to fit."""
    turns = [user("I live in Porto.", id=f"{n:03}" + '"' * 253, name="🚀" * 64) for n in range(900)]
    push = {"thread_id": "t", "user_id": "u", "messages": turns}
    for source, fits in ((None, True), ({"kind": "project_resource", "id": '"' * 256}, False)):
        taken = to_context(check_push({**push, "source": source}, LIMITS))
        sent = sum(map(len, verbs.push(taken).command[5:]))
        assert sent <= LIMITS.max_push_bytes
        assert taken.dropped == ({} if fits else {"over_limit": 900 - len(taken.messages)})
        assert fits or sent > LIMITS.max_push_bytes - 2_000
