"""A fact carries the month, and ends on the day, that the user's calendar shows where they said it."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.extraction.update import Evidence, NewFact, Update
from memd.memory.apply import Origin, apply
from memd.memory.document import Fact, empty_document
from memd.push.times import iso, moment
from memd.recall.inject import fact_line

SAID = "my trip ends tomorrow"


def stored(created_at: str, zone: tzinfo = UTC, category: str = "event") -> Fact:
    """The fact of a trip that ends a day after it was said."""
    time = moment(created_at)
    assert time is not None
    message = Message("user", SAID, id="a", created_at=created_at)
    sent = [replace(one, said_at=iso(time), order=1) for one in identify("t", [message])]
    proof = (Evidence(0, SAID),)
    new = NewFact("The user is on a trip.", category, 0.95, "user", "durable", "descriptive", proof, valid_days=1)
    origin = Origin("t", time, "m", "1", zone=zone)
    [fact] = apply(
        empty_document(Bucket("ana")), Update(new_facts=(new,)), sent, sent, origin, ApplySettings()
    ).document["facts"]
    return dict(fact)


@pytest.mark.parametrize(
    ("created_at", "zone", "shown"),
    [
        ("2026-12-01T06:30:00+08:00", "UTC", "(2026-12) (until 2026-12-02)"),
        ("2026-11-30T22:30:00Z", "Asia/Shanghai", "(2026-12) (until 2026-12-02)"),
        ("2026-11-30T20:30:00-05:00", "UTC", "(2026-11) (until 2026-12-01)"),
        ("2026-12-01T01:30:00Z", "America/New_York", "(2026-11) (until 2026-12-01)"),
        ("2026-11-30T22:30:00Z", "UTC", "(2026-11) (until 2026-12-01)"),
        ("2026-11-30T12:30:00+08:00", "UTC", "(2026-11) (until 2026-12-01)"),
    ],
)
def test_month_and_last_day_are_those_of_the_users_zone(created_at: str, zone: str, shown: str) -> None:
    """That of `created_at`, else of `extraction.timezone`; the end lies on that day there and in UTC."""
    fact = stored(created_at, ZoneInfo(zone))
    assert fact_line(fact) == f"- [event | 0.95] The user is on a trip. {shown}"
    place = datetime.fromisoformat(created_at).tzinfo
    end = moment(fact["validUntil"])
    assert end is not None
    where = ZoneInfo(zone) if place == UTC else place
    assert end.astimezone(where).date().isoformat() == fact["validUntil"][:10]


def test_a_document_names_the_day_only_where_it_differs() -> None:
    """So that most documents are as they were."""
    assert "saidOn" not in stored("2026-11-30T12:30:00+08:00")
    assert stored("2026-12-01T06:30:00+08:00")["saidOn"] == "2026-12-01"
