"""A fact's subject: only where its sentence is about that person, and shown once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.extraction.update import Evidence, NewFact, Subject, Update
from memd.memory.apply import Origin, apply
from memd.memory.document import Document, Fact, empty_document
from memd.recall.inject import fact_line

NOW = datetime(2026, 5, 20, 10, 0, tzinfo=UTC)
MIRA = Subject("Mira", "daughter")


def stored(content: str, subject: Subject | None, *known: Fact, speaker: str | None = None) -> list[Fact]:
    """The facts after an update with this one, which the user says in the same words."""
    document: Document = {**empty_document(Bucket("ana")), "facts": list(known)}
    sent = identify("t", [Message("user", content, name=speaker)])
    new = NewFact(content, "context", 0.95, "user", "durable", "descriptive", (Evidence(0, content),), subject=subject)
    update = Update(new_facts=(new,))
    return list(apply(document, update, sent, sent, Origin("t", NOW, "m", "1"), ApplySettings()).document["facts"])


@pytest.mark.parametrize(
    ("content", "subject"),
    [
        ("The user drives Mira to school every day.", MIRA),
        ("The user can't swim.", Subject("the user", "self")),
        ("用户每天送米娅上学。", Subject("米娅", "女儿")),
        ("用户不会游泳。", Subject("用户", "本人")),
    ],
)
def test_a_fact_about_the_user_has_no_subject(content: str, subject: Subject) -> None:
    """Whomever else it names; also one that a document has so is shown without."""
    [fact] = stored(content, subject)
    assert "subject" not in fact
    assert "about" not in fact_line(fact)
    kept = {**fact, "subject": {"person": subject.person, "relationship": subject.relationship}}
    assert fact_line(kept) == fact_line(fact)


@pytest.mark.parametrize(
    ("content", "subject"),
    [
        ("Mira plays the flute.", MIRA),
        ("The user's daughter Mira plays the flute.", MIRA),
        ("Plays the flute.", MIRA),
        ("The user has left Mira.", Subject("Mira", "ex-wife")),
        ("米娅拉小提琴。", Subject("米娅", "女儿")),
    ],
)
def test_a_fact_about_somebody_else_keeps_its_subject(content: str, subject: Subject) -> None:
    """So does one that says what somebody is to the user no longer."""
    [fact] = stored(content, subject)
    assert fact["subject"] == {"person": subject.person, "relationship": subject.relationship}


@pytest.mark.parametrize(
    ("content", "subject", "line"),
    [
        ("Mira plays the flute.", MIRA, "about daughter: Mira plays the flute."),
        ("The user's daughter Mira plays the flute.", MIRA, "The user's daughter Mira plays the flute."),
        ("Plays the flute.", MIRA, "about Mira (daughter): Plays the flute."),
        ("Mira plays the flute.", Subject("Mira", ""), "Mira plays the flute."),
        ("Bananas make her sick.", Subject("Ana", "niece"), "about Ana (niece): Bananas make her sick."),
        ("米娅拉小提琴。", Subject("米娅", "女儿"), "about 女儿: 米娅拉小提琴。"),
    ],
)
def test_a_name_is_shown_once(content: str, subject: Subject, line: str) -> None:
    """The line says of the person what the sentence does not."""
    [fact] = stored(content, subject)
    assert fact_line(fact) == f"- [context | 0.95] {line} (since 2026-05)"


@pytest.mark.parametrize("first", [MIRA, None])
def test_the_same_sentence_with_and_without_a_subject_is_one_fact(first: Subject | None) -> None:
    """In either order, where the sentence names the person or is about the user."""
    for content in ("Mira is allergic to cats.", "The user drives Mira to school."):
        [known] = stored(content, first)
        [fact] = stored(f"{content}", None if first else MIRA, {**known, "source": "old"})
        assert fact["id"] == known["id"]


def test_what_another_speaker_says_proves_nothing_about_the_user() -> None:
    """Though the model names the speaker as the subject of a sentence about the user."""
    assert stored("The user cooks with Ben.", Subject("Ben", "friend"), speaker="Ben") == []
    assert stored("Ben is vegan.", Subject("Ben", "friend"), speaker="Ben") != []
