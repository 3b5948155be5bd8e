"""A new fact ends what it plainly contradicts, and nothing else; what an ended fact tells besides stays."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from memd.config import ApplySettings, Settings
from memd.context import Bucket, Message, identify
from memd.evaluation.evaluate import read_users
from memd.evaluation.measuring import Measuring, Source
from memd.extraction.update import ConfirmedFact, Evidence, NewFact, RetiredFact, Update
from memd.memory.apply import Origin, apply
from memd.memory.contradicting import contradictions
from memd.memory.document import Document, Fact, empty_document
from memd.memory.many_texts import ManyTexts
from memd.memory.superseding import Later
from memd.memory.text import folded_lines
from memd.memory.whom import whom

NOW = datetime(2026, 5, 20, 10, 0, tzinfo=UTC)
CHANGES = Path(__file__).parents[2] / "evaluation" / "changes"
WHOSE = Path(__file__).parents[1] / "data" / "whose_end.jsonl"
BLIND = Path(__file__).parents[1] / "data" / "blind" / "replacements.jsonl"


def fact(number: int, content: str, **fields: Any) -> Fact:
    known: Fact = {"id": f"fact_{number:08x}", "content": content, "category": "identity", "confidence": 0.9}
    return {**known, "createdAt": "2026-03-01T10:00:00Z", "source": "old", **fields}


def active(said: str, new: str, *known: Fact, replaces: tuple[str, ...] = (), **update: Any) -> list[str]:
    """The contents after an update with one new fact ("": none), which the user states in these words."""
    document: Document = {**empty_document(Bucket("ana")), "facts": list(known)}
    sent = [replace(message, said_at="2026-05-20T10:00:00Z") for message in identify("t", [Message("user", said)])]
    proof = (Evidence(0, said),)
    proposed = NewFact(new, "identity", 0.95, "user", "durable", "descriptive", proof, replaces=replaces)
    whole = Update(new_facts=(proposed,) if new else (), **update)
    applied = apply(document, whole, sent, sent, Origin("t", NOW, "a-model", "1"), ApplySettings())
    return [one["content"] for one in applied.document["facts"]]


@pytest.mark.parametrize(
    ("old", "said", "new"),
    [
        ("The user lives in Leeds.", "We live in Bristol now", "The user lives in Bristol."),
        ("用户租住在浦东。", "我搬到闵行了", "用户住在闵行。"),
        ("The user takes 50 mg a day.", "it's 100 mg a day now", "The user takes 100 mg a day since March 2026."),
        ("The user smokes cigars.", "I don't smoke cigars", "The user does not smoke cigars."),
        ("The user climbs on Fridays.", "I gave up climbing", "The user gave up climbing because of an injury."),
        ("用户喜欢喝冰美式。", "冰美式戒了", "用户戒了冰美式，现在喝红茶。"),
        ("用户要求测试一律加 -o。", "测试不用加 -o", "用户跑测试不用加 -o，因为网快。"),
        (
            "The user keeps notes in Evernote.",
            "moved from Evernote to Obsidian",
            "The user moved all notes from Evernote to Obsidian.",
        ),
    ],
)
def test_what_a_new_fact_contradicts_ends(old: str, said: str, new: str) -> None:
    """Though the reply does not say what it replaces."""
    assert active(said, new, fact(1, old)) == [new]


@pytest.mark.parametrize(
    ("old", "said", "new"),
    [
        ("The user lives in Porto.", "we also live in Évora now", "The user also lives in Évora."),
        ("The user lives in Porto.", "I live in Évora", "The user lives in Évora until June."),
        ("The user lives in Porto.", "I lived in Évora in 2015", "The user lived in Évora in 2015."),
        ("The user likes cats.", "I like dogs now", "The user likes dogs."),
        ("The user drinks tea.", "I gave up coffee", "The user gave up coffee."),
        ("The user hates smoking.", "I gave up smoking", "The user gave up smoking."),
        ("用户的儿子住在成都。", "我搬到杭州了", "用户住在杭州。"),
        ("用户对虾过敏。", "对牛奶已经不过敏了", "用户对牛奶已经不过敏了。"),
        ("The user moved from Bonn to Berlin.", "moved to Bonn", "The user moved from Berlin to Bonn."),
    ],
)
def test_what_can_stand_beside_it_stays(old: str, said: str, new: str) -> None:
    """A second value, another time, thing or person."""
    assert active(said, new, fact(1, old)) == [old, new]


def test_what_a_person_wrote_said_again_or_dated_as_an_event_stays() -> None:
    """Only what the user's words contradict ends; a confirmation in the same update is one of them."""
    said, new = "We live in Bristol now", "The user lives in Bristol."
    old = "The user lives in Leeds."
    assert active(said, new, fact(1, old, source="manual")) == [old, new]
    assert active(said, new, fact(1, old, category="event")) == [old, new]
    assert active(said, new, fact(1, old, createdAt="2026-06-01T00:00:00Z")) == [old, new]
    again = (ConfirmedFact("fact_00000001", said),)
    assert active(said, new, fact(1, old), confirmed_facts=again) == [old, new]


