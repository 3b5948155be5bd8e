"""Which facts of a large memory the model sees."""

from __future__ import annotations

from typing import Any

import pytest

from memd.context import Bucket, Message, identify
from memd.extraction.protocol import Maintenance
from memd.memory.document import Document, Fact, empty_document
from memd.workers.shown import ENOUGH, MOST, shown

NONE = Maintenance()


def fact(number: int, content: str, **fields: Any) -> Fact:
    given: Fact = {"id": f"fact_{number:08x}", "content": content, "category": "preference", "confidence": 0.9}
    return {**given, "createdAt": "2026-01-01T00:00:00Z", "source": "old", **fields}


def crowd(*facts: Fact, size: int = 300) -> Document:
    """A memory of `size` facts, of which these come first."""
    others = [fact(1_000 + n, f"The user tried recipe {n:04} with cheese.") for n in range(size - len(facts))]
    return {**empty_document(Bucket("ana")), "facts": [*facts, *others]}


def sees(document: Document, *texts: str, maintenance: Maintenance = NONE, **fields: Any) -> frozenset[str]:
    new = identify("t", [Message("user", text, **fields) for text in texts])
    ids = shown(document, "t", new, (), maintenance)
    assert ids is not None
    return ids


def test_a_memory_of_a_hundred_facts_is_shown_whole() -> None:
    """Nothing is chosen, and nothing is computed."""
    assert shown(crowd(size=ENOUGH), "t", (Message("user", "I moved."),), (), NONE) is None


@pytest.mark.parametrize(
    ("content", "said", "fields"),
    [
        ("The user's daughter Mira plays the cello.", "mira has given it up", {}),
        ("The user's flat has number 4711.", "It is 4711 now?", {}),
        ("The user rides an old bike.", "I have sold my bikes", {}),
        ("用户的女儿在学大提琴。", "她不再学大提琴了", {}),
        ("用户开Tesla上班。", "tesla 卖掉了", {}),
        ("The user's mother is well.", "李娜 moved", {"subject": {"person": "李娜", "relationship": "mother"}}),
        ("The user lives in Porto.", "We moved last week", {"category": "identity"}),
    ],
)
def test_what_the_messages_may_change_is_shown(content: str, said: str, fields: dict[str, Any]) -> None:
    """By name, number, rare word, person, or category; of 300 facts 100 are shown."""
    ids = sees(crowd(fact(1, content, **fields)), said)
    assert "fact_00000001" in ids
    assert len(ids) == ENOUGH


def test_a_signal_shows_its_category() -> None:
    """A message with the signal of decisions shows those, though they share no word with it."""
    kept = [fact(n, f"The user chose plan {n:04}", category="decision") for n in range(90)]
    homes = [fact(100 + n, f"The user stayed in town {n:04}", category="identity") for n in range(90)]
    ids = sees(crowd(*homes, *kept), "We go ahead", signals=frozenset({"decision"}))
    assert {one["id"] for one in kept} <= ids


def test_facts_of_the_threads_last_turns_are_shown() -> None:
    """Those that quote its last 20 quoted messages; earlier ones only as others are."""
    facts = [
        fact(n, "The user tried a dish", evidence=[{"thread": "t", "message": f"m{n}", "quote": "q"}])
        for n in range(30)
    ]
    document = crowd(*facts, fact(50, "The user tried a dish", evidence=[{"thread": "u", "message": "m29"}]))
    ids = sees(document, "recipe with cheese")
    assert [n for n in range(30) if f"fact_{n:08x}" in ids] == list(range(10, 30))
    assert "fact_00000032" not in ids


def test_reviews_and_merges_are_chosen_from_the_whole_memory() -> None:
    """A fact to review is shown whatever was said, and so are facts that may be merged."""
    document = crowd(*(fact(n, "The user owns a cat", category="context") for n in range(8)))
    maintenance = Maintenance({"fact_00000000": "stale"}, ("context",))
    ids = sees(document, "recipe with cheese", maintenance=maintenance)
    assert {f"fact_{n:08x}" for n in range(8)} <= ids
    assert len(ids) == ENOUGH


def test_a_name_that_most_facts_have_shows_no_more_than_two_hundred() -> None:
    """A request stays small: of these facts the ones nearest to the messages are shown."""
    facts = [fact(n, f"The user's friend Mira likes song {n:04}") for n in range(290)]
    ids = sees(crowd(*facts, fact(400, "The user's friend Mira plays the cello")), "Mira gave up the cello")
    assert len(ids) == MOST
    assert "fact_00000190" in ids
