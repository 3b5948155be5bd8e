"""What an update has ended is not told of today any more, neither by a summary nor as what somebody is to the user."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.extraction.update import Evidence, NewFact, Subject, Update
from memd.memory.apply import Origin, apply
from memd.memory.document import Document, Fact, empty_document, summary, with_summary

BEFORE = "2026-03-01T10:00:00Z"
NOW = datetime(2026, 5, 20, 10, 0, tzinfo=UTC)


def fact(number: int, content: str, person: str = "", relationship: str = "", **fields: Any) -> Fact:
    known: Fact = {"id": f"fact_{number:08x}", "content": content, "category": "identity", "confidence": 0.9}
    subject = {"subject": {"person": person, "relationship": relationship}} if person else {}
    return {**known, "createdAt": BEFORE, "source": "old", **subject, **fields}


def holding(*facts: Fact, **summaries: str) -> Document:
    document: Document = {**empty_document(Bucket("ana")), "facts": list(facts)}
    for name, text in summaries.items():
        document = with_summary(document, name, text, BEFORE)
    return document


def after(document: Document, said: str, content: str, *, subject: Subject | None = None, **update: Any) -> Document:
    """The document after one new fact, which the user states in these words. `update`: further parts of the update."""
    said_at = update.pop("said_at", "2026-05-20T10:00:00Z")
    sent = [replace(message, said_at=said_at) for message in identify("t", [Message("user", said)])]
    proof = (Evidence(0, said),)
    new = NewFact(
        content, "identity", 0.95, "user", "durable", "descriptive", proof, replaces=("fact_00000001",), subject=subject
    )
    origin = Origin("t", NOW, "a-model", "1")
    return apply(document, Update(new_facts=(new,), **update), sent, sent, origin, ApplySettings()).document


JOB = fact(1, "The user works as a nurse at Acme in Porto.")


def test_a_summary_of_today_loses_the_sentence_of_a_fact_that_ended() -> None:
    """The reply that replaces a fact may leave the summaries alone; what it replaced is not told on as true."""
    document = holding(JOB, fact(2, "The user sails."), workContext="Ana is a nurse at Acme. She sails on Sundays.")

    document = after(document, "I now work at Borealis", "The user works as a nurse at Borealis.")

    assert summary(document, "workContext") == "She sails on Sundays."


def test_what_a_reply_rewrites_and_what_is_past_stay() -> None:
    """A summary that was rewritten is the reply's; the past may hold what is over."""
    document = holding(JOB, workContext="Ana is a nurse at Acme.", earlierContext="She began at Acme.")

    new = {"workContext": "Ana left Acme for Borealis."}
    document = after(document, "I now work at Borealis", "The user works as a nurse at Borealis.", summaries=new)

    assert summary(document, "workContext") == "Ana left Acme for Borealis."
    assert summary(document, "earlierContext") == "She began at Acme."


def test_a_sentence_without_a_name_or_number_of_what_ended_stays() -> None:
    """A nurse she still is; only Acme is over."""
    document = holding(JOB, workContext="Ana works as a nurse and likes it.")

    document = after(document, "I now work at Borealis", "The user works as a nurse at Borealis.")

    assert summary(document, "workContext") == "Ana works as a nurse and likes it."


@pytest.mark.parametrize(
    ("said", "content", "relationship", "now"),
    [
        ("Declan and I broke up", "The user and Declan broke up.", "boyfriend", "ex-boyfriend"),
        ("Hab mich von Declan getrennt", "Die Nutzerin hat sich von Declan getrennt.", "Freund", "ex-Freund"),
        ("我和Declan分手了", "用户和Declan分手了。", "男朋友", "前男朋友"),
        ("Declan y yo lo dejamos", "La usuaria y Declan, su pareja, lo dejaron en mayo.", "pareja", "ex-pareja"),
        ("On n'est plus ensemble", "L'utilisatrice et Declan ne sont plus ensemble.", "copain", "ex-copain"),
        ("Wir sind nicht mehr zusammen", "Die Nutzerin und Declan sind nicht mehr zusammen.", "Freund", "ex-Freund"),
        ("We called it quits", "The user and Declan called it quits.", "partner", "ex-partner"),
        ("我和Declan离了", "用户和Declan离了。", "老公", "前老公"),
        ("Lo dejaron en casa", "La niña y su perro, que Declan cuida, lo dejaron.", "colega", "colega"),
        ("Declan's parents divorced", "Declan's parents divorced.", "husband", "husband"),
        ("Declan broke up with Kim", "Declan broke up with Kim.", "colleague", "colleague"),
        ("Declan separated the eggs", "Declan separated the eggs.", "husband", "husband"),
    ],
)
def test_who_parts_from_the_user_is_a_partner_no_longer(said: str, content: str, relationship: str, now: str) -> None:
    """Other facts about them stay, and no longer call them so; parents and colleagues who part change nothing."""
    document = after(holding(JOB, fact(2, "Declan speaks French.", "Declan", relationship)), said, content)

    assert document["facts"][0]["subject"] == {"person": "Declan", "relationship": now}


def test_a_relationship_that_a_new_fact_calls_former_is_former_in_all_facts() -> None:
    """What somebody was to the user is said once, in the newest fact about them."""
    document = holding(JOB, fact(2, "Jo draws.", "Jo", "boss"), fact(3, "Kim draws.", "Kim", "boss"))

    document = after(document, "Jo left us", "Jo left.", subject=Subject("Jo", "former boss"))

    assert [one["subject"]["relationship"] for one in document["facts"]] == ["former boss", "boss", "former boss"]


def test_a_parting_said_before_a_newer_fact_leaves_that_one() -> None:
    """Earlier words never replace later ones."""
    newer = fact(2, "Declan is back.", "Declan", "husband", updatedAt="2026-05-01T10:00:00Z")

    document = after(
        holding(JOB, newer), "I divorced Declan", "The user divorced Declan.", said_at="2026-04-01T10:00:00Z"
    )

    assert document["facts"][0]["subject"]["relationship"] == "husband"


def test_a_reason_that_names_what_has_ended_is_cut() -> None:
    """The fact holds on without it; a reason that names what another fact has still is left alone."""
    weekly = fact(2, "The user writes on Wednesdays, because the weekends belong to Acme.")
    sails = fact(3, "The user sails, because Porto is by the sea.")

    document = after(
        holding(JOB, weekly, sails, fact(4, "The user lives in Porto.")), "I work at Borealis", "The user: Borealis."
    )

    contents = [one["content"] for one in document["facts"][:2]]
    assert contents == ["The user writes on Wednesdays.", sails["content"]]


def test_an_aside_loses_the_clause_that_names_what_has_ended() -> None:
    """What was wrong stays to be avoided; the truth that was told beside it is no longer one."""
    wrong = "助手以为用户在北京，其实用户在成都，邱月才在北京。"
    known = holding(fact(1, "用户住在成都。"), fact(2, "邱月管 Kafka。", sourceError=wrong), fact(3, "用户去过北京。"))

    document = after(known, "我搬到杭州了", "用户住在杭州。")

    assert document["facts"][0]["sourceError"] == "助手以为用户在北京，邱月才在北京。"
