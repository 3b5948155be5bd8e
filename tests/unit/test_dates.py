"""Dates: the day on which something was said where it was said, and the months that facts and summaries carry."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.recall_support import document, fact

from memd import config
from memd.config import ExtractionSettings, RecallSettings
from memd.context import Message
from memd.errors import ConfigError
from memd.extraction import Request
from memd.extraction.prompt import build
from memd.memory.document import with_summary
from memd.push.times import iso, today_of
from memd.recall.inject import fact_line, inject
from memd.recall.memories import alone

ARRIVED = datetime(2026, 11, 20, 23, 30, tzinfo=UTC)
BEFORE, AFTER = date(2026, 11, 20), date(2026, 11, 21)


@pytest.mark.parametrize(
    ("created_at", "zone", "day"),
    [
        ("2026-11-20T23:30:00Z", "UTC", BEFORE),
        ("2026-11-20T23:30:00Z", "Asia/Shanghai", AFTER),
        ("2026-11-21T06:30:00+07:00", "UTC", AFTER),
        ("2026-11-20T22:30:00-01:00", "Asia/Shanghai", BEFORE),
        (None, "Asia/Tokyo", AFTER),
        (None, "UTC", BEFORE),
    ],
)
def test_a_message_was_said_on_the_day_of_its_place(created_at: str | None, zone: str, day: date) -> None:
    """The offset of its own time, else the setting: a time in UTC says nothing of the place. So is today."""
    said = Message("user", "I moved.", said_at=iso(ARRIVED), created_at=created_at)
    request = Request({}, (said,), timezone=ExtractionSettings(timezone=zone).zone)
    shown = {today: build(request, today) for today in (BEFORE, AFTER)}
    assert '<m i="0" role="user">I moved.</m>' in shown[day]
    other = AFTER if day == BEFORE else BEFORE
    assert f'<m i="0" role="user" at="{day}">I moved.</m>' in shown[other]
    assert today_of(created_at, ARRIVED, request.timezone) == day


def test_a_time_that_does_not_count_names_no_place() -> None:
    """A `created_at` in the future is no time at which anything was said."""
    said = Message("user", "I moved.", said_at=iso(ARRIVED), created_at="2099-01-01T00:00:00+09:00")
    assert f'at="{BEFORE}"' in build(Request({}, (said,)), AFTER)


@pytest.mark.parametrize("name", ["Mars/Olympus", "", "/etc/passwd", "Europe", "a" * 300, "é"])
def test_an_unknown_zone_is_refused_by_name(tmp_path: Path, name: str) -> None:
    """When settings are loaded, not when the first message comes."""
    with pytest.raises(ConfigError, match=r"extraction.*timezone must be an IANA name"):
        config.load(None, {}, {"extraction.timezone": name}, use_file=False)


def test_facts_and_summaries_carry_their_month_in_a_request() -> None:
    """The month in which they were said, above the facts that follow: of a summary, its newest words.

    A text that is no time gives none.
    """
    memory = document(
        fact("fact_aaaa", "Plays chess", createdAt="2026-05-01T00:00:00Z", saidAt="2026-04-30T23:00:00Z"),
        fact("fact_cccc", "Plays shogi", createdAt="2026-05-01T00:00:00Z", saidAt="2026-04-02T23:00:00Z"),
        fact("fact_bbbb", "Plays go", createdAt="<b>"),
    )
    memory = with_summary(
        memory, "recentMonths", "Moved house.", "2026-03-09T00:00:00Z", {"at": "2026-02-27T10:00:00Z"}
    )
    memory = with_summary(memory, "topOfMind", "A new flat.", "<b>")
    text = build(Request(memory, ()), AFTER)
    assert "\n2026-04\nfact_aaaa Plays chess\nfact_cccc Plays shogi\nundated\nfact_bbbb Plays go\n" in text
    assert "topOfMind: A new flat.\nrecentMonths: Moved house. (2026-02)\n" in text


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"category": "identity"}, "I live in Porto (since 2026-03)"),
        (
            {"category": "goal", "validUntil": "2026-09-01T00:00:00Z"},
            "I live in Porto (since 2026-03) (until 2026-09-01)",
        ),
        ({"category": "event"}, "I live in Porto (2026-03)"),
        ({"category": "event", "content": "Moved in March 2026"}, "Moved in March 2026"),
        ({"category": "preference"}, "I live in Porto"),
        ({"category": "identity", "createdAt": "", "saidAt": ""}, "I live in Porto"),
    ],
)
def test_what_changes_is_shown_with_its_month(fields: dict[str, Any], shown: str) -> None:
    """Unless its sentence names the year by itself."""
    times = {"createdAt": "2026-04-01T00:00:00Z", "saidAt": "2026-03-31T00:00:00Z"}
    line = fact_line(fact("f", **{"content": "I live in Porto", **times, **fields}))
    assert line.partition("] ")[2] == shown


@pytest.mark.parametrize(
    ("content", "relationship", "about"),
    [
        ("The user's daughter Mira can't have peanuts", "daughter", ""),
        ("Mira can't have peanuts", "daughter", "about daughter: "),
        ("Mira can't have peanuts", "", ""),
        ("Can't have peanuts", "daughter", "about Mira (daughter): "),
    ],
)
def test_a_person_whom_the_sentence_names_is_not_named_again(content: str, relationship: str, about: str) -> None:
    """Neither the name nor the relationship is said twice."""
    line = fact_line(fact("f", content, subject={"person": "Mira", "relationship": relationship}))
    assert line.partition("] ")[2] == f"{about}{content}"


def test_an_old_focus_is_not_shown() -> None:
    """60 days after it was written; until then a cached block holds."""
    now = datetime(2026, 6, 1, tzinfo=UTC)
    written = now - timedelta(days=60)
    memory = with_summary(document(workContext="Works at Acme."), "topOfMind", "An exam.", iso(written))
    before = alone(memory, now - timedelta(seconds=1))
    assert "An exam." in inject(before.document, RecallSettings())
    assert before.good_until == now
    after = alone(memory, now)
    assert "An exam." not in inject(after.document, RecallSettings())
    assert "Works at Acme." in inject(after.document, RecallSettings())
    assert after.good_until is None
