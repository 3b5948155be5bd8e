"""What stands before the new messages of a request, from the said layer and from the claim."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec import structs
from support.stores import ALICE, options, ours

from memd.config import Settings
from memd.context import Key, Message, estimate_tokens, identify
from memd.inbox.claim import Claim
from memd.memory.said.changes import append
from memd.memory.said.turns import Mark, Said, Turn
from memd.memory.store.json_store import JsonStore
from memd.push.signals import load_patterns
from memd.workers.before import TOKENS, earlier, may_stand_before, within_tokens
from memd.workers.progress import Progress
from memd.workers.remember import choose
from memd.workers.steps import ClaimPart, Opened, Unread, Work

KEY = Key("t", ALICE.user_id)
NOON = "2026-11-20T12:00:00.000Z"
QUESTION = Turn("q", "t", "assistant", "Are you allergic to nuts?", at="2026-11-20T11:00:00.000Z")


def said(*turns: Turn, hidden: str = "") -> Said:
    marks = [Mark(hidden, "hidden")] if hidden else []
    return Said(turns, [b""] * len(turns), marks)


PATTERNS = load_patterns()


def pushed(text: str, at: str = NOON) -> tuple[Message, ...]:
    """One message of the user, as a claim has it."""
    [message] = identify("t", [Message("user", text, id="m1")])
    return (structs.replace(message, at=at, said_at=at),)


def chosen(store: JsonStore, text: str, before: tuple[Message, ...]) -> object:
    claim = Claim("c", KEY, pushed(text), 0, 0, 0, 0)
    part = ClaimPart(claim, claim.messages, frozenset(), Progress.of(claim))
    return choose(Opened(part, store.load(ALICE), before), Settings(), PATTERNS, datetime(2026, 11, 20, tzinfo=UTC))


def test_a_bare_yes_alone_is_read_after_its_question(tmp_path: Path) -> None:
    """The question was taken in by an earlier push; without it, or after another turn, the yes says nothing."""
    store = JsonStore(tmp_path, options())
    work = chosen(store, "Yes!", earlier(said(QUESTION), "t", pushed("Yes!")[0]))
    assert isinstance(work, Work)
    assert [message.content for message in work.before] == ["Are you allergic to nuts?"]
    assert [message.content for message in work.new] == ["Yes!"]
    later = Turn("u", "t", "user", "Never mind.", at="2026-11-20T11:30:00.000Z")
    for layer in (said(), said(QUESTION, later)):
        unread = chosen(store, "Yes!", earlier(layer, "t", pushed("Yes!")[0]))
        assert isinstance(unread, Unread)
        assert unread.reason == "acknowledgement"


@pytest.mark.parametrize(
    ("layer", "arrived", "texts"),
    [
        (said(QUESTION), NOON, ["Are you allergic to nuts?"]),
        (said(QUESTION), "2026-11-21T11:00:00.001Z", []),
        (said(QUESTION), "2026-11-20T10:59:59.000Z", []),
        (said(QUESTION), "", []),
        (said(QUESTION, hidden="q"), NOON, []),
        (said(Turn("o", "other", "user", "Hi", at=NOON)), NOON, []),
        (said(Turn("n", "t", "user", "Hi")), NOON, []),
        (said(*(Turn(f"i{n}", "t", "user", f"turn {n}", at=NOON) for n in range(9))), NOON,
         ["turn 5", "turn 6", "turn 7", "turn 8"]),
    ],
    ids=["an hour", "a day later", "it came later", "no time", "hidden", "another thread", "no arrival", "four"],
)  # fmt: skip
def test_the_turns_directly_before_stand_before(layer: Said, arrived: str, texts: list[str]) -> None:
    """At most four of the same thread, of the last 24 hours; they end at one that must not be shown."""
    assert [message.content for message in earlier(layer, "t", pushed("Yes!", arrived)[0])] == texts


def test_before_has_at_most_800_tokens() -> None:
    """The latest whole, the one that does not fit cut to head and tail, those before it left out."""
    long, short = Message("user", "a word and another one " * 500), Message("assistant", "Is that so?")
    assert within_tokens([short, long, short])[1:] == (short,)
    for text in (
        "a word and another one " * 500,
        "我住在里斯本的老城区。" * 500,
        "字" * 60 + "word " * 2_000 + "字" * 60,
    ):
        cut = within_tokens([short, Message("user", text), short])
        assert len(cut) == 2
        assert "[...]" in cut[0].content
        assert TOKENS // 2 <= sum(estimate_tokens(message.content) for message in cut) <= TOKENS
    assert within_tokens([short, short]) == (short, short)


def test_only_the_end_of_the_layer_is_read(tmp_path: Path) -> None:
    """And only for a claim whose first message is new, of a thread that is known."""
    store = JsonStore(tmp_path, options())
    loaded = store.load(ALICE)
    turns = [Turn(f"i{n}", "t", "user", "x" * 100, at=NOON) for n in range(50)]
    document = {**loaded.document, "revision": 1, "ledger": {"t": ["i49"]}}
    store.commit(ALICE, loaded, document, ours, said=append(turns))
    document = store.load(ALICE).document
    tail = store.read_said(ALICE, document, 1_000)
    assert [turn.id for turn in tail.turns] == [f"i{n}" for n in range(50 - len(tail.turns), 50)]
    assert 2 <= len(tail.turns) < 10
    assert tail.damaged == 0
    assert len(store.read_said(ALICE, document, 1_000_000).turns) == 50
    new = pushed("Yes!")
    assert may_stand_before(document, ["t"], new, frozenset())
    assert not may_stand_before(document, ["u"], new, frozenset())
    assert not may_stand_before(document, ["t"], new, frozenset({new[0].identity}))
    assert not may_stand_before({**document, "said": {}}, ["t"], new, frozenset())
    assert may_stand_before({**document, "ledger": {}}, ["t"], new, frozenset())
