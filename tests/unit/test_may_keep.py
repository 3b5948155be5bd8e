"""May keep: wishes to forget, and off the record, and what they take along; excerpts of what may be kept.

The blind cases of tests/data/blind/ were written by somebody else; the rules were tuned on the tuning half alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.context import Message
from memd.memory.said.excerpts import GATES_VERSION, excerpts_in, judged
from memd.memory.said.may_keep import Kept, may_keep
from memd.memory.said.turns import Turn
from memd.push.redaction import redact

BLIND = Path(__file__).parents[1] / "data" / "blind"


WRONG = [
    ("tuning", {"before": 1, "quotable": 3}),
    ("held_out", {"miss": 11, "false alarm": 7, "before": 6, "quotable": 6}),
]
"""Most errors of each kind in each half."""


def rows(name: str, half: str) -> Iterator[dict[str, Any]]:
    """The cases of one half of a file."""
    for line in (BLIND / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["half"] == half:
            yield row


def talk(*texts: str) -> Kept:
    """What may be kept of turns of the user, `u0` and on, each with a reply, `a0` and on."""
    pairs = (
        (Message("user", text, identity=f"u{i}"), Message("assistant", "Noted.", identity=f"a{i}"))
        for i, text in enumerate(texts)
    )
    return may_keep([message for pair in pairs for message in pair])


def errors(row: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the judgement of a blind case."""
    kept = talk(*([] if row["before"] is None else [row["before"]]), row["text"])
    turn, before = ("u0", "") if row["before"] is None else ("u1", "u0")
    if row["kept"] is None:
        return
    if (turn in kept.not_kept) == row["kept"]:
        yield "false alarm" if row["kept"] else "miss"
    elif not row["kept"]:
        if row["before_goes"] is not None and before and (before in kept.not_kept) != row["before_goes"]:
            yield "before"
        if row["quotable"] == (turn in kept.no_quotes):
            yield "quotable"


@pytest.mark.parametrize(("half", "most"), WRONG)
def test_wishes_are_found_and_little_else(half: str, most: dict[str, int]) -> None:
    """Misses beside false alarms, and whether the turn before goes and the turn itself may be quoted."""
    found = Counter(error for row in rows("may_keep", half) for error in errors(row))
    assert sum(1 for _ in rows("may_keep", half)) >= 130
    assert found <= Counter(most)


@pytest.mark.parametrize(("half", "missed", "useless"), [("tuning", 1, 0), ("held_out", 8, 14)])
def test_excerpts_are_statements(half: str, missed: int, useless: int) -> None:
    """Statements that give no excerpt, and excerpts that state nothing of the user's own."""
    misses = others = 0
    for row in rows("excerpts", half):
        text = redact(row["text"])[0]
        shown = {text[start:end].strip() for start, end in excerpts_in(text)}
        misses += len(set(row["excerpts"]) - shown)
        others += len(shown - {*row["excerpts"], *row["either"]})
    assert misses <= missed
    assert others <= useless


def test_only_the_users_own_turns_give_excerpts() -> None:
    """The assistant and other named speakers give none; a name of the user is as good as none."""
    turn = Turn("n1", "t", "user", "I work as a nurse in Porto. Where do nurses park?")
    assert judged(turn, ()).excerpts == ((0, 27),)
    assert judged(turn, ()).gates == GATES_VERSION
    named = Turn("n1", "t", "user", turn.text, name="Ana")
    assert judged(named, ("Ana",)).excerpts == ((0, 27),)
    assert judged(named, ("Bo",)).excerpts == judged(Turn("n2", "t", "assistant", turn.text), ()).excerpts == ()


def test_a_wish_takes_its_reply_and_the_turn_it_points_to_along() -> None:
    """Not kept: the wish, the turn before, and both replies; only the turn before must prove nothing."""
    kept = talk("I like tea.", "My salary is 90k.", "Forget what I just told you.", "I live in Porto.")
    assert kept.not_kept == dict.fromkeys(("u1", "a1", "u2", "a2"), "forget_wish")
    assert kept.no_quotes == {"u1", "a1"}
    assert [message.identity for message in kept.kept] == ["u0", "a0", "u3", "a3"]


@pytest.mark.parametrize(
    ("texts", "gone", "no_quotes", "before"),
    [
        (("Forget my old address, I live in Lisbon now.", "I run."), {"u0", "a0"}, set(), ""),
        (("Forget that.", "I run."), {"u0", "a0"}, set(), "turn"),
        (("Off the record: I am looking for a new job.", "I run."), {"u0", "a0"}, {"u0", "a0"}, ""),
        (
            ("Don't save what I tell you next.", "I drink.", "I run."),
            {"u0", "a0", "u1", "a1"},
            {"u0", "a0", "u1", "a1"},
            "",
        ),
        (
            ("I run.", "Don't store anything from this conversation."),
            {"u0", "a0", "u1", "a1"},
            {"u0", "a0", "u1", "a1"},
            "thread",
        ),
        (("> forget what I said", "```\nforget what I said\n```"), set(), set(), ""),
        (("我的工资是三万。", "刚才那句别记。", "我住在杭州。"), {"u0", "a0", "u1", "a1"}, {"u0", "a0"}, ""),
        (("忘掉我的旧地址，我现在住在昆明。",), {"u0", "a0"}, set(), ""),
    ],
)
def test_what_a_wish_reaches(texts: tuple[str, ...], gone: set[str], no_quotes: set[str], before: str) -> None:
    """This turn, the one before, the next, the whole thread, or what was said before these messages."""
    kept = talk(*texts)
    assert (set(kept.not_kept), set(kept.no_quotes), kept.before) == (gone, no_quotes, before)
