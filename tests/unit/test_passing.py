"""Passing: facts of a life against records of the talk and states of an hour, on cases written before the rules.

Catches stand beside false alarms. The cases `after` were written when the first rules stood, to try them; the second
design was made with them at hand.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.extraction.update import Evidence, NewFact, Update
from memd.memory import refused
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import empty_document
from memd.memory.gates.passing import passing_refusal
from memd.memory.gates.said_names import SaidNames
from memd.memory.gates.said_numbers import SaidNumbers

CASES = Path(__file__).parents[1] / "data" / "blind" / "passing.jsonl"
NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)


def stored(message: str, content: str, category: str = "context") -> Applied:
    sent = identify("t", [Message("user", message)])
    fact = NewFact(content, category, 0.95, "user", "durable", "descriptive", (Evidence(0, message),))
    document, settings = empty_document(Bucket("ana")), ApplySettings(keep_refused=20)
    return apply(document, Update(new_facts=(fact,)), sent, sent, Origin("t", NOW, "a-model", "1"), settings)


@pytest.mark.parametrize(
    ("half", "gate", "wrong", "true", "caught", "sloppy"),
    [
        ("open", "talk", 0, 20, 20, 20),
        ("held_out", "talk", 1, 20, 20, 20),
        ("after", "talk", 2, 25, 23, 24),
        ("open", "now", 0, 20, 20, 20),
        ("held_out", "now", 0, 20, 20, 20),
        ("after", "now", 1, 27, 18, 27),
    ],
)
def test_what_lasts_is_kept_and_what_passes_is_not(
    half: str, gate: str, wrong: int, true: int, caught: int, sloppy: int
) -> None:
    """Who was asked decides about requests, and the state about words for now."""
    refusals: dict[str, list[str]] = {"keep": [], "drop": []}
    for row in map(json.loads, CASES.read_text(encoding="utf-8").splitlines()):
        if (row["half"], row["gate"]) == (half, gate):
            refusals[row["label"]].append(row["id"] if passing_refusal(row["fact"], [row["quote"]]) else "")
    assert (len(refusals["keep"]), len(refusals["drop"])) == (true, sloppy)
    alarms = list(filter(None, refusals["keep"]))
    assert len(alarms) <= wrong, alarms if half != "held_out" else len(alarms)
    assert sum(map(bool, refusals["drop"])) >= caught


def test_a_record_of_the_talk_is_kept_among_the_refused() -> None:
    """`memd why --refused` shows it with its reason in words."""
    applied = stored("can you recommend a tent?", "The user asked about tents.")
    assert [fact["refusedWhy"] for fact in refused.facts_of(applied.document)] == ["about_the_talk"]
    assert "about_the_talk" in refused.REASONS


@pytest.mark.parametrize(
    ("said", "content", "until"),
    [
        ("I'm on parental leave right now", "The user is on parental leave right now.", "2027-02-18"),
        ("I'm on crutches at the moment", "The user is on crutches at the moment.", ""),
        ("I live in Oslo right now", "The user lives in Oslo since 2024, right now.", ""),
        ("I currently work nights", "The user currently works nights.", ""),
    ],
)
def test_what_is_for_now_ends_by_itself(said: str, content: str, until: str) -> None:
    """Where the model named no end, it holds for 90 days; needs, dates and a mere "currently" set none."""
    (fact,) = stored(said, content).document["facts"] or [{}]
    assert fact.get("validUntil", "")[:10] == until


@pytest.mark.parametrize(
    ("said", "fact", "is_said"),
    [
        ("I have cats", "has 20 cats", False),
        ("I have cats", "has 11 cats", False),
        ("I have 2 cats", "has 20 cats", False),
        ("I have 2 cats", "has 4 cats", False),
        ("I pay 45 a month", "pays 4,500 a month", False),
        ("我有两只猫", "用户有20只猫。", False),
        ("I moved out in May", "moved out on 12 May", False),
        ("today is my first day at work", "started work on 2026-11-20", True),
        ("my son is 6", "has a son aged 6 (2026-11)", True),
        ("rent is 70 to 72k", "pays between 70,000 and 72,000", True),
        ("月薪三万五", "用户月薪35000元。", True),
        ("I commute 1.5 hours", "commutes 90 minutes", True),
        ("20 km each way", "commutes 40 km a day", True),
        ("quarter to seven", "leaves at 6:45", True),
        ("halb sieben", "steht um 6:30 auf", True),
        ("晚上七点一刻", "用户19:15下课。", True),
        ("my kids Mia, Theo and Ada", "has three kids", True),
    ],
)
def test_a_multiple_needs_its_unit_and_the_day_a_date(said: str, fact: str, is_said: bool) -> None:
    """A number that only happens to be today's, or ten times a said one, was not said."""
    assert (SaidNumbers([said], date(2026, 11, 20)).missing(fact) == "") is is_said


@pytest.mark.parametrize(
    ("said", "fact", "is_said"),
    [
        ("we run k8s on aws", "The user's team runs Kubernetes on AWS.", True),
        ("I write JS and TS", "The user writes JavaScript and TypeScript.", True),
        ("my editor is vs code", "The user uses Visual Studio Code.", True),
        ("I live in NYC", "The user lives in New York City.", True),
        ("moved to the United States", "The user moved to the US.", True),
        ("I'm british", "The user is from the UK.", True),
        ("Wir wohnen in München", "The user lives in Munich.", True),
        ("Ich wohne in Köln.", "The user lives in Cologne.", True),
        ("Abito a Firenze", "The user lives in Florence.", True),
        ("Wir wohnen in München", "The user lives in Hamburg.", False),
        ("Abito a Firenze", "The user lives in Rome.", False),
        ("love my Toyota", "The user drives a Honda.", False),
        ("I write JS", "The user writes TypeScript.", False),
        ("as I said, my boss is strict", "The user's boss is Amelia Smith.", False),
        ("I'm Dutch", "The user is from France.", False),
    ],
)
def test_short_forms_and_names_that_sound_alike_are_said(said: str, fact: str, is_said: bool) -> None:
    """A short form says its name; a translation sounds like it, and any other name was not said."""
    assert (SaidNames([said]).missing(fact) == "") is is_said
