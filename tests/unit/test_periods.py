"""Periods: the time that a question is about, and what it does to the ranking."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support.recall_support import document, fact

from memd.recall.memories import alone
from memd.recall.periods import NO_PERIOD, period_of
from memd.recall.ranking import Indexed
from memd.recall.search import everything, rank

BLIND = Path(__file__).parents[1] / "data" / "blind" / "time_questions.jsonl"
NOW = datetime(2026, 6, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize("half", ["tuning", "held_out"])
def test_periods_of_questions_written_by_somebody_else(half: str) -> None:
    """English and Chinese: how many periods are seen, and how many questions without one are taken for one."""
    cases = [json.loads(line) for line in BLIND.read_text(encoding="utf-8").splitlines()]
    counted: Counter[str] = Counter()
    for case in cases:
        if case["half"] == half and case["lang"] in {"en", "zh"}:
            seen = period_of(case["question"], datetime.fromisoformat(case["today"]).replace(tzinfo=UTC)).until > 0
            counted["periods" if case["period"] else "others"] += 1
            counted["seen" if case["period"] else "false"] += seen
    assert counted["seen"] >= 0.7 * counted["periods"] > 20
    assert counted["false"] <= 0.07 * counted["others"] < 10


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


@pytest.mark.parametrize("query", ["9999-99-99", "0000-01-01", "on 0001-01-01", "9999-12-31", "next summer", "下周三"])
def test_no_day_of_any_calendar_is_no_period(query: str) -> None:
    """Nor is anything that is yet to come."""
    assert period_of(query, NOW) == NO_PERIOD
