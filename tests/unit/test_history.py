"""The history of a memory by day: each change once, with what took its place, and nothing but its kind where the
words are gone."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from memd.config import ApplySettings
from memd.context import Bucket
from memd.memory.document import Document, archive_of, empty_document, facts_of
from memd.memory.facts import archived, content_of
from memd.memory.hand import edits
from memd.memory.new_facts import base_fact
from memd.recall.history import history

SETTINGS = ApplySettings()


def day(month: int, of: int = 1, hour: int = 0) -> datetime:
    """A time of 2026."""
    return datetime(2026, month, of, hour, tzinfo=UTC)


@pytest.fixture
def lived() -> Document:
    """Porto, replaced by Lisbon by a model in March, reworded by hand in May; tea, evicted; chess, removed in July."""
    facts = [
        base_fact("fact_00000001", "Lives in Porto.", "context", 0.9, "2026-01-01T00:00:00Z", "t"),
        base_fact("fact_00000002", "Drinks tea.", "preference", 0.8, "2026-01-01T09:00:00Z", "t"),
        base_fact("fact_00000003", "Lives in Lisbon.", "context", 0.9, "2026-03-01T00:00:00Z", "t"),
        base_fact("fact_00000004", "Plays chess.", "preference", 0.9, "2026-03-01T00:00:00Z", "t"),
    ]
    gone = [
        archived(facts[0], "replaced", "2026-03-01T00:00:00Z", replaced_by="fact_00000003"),
        archived(facts[1], "evicted", "2026-04-01T00:00:00Z"),
    ]
    document = {**empty_document(Bucket("ana")), "facts": facts[2:], "archive": gone}
    document = edits.edit(document, "fact_00000003", "Lives in Lisbon's old town.", None, day(5), SETTINGS).document
    return edits.remove(document, "fact_00000004", day(7)).document


def told(document: Document) -> list[tuple[date, list[tuple[str, str, str]]]]:
    """Each day with its changes: kind, words, words of the successor."""
    return [
        (
            found.day,
            [
                (one.kind, content_of(one.fact) if one.fact else "", content_of(one.successor) if one.successor else "")
                for one in found.changes
            ],
        )
        for found in history(document)
    ]


def test_each_day_tells_what_changed(lived: Document) -> None:
    """The latest day first; a replaced fact names the version that took its place, a removed one has no words."""
    assert told(lived) == [
        (date(2026, 7, 1), [("forgotten", "", "")]),
        (
            date(2026, 5, 1),
            [("learned", "Lives in Lisbon's old town.", ""),
             ("replaced", "Lives in Lisbon.", "Lives in Lisbon's old town.")],
        ),
        (date(2026, 4, 1), [("evicted", "Drinks tea.", "")]),
        (
            date(2026, 3, 1),
            [("learned", "Lives in Lisbon.", ""), ("replaced", "Lives in Porto.", "Lives in Lisbon.")],
        ),
        (date(2026, 1, 1), [("learned", "Drinks tea.", ""), ("learned", "Lives in Porto.", "")]),
    ]  # fmt: skip
    assert [(found.numbers["learned"], found.numbers["replaced"]) for found in history(lived)][1] == (1, 1)


def test_a_memory_that_somebody_broke_has_a_history(lived: Document) -> None:
    """Times that are none, ids that are missing, successors that are gone: what can be told is told."""
    porto, tea, *_ = archive_of(lived)
    broken = [{**porto, "id": 7, "replacedBy": "fact_ffffffff"}, {**tea, "archivedAt": "someday", "createdAt": None}]
    document = {**lived, "archive": broken, "facts": list(facts_of(lived))}
    assert told(document)[-1] == (date(2026, 1, 1), [("learned", "Lives in Porto.", "")])
    assert ("replaced", "Lives in Porto.", "") in dict(told(document))[date(2026, 3, 1)]
    assert history({}) == []


def test_days_are_those_of_utc() -> None:
    """A time with an offset belongs to the day that it is at Greenwich."""
    fact = base_fact("fact_00000001", "Lives in Porto.", "context", 0.9, "2026-01-01T23:30:00-03:00", "t")
    assert told({"facts": [fact]}) == [(date(2026, 1, 2), [("learned", "Lives in Porto.", "")])]


def test_a_long_history_takes_no_time_squared() -> None:
    """10,000 versions of one fact: as many steps as versions, so each finds the one after it."""
    at = "2026-01-01T00:00:00Z"
    versions = [
        archived(base_fact("fact_00000001", f"Version {n}.", "context", 0.9, at, "t"), "edited", at)
        for n in range(10_000)
    ]
    (found,) = history({"facts": [], "archive": versions})
    pairs = [(one.fact, one.successor) for one in found.changes if one.kind == "replaced"]
    assert pairs == [*zip(versions, [*versions[1:], None], strict=True)]
