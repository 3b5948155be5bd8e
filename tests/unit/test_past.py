"""The past: what was believed when, why a fact is there, and what can no longer be known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.errors import FactUnknown
from memd.extraction.update import ConfirmedFact, Evidence, NewFact, Update
from memd.memory.apply import Origin, apply
from memd.memory.document import Document, empty_document, summary_versions, with_summary
from memd.memory.hand import edits
from memd.recall.past import as_of
from memd.recall.why import why, why_text

SETTINGS = ApplySettings()
CAP = SETTINGS.archive_cap


def day(month: int, of: int = 1) -> datetime:
    """A day of 2026."""
    return datetime(2026, month, of, tzinfo=UTC)


def said(document: Document, month: int, text: str, **changes: Any) -> Document:
    """The document once the user said this in that month; `content` and `quote` are the text."""
    turns = identify(f"thread-{month}", [Message("user", text, id=f"m{month}")])
    fact = NewFact(text, "context", 0.9, "user", "durable", "descriptive", (Evidence(0, text),), **changes)
    origin = Origin(f"thread-{month}", day(month), "claude-haiku-5-5", "3")
    applied = apply(document, Update(new_facts=(fact,)), turns, turns, origin, SETTINGS)
    assert applied.refusals == ()
    return applied.document


def believed(document: Document, month: int, of: int = 1) -> list[str]:
    """What was believed on a day."""
    return [fact["content"] for fact in as_of(document, day(month, of), CAP).document["facts"]]


@pytest.fixture
def moved() -> Document:
    """Porto in January, Lisbon in March (said in words that replace), 里斯本 by hand in May."""
    document = said(empty_document(Bucket("ana")), 1, "I live in Porto")
    porto = document["facts"][0]["id"]
    document = said(document, 3, "I moved to Lisbon", replaces=(porto,))
    lisbon = document["facts"][0]["id"]
    return edits.edit(document, lisbon, "住在里斯本老城", None, day(5), SETTINGS).document


def test_each_moment_has_what_was_believed_then(moved: Document) -> None:
    """Created, replaced, edited: each version counts from its beginning to its end."""
    assert believed(moved, 1) == ["I live in Porto"]
    assert believed(moved, 2, 28) == ["I live in Porto"]
    assert believed(moved, 3) == ["I moved to Lisbon"]
    assert believed(moved, 4, 30) == ["I moved to Lisbon"]
    assert believed(moved, 5) == ["住在里斯本老城"]
    assert as_of(moved, datetime(2025, 12, 31, tzinfo=UTC), CAP).document["facts"] == []
    assert as_of(moved, day(6), CAP).missing == ()


def test_the_past_does_not_know_the_future(moved: Document) -> None:
    """Nothing that happened to a fact later shows: no archiving, no later confirmation."""
    turns = identify("t", [Message("user", "是的，我住在里斯本老城", id="x")])
    update = Update(confirmed_facts=(ConfirmedFact(moved["facts"][0]["id"], "我住在里斯本老城"),))
    confirmed = apply(moved, update, turns, turns, Origin("t", day(7), "m", "1"), SETTINGS).document
    assert "confirmations" in as_of(confirmed, day(7), CAP).document["facts"][0]
    (fact,) = as_of(confirmed, day(6), CAP).document["facts"]
    assert "confirmations" not in fact
    assert "archivedAt" not in as_of(moved, day(2), CAP).document["facts"][0]


def test_a_full_archive_is_said_where_it_matters(moved: Document) -> None:
    """The archive drops the oldest first: something may be missing only before its first entry."""
    assert as_of(moved, day(3), len(moved["archive"])).missing == ()
    (sentence,) = as_of(moved, day(2), len(moved["archive"])).missing
    assert "the archive keeps 2 facts" in sentence


def test_what_was_removed_or_summarised_since_is_said(moved: Document) -> None:
    """Removed facts leave no text, summaries no history; a summary that has not changed since is shown."""
    document = edits.remove(moved, moved["facts"][0]["id"], day(6)).document
    document["user"] = {
        "workContext": {"summary": "Builds bridges.", "updatedAt": "2026-01-01T00:00:00Z"},
        "topOfMind": {"summary": "Summer.", "updatedAt": "2026-06-01T00:00:00Z"},
    }
    past = as_of(document, day(4), CAP)
    assert past.document["user"] == {"workContext": document["user"]["workContext"]}
    assert [sentence.partition(":")[0] for sentence in past.missing] == [
        "2 facts were removed since",
        "summaries keep their last 10 versions",
    ]
    assert "topOfMind" in past.missing[1]


def test_a_summary_keeps_its_last_versions(moved: Document) -> None:
    """Ten of them: each is shown for the time in which it stood, without the others."""
    document = moved
    for number in range(1, 14):
        document = with_summary(document, "topOfMind", f"Plan {number}.", f"2026-01-{number:02}T00:00:00.000Z")
    versions = summary_versions(document, "topOfMind")
    assert [entry["summary"] for entry in versions] == [f"Plan {number}." for number in range(3, 13)]
    then = as_of(document, datetime(2026, 1, 5, 12, tzinfo=UTC), CAP)
    assert then.document["user"]["topOfMind"] == {"summary": "Plan 5.", "updatedAt": "2026-01-05T00:00:00.000Z"}
    before = as_of(document, datetime(2026, 1, 2, tzinfo=UTC), CAP)
    assert "the text of topOfMind then is not known" in before.missing[-1]
    same = with_summary(document, "topOfMind", "Plan 13.", "2026-02-01T00:00:00.000Z")
    assert summary_versions(same, "topOfMind") == versions


def test_times_that_a_hand_broke_are_no_obstacle(moved: Document) -> None:
    """A fact without a time is shown, an archived one without an end is left out; the result names both."""
    document = {**moved, "facts": [{"id": "x", "content": "Sings", "createdAt": "once"}]}
    document["archive"] = [{"id": "y", "content": "Danced", "archivedAt": 7}]
    past = as_of(document, day(3), CAP)
    assert [fact["content"] for fact in past.document["facts"]] == ["Sings"]
    assert len(past.missing) == 2


def test_why_tells_quote_place_time_model_and_what_was_replaced(moved: Document) -> None:
    """The whole story of a fact, its earlier versions among it."""
    found = why(moved, moved["facts"][0]["id"])
    assert (found["state"], found["source"], found["evidence"]) == ("active", "manual", [])
    (before,) = found["earlier"]
    assert before["evidence"] == [{"thread": "thread-3", "message": "m3", "quote": "I moved to Lisbon"}]
    assert (before["model"], before["promptVersion"]) == ("claude-haiku-5-5", "3")
    assert (before["createdAt"], before["archivedAt"]) == ("2026-03-01T00:00:00.000Z", "2026-05-01T00:00:00.000Z")
    (replaced,) = found["replaced"]
    assert (replaced["content"], replaced["archiveReason"]) == ("I live in Porto", "replaced")
    text = why_text(found)
    for words in ("住在里斯本老城", "by hand", "thread-3", "message m3", "claude-haiku-5-5, prompt version 3", "Porto"):
        assert words in text, words


def test_why_knows_archived_facts(moved: Document) -> None:
    """The reason, the time, and the replacement."""
    porto = moved["archive"][0]["id"]
    found = why(moved, porto)
    assert (found["state"], found["archiveReason"]) == ("archived", "replaced")
    assert found["archivedAt"] == "2026-03-01T00:00:00.000Z"
    assert found["replacedBy"] == {"id": moved["facts"][0]["id"], "content": "住在里斯本老城"}
    assert "replaced by what the user said later" in why_text(found)


def test_why_says_what_the_archive_has_lost(moved: Document) -> None:
    """A replaced fact is named though its text is gone; an unknown fact is an error."""
    found = why({**moved, "archive": []}, moved["facts"][0]["id"])
    assert [one["content"] for one in found["replaced"]] == [None]
    assert "no longer in the archive" in why_text(found)
    with pytest.raises(FactUnknown):
        why(moved, "fact_nowhere")
