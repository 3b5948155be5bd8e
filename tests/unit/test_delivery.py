"""Delivery: an outbox's entry changes a project once, as far as its member may, and ends nothing of anybody else's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from memd.config import ApplySettings
from memd.context import identity_of_id, of_project
from memd.memory import ledger
from memd.memory.document import Document, empty_document, facts_of, ledger_of
from memd.memory.projects import outbox
from memd.memory.projects.delivery import Delivered, deliver, proofs_of
from memd.memory.projects.leaving import without_user
from memd.memory.projects.members import founded, left, with_member
from memd.memory.projects.outbox import Item, OutboxEntry

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)
STAMP = "2026-10-01T10:00:00.000Z"
SETTINGS = ApplySettings(max_facts=10)


def project() -> Document:
    document = founded(empty_document(of_project("apollo")), "", "ana", STAMP)
    for user, role in (("ben", "editor"), ("cem", "editor"), ("vic", "viewer")):
        document = with_member(document, user, role, STAMP)
    return document


def said(content: str, message: str, *replaces: str, **fields: Any) -> Item:
    quote = {"thread": "t", "message": message, "quote": content, "saidAt": STAMP}
    fact = {
        "content": content, "category": "decision", "confidence": 0.9, "createdAt": STAMP, "source": "t",
        "evidence": [quote], **fields,
    }  # fmt: skip
    return outbox.added(fact, replaces, [identity_of_id("t", message)])


def brought(document: Document, user: str, *items: Item, thread: str = "t", later: int = 0) -> Delivered:
    entry = OutboxEntry("e", "apollo", thread, items)
    known = ledger.known(ledger_of(document), proofs_of(entry, user))
    return deliver(document, entry, user, SETTINGS, NOW + timedelta(seconds=later), known)


def contents(document: Document) -> list[str]:
    return [fact["content"] for fact in facts_of(document)]


def test_a_second_delivery_changes_nothing() -> None:
    """By the ledger, whatever happened to the fact since."""
    first = brought(project(), "ben", said("The API is written in Go.", "1"), said("The web is written in Elm.", "2"))
    assert contents(first.document) == ["The API is written in Go.", "The web is written in Elm."]
    again = brought(first.document, "ben", said("The API is written in Go.", "1"))
    assert again.document is first.document
    more = brought(first.document, "ben", said("The API is written in Go.", "1"), said("Builds run nightly.", "3"))
    assert contents(more.document) == [*contents(first.document), "Builds run nightly."]
    of_another = brought(first.document, "cem", said("The API is written in Go.", "1"))
    assert [entry["by"] for entry in facts_of(of_another.document)[0]["evidence"]] == ["ben", "cem"]


def test_who_may_not_add_gets_it_back() -> None:
    """A viewer, a stranger, one who has left since the model was asked, and a conversation of another app."""
    item = said("The API is written in Go.", "1")
    shop = {**project(), "app": "shop"}
    for document, user, thread in (
        (project(), "vic", "t"),
        (project(), "zoe", "t"),
        (left(project(), "ben"), "ben", "t"),
        (shop, "ben", "rival/t"),
        (empty_document(of_project("apollo")), "ben", "t"),
    ):
        done = brought(document, user, item, thread=thread)
        assert (done.document, done.private) == (document, (item,))
    assert contents(brought(shop, "ben", item, thread="shop/t").document) == ["The API is written in Go."]


def test_nobody_s_word_is_ended_by_a_model_but_their_own() -> None:
    """Whatever the role: the owner's new word stands beside the editor's, and the editor's own replaces."""
    start = brought(project(), "ben", said("The release is on 2026-12-01.", "1")).document
    old = facts_of(start)[0]["id"]
    owner = brought(start, "ana", said("The release is on 2026-12-15.", "2", old)).document
    assert contents(owner) == ["The release is on 2026-12-01.", "The release is on 2026-12-15."]
    assert facts_of(owner)[1]["disputes"] == [old]
    own = brought(start, "ben", said("The release is on 2026-12-15.", "2", old)).document
    assert contents(own) == ["The release is on 2026-12-15."]
    retired = brought(start, "cem", outbox.retired(old, [], "over", [identity_of_id("t", "9")]))
    assert (contents(retired.document), retired.refused) == (contents(start), {"not_yours": 1})
    proven = brought(start, "cem", said("The release is on 2026-12-01.", "3")).document
    both = brought(proven, "ben", said("The release is on 2026-12-20.", "4", old)).document
    assert facts_of(both)[1]["disputes"] == [old]


def test_nothing_of_the_private_side_comes_along() -> None:
    """No thread, no message, no order in the inbox."""
    item = said("The API is written in Go.", "m-17", lastSaid={"at": STAMP, "order": 4711}, provenBy=["i" + "0" * 36])
    text = str(facts_of(brought(project(), "ben", item).document))
    for private in ("m-17", "4711", "thread", "'t'", identity_of_id("t", "m-17")):
        assert private not in text


@given(st.lists(st.sampled_from(["ana", "ben", "cem"]), min_size=12, max_size=25))
def test_a_full_project_takes_from_the_member_with_the_most(speakers: Sequence[str]) -> None:
    """However the members take turns, none of those with the fewest facts loses one."""
    document = project()
    for number, user in enumerate(speakers):
        document = brought(document, user, said(f"Box {number} holds part {number * 7}.", f"m{number}")).document
    held = [fact["createdBy"] for fact in facts_of(document)]
    assert len(held) == 10
    for user in set(speakers):
        assert held.count(user) >= min(speakers.count(user), 10 // len(set(speakers)))


@given(st.lists(st.tuples(st.sampled_from(["ana", "ben"]), st.integers(0, 4)), max_size=12))
def test_forgetting_leaves_exactly_what_others_prove(told: Sequence[tuple[str, int]]) -> None:
    """Of facts, archive, quotes, creators and members."""
    document = project()
    for number, (user, topic) in enumerate(told):
        document = brought(document, user, said(f"Topic {topic} is settled by rule {topic}.", f"m{number}")).document
    gone = without_user(document, "ana", STAMP)
    assert "ana" not in str({name: value for name, value in gone.items() if name != "ledger"})
    stay = {f"Topic {topic} is settled by rule {topic}." for user, topic in told if user == "ben"}
    assert set(contents(gone)) == stay
    assert without_user(gone, "ana", STAMP) is gone
