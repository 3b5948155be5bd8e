"""Marks on what was said: what has changed since, and what repeats a fact that memd has shown."""

from __future__ import annotations

from typing import Any

import pytest

from memd.memory.said.echo import without_echo
from memd.memory.said.excerpts import judged
from memd.memory.said.marking import Changed, hidden_marks, over_marks
from memd.memory.said.turns import Said, Turn

DAY = "2026-03-02T00:00:00Z"


def fact(content: str, *proofs: str) -> dict[str, Any]:
    """A fact proven by these turns."""
    return {"id": f"fact_{content}", "content": content, "provenBy": list(proofs)}


def over(texts: list[str], old: dict[str, Any], new: dict[str, Any] | None) -> set[int]:
    """The places of the turns that are over after this change."""
    turns = [Turn(f"n{place}", "t", "user", text) for place, text in enumerate(texts)]
    said = Said(turns, [b""] * len(turns))
    return {int(mark.mark[1:]) for mark in over_marks(said, [Changed(old, new)], DAY)}


@pytest.mark.parametrize(
    ("old", "new", "texts", "expected"),
    [
        ("Lives in Berlin", "Lives in Lisbon", ["I love Berlin.", "Ana is from Lisbon.", "In Berlin!"], {0, 2}),
        ("Flies to Oslo on 3 March", "Flies to Oslo on 5 March", ["My flight leaves 3 March.", "3 cats."], {0}),
        ("Drinks coffee every morning", "Drinks tea every morning", ["i drink coffee every morning", "I run."], {0}),
        ("用户住在柏林", "用户住在里斯本", ["我在柏林住了三年。", "我住在里斯本。", "柏林的冬天很冷。"], {0, 2}),
        ("Works at Siemens in Munich", None, ["Siemens moved me to Munich.", "I ski near Munich."], {0}),
    ],
)  # fmt: skip
def test_older_turns_that_say_what_has_ended_are_over(
    old: str, new: str | None, texts: list[str], expected: set[int]
) -> None:
    """By the names and numbers that the new sentence lacks; without any, by most of the words."""
    assert over(texts, fact(old), fact(new) if new else None) == expected


def test_turns_that_proved_only_the_old_fact_are_over() -> None:
    """Whatever their words; a turn that proves the new one too stays."""
    assert over(["We moved there.", "As I said."], fact("Lives in Faro", "n0", "n1"), fact("Lives in Rome", "n1")) == {
        0
    }


def test_turns_said_later_than_the_change_are_not_over() -> None:
    """A correction of last year does not touch what was said since."""
    turns = [Turn("n0", "t", "user", "Berlin again!", said_at="2026-02-01T00:00:00Z")]
    change = Changed(fact("Lives in Berlin"), fact("Lives in Lisbon"))
    assert over_marks(Said(turns, [b""]), [change], DAY, latest="2025-01-01T00:00:00Z") == []
    assert [mark.as_ for mark in hidden_marks(["n0", "n0"], DAY)] == ["hidden"]


FACT = "Lives in Porto with two cats and a dog."


@pytest.mark.parametrize(
    ("text", "kept", "excerpts"),
    [
        (f"- [context | 0.90] {FACT}", False, 0),
        ("用户住在杭州，在一家医院做护士。", False, 0),
        ("- 用户住在杭州,在一家医院做护士", False, 0),
        ("用户住在苏州,在一家医院做护士。", True, 0),
        (f"I am from Braga myself.\n{FACT}", True, 1),
        ("I live in Porto with two cats and a dog.", True, 1),
    ],
)
def test_what_repeats_a_fact_is_not_kept_again(text: str, kept: bool, excerpts: int) -> None:
    """A turn of nothing else is left out; beside other words the line gives no excerpt."""
    turn = without_echo(judged(Turn("n0", "t", "user", text)), [FACT, "用户住在杭州,在一家医院做护士"])
    assert (turn is not None) == kept
    assert len(turn.excerpts if turn else ()) == excerpts
