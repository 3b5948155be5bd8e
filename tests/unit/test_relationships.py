"""Relationships that have ended: what the block calls a former partner or colleague, and whom it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest
from support.recall_support import document, fact

from memd.config import RecallSettings
from memd.memory.document import Document
from memd.recall.inject import inject


def about(number: int, content: str, person: str, relationship: str, month: int = 1, **fields: Any) -> dict[str, Any]:
    subject = {"person": person, "relationship": relationship}
    return fact(f"f{number}", content, subject=subject, saidAt=f"2026-{month:02}-01T09:00:00Z", **fields)


def ended(old: dict[str, Any], reason: str, **fields: Any) -> dict[str, Any]:
    return {**old, "archivedAt": "2026-05-18T08:00:00Z", "archiveReason": reason, **fields}


def told(*facts: dict[str, Any], archive: tuple[dict[str, Any], ...] = ()) -> str:
    held: Document = {**document(*facts), "archive": list(archive)}
    return inject(held, RecallSettings())


@pytest.mark.parametrize(
    ("content", "person", "before", "since"),
    [
        ("Is allergic to nuts", "Jun", "wife", "ex-wife"),
        ("Speaks French", "Declan", "boyfriend", "former partner"),
        ("对花生过敏", "林珊", "老婆", "前妻"),
        ("喜欢爬山", "周航", "男朋友", "前男友"),
        ("Reviews the parser", "Johanne", "co-maintainer", "former co-maintainer"),
    ],
)
def test_a_newer_former_relationship_is_shown_with_the_older_facts(
    content: str, person: str, before: str, since: str
) -> None:
    """The older facts stay as they are stored; the block says what the person is now."""
    old = about(1, content, person, before)
    block = told(old, about(2, "Moved to Faro", person, since, month=5))
    assert f"about {person} ({since}): {content}" in block
    assert f"({before})" not in block
    assert old["subject"] == {"person": person, "relationship": before}


@pytest.mark.parametrize(
    ("was", "now", "shown"),
    [
        ("Priya's boyfriend is Declan.", "Priya and Declan broke up on 17 May 2026.", "Declan (former boyfriend)"),
        ("林玥的男朋友叫周航。", "林玥2026年2月和周航分手了。", "周航 (前男朋友)"),
    ],
)
def test_what_took_the_place_of_a_fact_says_that_it_ended(was: str, now: str, shown: str) -> None:
    """The new fact has no subject; the facts beside it lose the old relationship all the same."""
    person, _, rest = shown.partition(" (")
    before = rest.strip(")").removeprefix("former ").removeprefix("前")
    gone = ended(about(1, was, person, before), "replaced", replacedBy="f2")
    block = told(
        fact("f2", now, saidAt="2026-05-18T08:00:00Z"), about(3, "Grew up in Lyon", person, before), archive=(gone,)
    )
    assert f"about {shown}: Grew up in Lyon" in block


def test_a_retirement_counts_with_its_reason() -> None:
    """Without a new fact the model's words on why the old one went say it."""
    gone = ended(about(1, "Ana is the user's wife", "Ana", "wife"), "retired", archiveNote="they divorced")
    assert "about Ana (former wife): Sings" in told(about(2, "Sings", "Ana", "wife"), archive=(gone,))
    over = ended(about(1, "Ana is on leave", "Ana", "wife"), "retired", archiveNote="her leave is over")
    assert "about Ana (wife): Sings" in told(about(2, "Sings", "Ana", "wife"), archive=(over,))


def test_who_only_has_the_same_name_keeps_the_relationship() -> None:
    """A former boss Tom does not make the son Tom a former one; nor does an older ending undo a newer word."""
    block = told(about(1, "Is four", "Tom", "son"), about(2, "Moved to Faro", "Tom", "former boss", month=5))
    assert "about Tom (son): Is four" in block
    again = told(
        about(1, "Left in March", "Jun", "ex-wife", month=3),
        about(2, "Is back home", "Jun", "wife", month=6),
        about(3, "Likes figs", "Jun", "wife", month=1),
    )
    assert "about Jun (wife): Is back home" in again
    assert "about Jun (wife): Likes figs" in again


@pytest.mark.parametrize("relationship", ["前台", "前辈", "executive", "latecomer", "ex"])
def test_words_that_only_begin_like_a_former_one_are_left_alone(relationship: str) -> None:
    """They are what the person is."""
    assert f"about Kim ({relationship}): Sings" in told(
        about(1, "Sings", "Kim", relationship), about(2, "Runs", "Kim", relationship, month=4)
    )