def test_what_a_replaced_fact_tells_besides_stays() -> None:
    """The job has changed; the home and the partner have not, and a name would be lost."""
    old = fact(1, "The user lives in Norwich with her partner Dele and works as a midwife at the hospital.")
    new = "The user runs antenatal classes."
    ids = ("fact_00000001",)
    left = "I've left the hospital. I run antenatal classes"
    assert active(left, new, old, replaces=ids) == [new, "The user lives in Norwich with her partner Dele."]
    carried = "The user lives in Norwich with Dele and runs antenatal classes."
    assert active(left, carried, old, replaces=ids) == [carried]


@pytest.mark.parametrize(
    ("old", "said", "rest"),
    [
        ("The user has a dog named Pepper and a tortoise named Atlas.", "Pepper died",
         "The user has a tortoise named Atlas."),
        ("用户每周一学吉他，每周四上陶艺课。", "吉他不学了", "用户每周四上陶艺课。"),
    ],
)  # fmt: skip
def test_what_a_retired_fact_tells_besides_stays(old: str, said: str, rest: str) -> None:
    """Half of it is over; with a wish to forget in the same words nothing is kept of it."""
    retired = (RetiredFact("fact_00000001", said, said),)
    assert active(said, "", fact(1, old), retired_facts=retired) == [rest]
    wish = f"{said}. Forget that I told you."
    assert active(wish, "", fact(1, old), retired_facts=retired) == []


@pytest.mark.parametrize(("half", "found", "of"), [("open", 7, 16), ("held_out", 5, 15)])
def test_blind_replacements(half: str, found: int, of: int) -> None:
    """What ends is found where the sentences alone say it; what stays beside is never ended."""
    rows = [row for row in map(json.loads, BLIND.read_text("utf-8").splitlines()) if row["half"] == half]

    def ends(row: dict[str, str]) -> bool:
        return Later(fact(2, row["new"], evidence=[{"quote": row["message"]}])).supersedes(fact(1, row["old"]))

    whole = [ends(row) for row in rows if row["label"] == "replaces"]
    assert (len(whole), sum(whole) >= found) == (of, True)
    assert not any(ends(row) for row in rows if row["label"] == "beside")


def test_what_is_superseded_is_never_passed_over() -> None:
    """The few searches that find the rivals of a new fact leave out none of those that it supersedes."""
    rows = list(map(json.loads, BLIND.read_text("utf-8").splitlines()))
    more = [
        ("The user’s Ｃａｔ is named Mimi.", "The user's cat is named Momo."),
        ("住在上海，3 只猫。", "住在上海，5 只猫。"),
    ]
    olds = [*(row["old"] for row in rows), *(old for old, _ in more)]
    found = 0
    for new in [*(row["new"] for row in rows), *(new for _, new in more)]:
        later = Later(fact(2, new, evidence=[{"quote": f"{new} We moved and changed it."}]))
        ended = {place for place, old in enumerate(olds) if later.supersedes(fact(1, old))}
        assert ended <= set(later.rivals(ManyTexts(folded_lines(olds))))
        found += len(ended)
    assert found >= 12


