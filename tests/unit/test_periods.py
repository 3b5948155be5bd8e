"""Periods: the time that a question is about, and what it does to the ranking."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.recall_support import document, fact, turn

from memd.memory.said.turns import Mark, Said
from memd.recall import edges
from memd.recall.memories import alone
from memd.recall.of_document import indexed, ranked
from memd.recall.periods import NO_PERIOD, Period, period_of
from memd.recall.ranking import Indexed
from memd.recall.search import everything, rank

DATA = Path(__file__).parents[1] / "data"
BLIND = DATA / "blind" / "time_questions.jsonl"
OWN = DATA / "time_questions_own.jsonl"
EVENTS = DATA / "time_events_own.jsonl"
NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def counted(cases: list[dict[str, Any]]) -> Counter[str]:
    """How many periods are seen, and how many questions without one are taken for one."""
    found: Counter[str] = Counter()
    for case in cases:
        seen = period_of(case["question"], datetime.fromisoformat(case["today"]).replace(tzinfo=UTC)).until > 0
        found["periods" if case["period"] else "others"] += 1
        found["seen" if case["period"] else "false"] += seen
    return found


@pytest.mark.parametrize("half", ["tuning", "held_out"])
def test_periods_of_questions_written_by_somebody_else(half: str) -> None:
    """English and Chinese: how many periods are seen, and how many questions without one are taken for one."""
    found = counted([case for case in lines(BLIND) if case["half"] == half and case["lang"] in {"en", "zh"}])
    assert found["seen"] >= 0.7 * found["periods"] > 20
    assert found["false"] <= 0.07 * found["others"] < 10


@pytest.mark.parametrize("half", ["tuning", "held_out"])
def test_periods_in_other_languages_by_somebody_else(half: str) -> None:
    """German, Spanish and French, few cases: all three together."""
    found = counted([case for case in lines(BLIND) if case["half"] == half and case["lang"] in {"de", "es", "fr"}])
    assert found["seen"] >= 0.7 * found["periods"] > 0
    assert found["false"] <= 1


@pytest.mark.parametrize("lang", ["de", "es", "fr"])
def test_periods_of_the_authors_own_questions(lang: str) -> None:
    """They were written before the rules, but by the same hand."""
    found = counted([case for case in lines(OWN) if case["lang"] == lang])
    assert found["seen"] >= 0.9 * found["periods"] > 20
    assert found["false"] <= 0.07 * found["others"]


def said_then(place: int, said: dict[str, str]) -> dict[str, Any]:
    about = {"subject": {"person": said["person"]}} if "person" in said else {}
    return fact(f"f{place}", said["content"], 0.9, saidAt=f"{said['said']}T08:00:00Z", **about)


@pytest.mark.parametrize("lang", ["de", "en", "es", "fr", "zh"])
def test_an_event_is_the_edge_of_a_period(lang: str) -> None:
    """An event among the facts gives its day; one that is not there, and one of every day, gives no period."""
    now = datetime(2025, 11, 22, 12, tzinfo=UTC)
    memory, *cases = (line for line in lines(EVENTS) if line["memory"] == lang)
    indexed = Indexed(alone(document(*map(said_then, range(99), memory["facts"])), now))
    wrong = []
    for case in cases:
        period = edges.period_of(case["question"], now, indexed)
        if case["edge"] is None:
            wrong += [case["id"]] if period.until else []
            continue
        before, _ = edges.SIDES[case["side"]]
        edge = period.until if case["side"] == "before" else period.since + before * 86_400
        if abs(edge - datetime.fromisoformat(case["edge"]).replace(tzinfo=UTC).timestamp()) > 86_400:
            wrong.append(case["id"])
    assert len(wrong) <= 0.1 * len(cases), wrong


def test_what_was_said_before_the_event_stands_first() -> None:
    """A plan of the event, and what only names it, are not its day; without the event there is no period."""
    said: list[dict[str, Any]] = [
        fact("plan", "The user wants to move to the sea", 0.9, saidAt="2024-01-10T00:00:00Z"),
        fact("first", "The user's flat has two rooms", 0.9, saidAt="2025-02-01T00:00:00Z"),
        fact("moved", "The user moved to Porto", 0.9, saidAt="2025-06-20T00:00:00Z"),
        fact("since", "The user has slept badly since the move", 0.9, saidAt="2025-09-20T00:00:00Z"),
        fact("now", "The user's flat has three rooms", 0.9, saidAt="2026-02-20T00:00:00Z"),
    ]
    query = "How many rooms did the flat have before the move?"
    indexed = Indexed(alone(document(*said), NOW))
    found = [hit.fact["id"] for hit in rank(indexed, everything(query), period=edges.period_of(query, NOW, indexed))]
    assert found.index("first") < found.index("now")
    without = Indexed(alone(document(said[1], said[4]), NOW))
    assert edges.period_of(query, NOW, without) == period_of(query, NOW) == Period(past=True)


@pytest.mark.parametrize(
    "query",
    [
        "What did she cook last year?",
        "what did she cook in 2025",
        "2025年做了什么菜",
        "去年做的菜",
        "cooked two years ago",
    ],
)
def test_what_was_said_then_stands_first(query: str) -> None:
    """The other answers stay; a question without a period prefers none of them."""
    said: list[dict[str, Any]] = [
        fact("now", "Cooked 做菜 a stew", 0.9, saidAt="2026-06-01T00:00:00Z"),
        fact("then", "Cooked 做菜 a soup", 0.9, saidAt="2025-06-20T00:00:00Z"),
        fact("long", "Cooked 做菜 a roast", 0.9, saidAt="2024-06-20T00:00:00Z"),
    ]
    indexed = Indexed(alone(document(*said), NOW))
    found = [hit.fact["id"] for hit in rank(indexed, everything(query), period=period_of(query, NOW))]
    assert found[0] == ("long" if "two years" in query else "then")
    assert sorted(found) == ["long", "now", "then"]


@pytest.mark.parametrize(
    "query",
    [
        "what did I say last week",
        "What did we talk about last week?",
        "上周我说了什么",
        "上周我跟你聊了些什么？",
        "Was habe ich letzte Woche gesagt?",
        "¿Qué dije la semana pasada?",
        "Qu'est-ce que j'ai dit la semaine dernière ?",
    ],
)
def test_a_question_of_nothing_but_a_period_brings_what_was_said_then(query: str) -> None:
    """Facts and excerpts, the newest first, whatever their words, also what has changed since."""
    june = [datetime(2026, 6, day, 10, tzinfo=UTC).isoformat() for day in range(20, 31)]
    facts = [fact(f"f{day}", f"Cooks dish number {day}", 0.9 - day / 100, saidAt=june[day]) for day in range(11)]
    turns = [turn(f"t{day}", f"My canoe has {day} holes.", june[day]) for day in (1, 4, 10)]
    facts[0]["provenBy"] = [one.id for one in turns]
    said = Said(turns, [b""] * 3, [Mark("t4", "over")])
    memory = indexed(document(*facts), NOW, said)
    period = period_of(query, NOW)
    assert period.alone
    hits = ranked(memory, query, period)
    # The week of 30 June 2026 began on Monday, the 29th; the one before is 22 to 28 June.
    assert [hit.fact["id"] for hit in hits] == ["f8", "f7", "f6", "f5", "f4", "said_t4", "f3", "f2"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.parametrize(
    "query", ["what did I eat last week", "上周我吃了什么", "what did I say about my back on 12 February"]
)
def test_a_question_with_any_other_word_is_about_that(query: str) -> None:
    """Then the period only prefers what was said in it."""
    period = period_of(query, NOW)
    assert period.until
    assert not period.alone


@pytest.mark.parametrize("query", ["9999-99-99", "0000-01-01", "on 0001-01-01", "9999-12-31", "next summer", "下周三"])
def test_no_day_of_any_calendar_is_no_period(query: str) -> None:
    """Nor is anything that is yet to come."""
    assert period_of(query, NOW) == NO_PERIOD