@pytest.mark.parametrize(("half", "stale", "lost"), [("open", 3, 1), ("held_out", 10, 2)])
def test_changes_over_months(half: str, stale: int, lost: int) -> None:
    """Forty users whose replies forget what they replace: at most so many old values stay, and facts go with them."""
    source = Source(replay=(CHANGES / "replies" / half,))
    figures = Measuring(Settings(), read_users([CHANGES / "sets" / half]), source).measure(1)["figures"]
    assert figures["stale"][half]["yes"] <= stale
    assert figures["lost"][half]["yes"] <= lost


def test_whom_a_sentence_is_about_decides_what_it_ends() -> None:
    """Without a `subject` too: the sister's move ends no fact about the user, and the user's new flat is the user's."""
    rows = list(map(json.loads, WHOSE.read_text("utf-8").splitlines()))
    results = [(row, active(row["said"], row["new"], fact(1, row["old"]))) for row in rows]
    assert [row["new"] for row, left in results if row["label"] == "beside" and left != [row["old"], row["new"]]] == []
    unfound = [row["new"] for row, left in results if row["label"] == "ends" and left != [row["new"]]]
    in_other_words = [
        "The user's dad stopped smoking.",
        "用户的妻子不吃辣。",
        "用户的姐姐住在南京。",
        "用户的父亲不抽烟。",
    ]
    assert unfound == in_other_words


@pytest.mark.parametrize(
    ("content", "other", "same"),
    [
        ("The user's wife eats fish.", "The user eats fish.", False),
        ("The user's older sister sings.", "The user's younger sister sings.", False),
        ("The user's ex-husband sings.", "The user's husband sings.", False),
        ("The user's daughter Mia sings.", "Mia does not sing.", True),
        ("Mia, the user's daughter, sings.", "Mia (daughter) does not sing.", True),
        ("Mia's violin is new.", "The user's violin is new.", False),
        ("Since March 2026, the user's sister lives in Faro.", "The user lives in Faro.", False),
        ("Mia and the user live in Faro.", "The user lives in Porto.", True),
        ("The user's mother tongue is Dutch.", "The user speaks Dutch.", True),
        ("Likes cats.", "The user likes cats.", True),
        ("Stopped smoking.", "The user smokes.", True),
        ("Die Schwester des Nutzers zog nach Faro.", "Der Nutzer wohnt in Faro.", False),
        ("La hermana del usuario vive en Faro.", "El usuario vive en Faro.", False),
        ("用户妈妈吃素。", "用户吃素。", False),
        ("妻子不吃鱼。", "用户吃鱼。", False),
        ("用户的前妻吃素。", "用户的妻子吃素。", False),
        ("用户的小女儿米娅拉小提琴。", "米娅不拉小提琴。", True),
        ("用户的朋友圈很大。", "用户的圈子很小。", True),
        ("用户和妻子住在法鲁。", "用户住在波尔图。", True),
        ("小提琴不学了。", "用户学小提琴。", True),
        ("周末喝咖啡。", "用户喝咖啡。", True),
    ],
)
def test_whom_a_sentence_is_about(content: str, other: str, same: bool) -> None:
    """The possessor phrase, or a name that is the sentence's subject; else the user."""
    assert (whom(content) == whom(other)) is same


def test_facts_about_two_persons_are_neither_duplicates_nor_contradictions() -> None:
    """However alike the sentences are; the audit compares them so too."""
    old, new = (
        "The user sings in the church choir on Monday evenings.",
        "Mia sings in the church choir on Monday evenings.",
    )
    assert active(new, new, fact(1, old)) == [old, new]
    pair = [fact(1, "The user speaks Dutch."), fact(2, "Ben does not speak Dutch.")]
    assert list(contradictions(pair)) == []
    assert list(contradictions([pair[0], fact(2, "The user does not speak Dutch.")])) == [(1, 0, "negation")]


def test_what_was_said_later_about_somebody_else_holds_nothing_back() -> None:
    """A fact that arrives late is over only by what was said of the same person."""
    later = fact(1, "Mia does not eat fish.", createdAt="2026-06-01T00:00:00Z")
    assert active("I eat fish", "The user eats fish.", later) == [later["content"], "The user eats fish."]
