"""When something was said: earlier never replaces later, whatever order the conversations arrive in."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count, permutations
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.extraction.update import ConfirmedFact, Evidence, NewFact, RetiredFact, Subject, Update
from memd.inbox.claim import taken_in
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import Document, archive_of, empty_document, facts_of, summary
from memd.memory.facts import archive_reason, content_of, id_of, last_confirmed_at, replaced_by, said_at_of, valid_until
from memd.memory.opposing import opposes
from memd.memory.sayings import Saying, earlier
from memd.push.times import said_at

NOW = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)
EMPTY = empty_document(Bucket("ana"))
_orders = count(1)


def iso(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")


def said(text: str, at: datetime, *, thread: str = "t", **fields: Any) -> Message:
    """One message as a claim has it, taken in now and said then; the inbox's order is the order of the calls."""
    [message] = identify(thread, [Message("user", text, created_at=iso(at), **fields)])
    return taken_in(message, NOW, next(_orders))


def fact(content: str, *, replaces: Iterable[str] = (), **fields: Any) -> NewFact:
    quote = fields.pop("quote", content)
    proposal = NewFact(content, "context", 0.9, "user", "durable", "descriptive", (Evidence(0, quote),))
    return replace(proposal, replaces=tuple(replaces), **fields)


def run(document: Document, message: Message, thread: str = "t", **parts: Any) -> Applied:
    origin = Origin(thread, NOW, "m", "1")
    return apply(document, Update(**parts), [message], [message], origin, ApplySettings(near_duplicate=0.9))


def contents(document: Document) -> set[str]:
    return set(map(content_of, facts_of(document)))


def reasons(applied: Applied) -> list[str]:
    return [refusal.reason for refusal in applied.refusals]


@pytest.mark.parametrize(
    ("created_at", "expected"),
    [
        (None, NOW),
        ("2026-11-19T10:00:00Z", NOW - DAY),
        ("2026-11-19T12:00:00+02:00", NOW - DAY),
        ("2026-11-19", NOW - DAY - timedelta(hours=10)),
        ("2026-11-20T10:01:00Z", NOW + MINUTE),  # a clock may be a minute ahead
        ("2026-11-20T10:01:01Z", NOW),
        ("2099-01-01T00:00:00Z", NOW),
        ("2026-13-45", NOW),
        ("1234-", NOW),
        ("0001-01-01T00:00:00+14:00", NOW),  # before the first year
    ],
)
def test_when_a_message_was_said(created_at: str | None, expected: datetime) -> None:
    """By its producer, unless that is no time or lies ahead of the arrival; then by its arrival."""
    assert said_at(created_at, NOW) == expected


def test_which_of_two_sayings_is_the_earlier_one() -> None:
    """By time; within a thread and within ten minutes by the inbox's order; what is not known replaces as it did."""
    noon, later, soon = ("2026-11-20T12:00:00Z", "2026-11-20T12:10:00Z", "2026-11-20T12:09:59Z")
    assert earlier(Saying(noon, "a", 2), Saying(later, "b", 1))
    assert not earlier(Saying(later, "b", 1), Saying(noon, "a", 2))
    assert earlier(Saying(soon, "a", 1), Saying(noon, "b", 2))  # two devices, their clocks minutes apart
    assert earlier(Saying(later, "a", 1), Saying(noon, "a", 2))  # one thread
    assert not earlier(Saying(noon), Saying(soon))
    assert not earlier(Saying(""), Saying(noon, "a", 1))
    assert not earlier(Saying("2026-11-19", "a"), Saying("no time", "b"))


def test_times_of_a_fact() -> None:
    """`saidAt` is the user's time, `createdAt` the document's; `lastConfirmedAt` moves only forward."""
    first = run(EMPTY, said("I live in Porto", NOW - 9 * DAY), new_facts=(fact("I live in Porto"),)).document
    [stored] = facts_of(first)
    assert (said_at_of(stored), stored["createdAt"]) == ("2026-11-11T10:00:00.000Z", "2026-11-20T10:00:00.000Z")
    assert stored["evidence"][0]["saidAt"] == "2026-11-11T10:00:00.000Z"
    document = first
    for days in (3, 5):
        again = said("I live in Porto", NOW - days * DAY, thread=f"t{days}")
        confirmed = ConfirmedFact(id_of(stored), "I live in Porto")
        document = run(document, again, f"t{days}", confirmed_facts=(confirmed,)).document
        assert last_confirmed_at(facts_of(document)[0]) == "2026-11-17T10:00:00.000Z"
    late = said("I left Porto", NOW - 4 * DAY, thread="t9")
    refused = run(document, late, "t9", retired_facts=(RetiredFact(id_of(stored), "gone", "I left Porto"),))
    assert reasons(refused) == ["said_earlier"]
    assert contents(refused.document) == {"I live in Porto"}


def test_an_older_statement_goes_to_the_archive() -> None:
    """It keeps its evidence there, and names the fact that has its place; what is older still is replaced."""
    document = EMPTY
    for place, days in (("Braga", 90), ("Lisbon", 1)):
        message = said(f"I live in {place}", NOW - days * DAY, thread=place)
        document = run(document, message, place, new_facts=(fact(f"I live in {place}"),)).document
    braga, lisbon = map(id_of, facts_of(document))
    message = said("I live in Porto", NOW - 30 * DAY, thread="late")
    applied = run(document, message, "late", new_facts=(fact("I live in Porto", replaces=(braga, lisbon)),))
    assert contents(applied.document) == {"I live in Lisbon"}
    assert (applied.added, reasons(applied)) == ((), ["said_earlier"])
    assert {content_of(entry): replaced_by(entry) for entry in archive_of(applied.document)} == {
        "I live in Porto": lisbon,
        "I live in Braga": lisbon,
    }
    again = said("I live in Porto", NOW - 20 * DAY, thread="again")
    applied = run(applied.document, again, "again", new_facts=(fact("I live in Porto"),))
    assert (contents(applied.document), reasons(applied)) == ({"I live in Lisbon"}, ["said_earlier"])
    back = said("I live in Porto", NOW, thread="back")
    applied = run(applied.document, back, "back", new_facts=(fact("I live in Porto", replaces=(lisbon,)),))
    assert contents(applied.document) == {"I live in Porto"}


def test_an_older_opposite_goes_to_the_archive() -> None:
    """Also where the model does not say that one replaces the other."""
    document = run(EMPTY, said("I don't eat meat", NOW - DAY), new_facts=(fact("I don't eat meat"),)).document
    old = said("I eat meat", NOW - 60 * DAY, thread="old")
    applied = run(document, old, "old", new_facts=(fact("I eat meat"),))
    assert (contents(applied.document), reasons(applied)) == ({"I don't eat meat"}, ["said_earlier"])


@pytest.mark.parametrize(
    ("content", "other", "expected"),
    [
        ("The user likes coffee", "The user does not like coffee", True),
        ("The user lives in Porto", "The user no longer lives in Porto.", True),
        ("The user eats meat", "The user doesn't eat meat", True),
        ("用户喜欢喝咖啡", "用户不喜欢喝咖啡", True),
        ("用户吃肉", "用户不再吃肉", True),
        ("The user likes coffee", "The user does not like tea", False),
        ("The user's dog is called Rex", "The user's cat is called Rex", False),
        ("The user lives in Porto", "The user lives in Lisbon", False),
        ("The user is not 30 years old", "The user is 31 years old", False),
        ("The user does not like coffee", "The user never likes coffee", False),
        ("用户喜欢喝咖啡", "用户不喜欢喝茶", False),
    ],
)
def test_opposites(content: str, other: str, expected: bool) -> None:
    """One denies what the other says, and they differ in nothing else."""
    assert opposes(content, other) is expected
    assert opposes(other, content) is expected


@pytest.mark.long
def test_a_backlog_costs_no_more_than_what_is_new() -> None:
    """A memory that was written after a message was said is not read anew for each fact of the message."""
    verbs, things = ("owns", "likes"), ("boat", "lamp", "desk")
    topics = [f"The user {verb} {thing} number {number}." for number in range(50) for verb in verbs for thing in things]
    known, new = topics[:200], topics[200:]
    parts = tuple(map(fact, known))
    message = said("\n".join(known), NOW - 9 * DAY)
    old, young = (
        apply(EMPTY, Update(new_facts=parts), [message], [message], Origin("t", now, "m", "1"), ApplySettings())
        for now in (NOW - 9 * DAY, NOW)
    )

    def spent(document: Document) -> float:
        message, parts = said("\n".join(new), NOW - DAY), tuple(map(fact, new))
        began = time.thread_time()
        assert len(run(document, message, new_facts=parts).added) == len(new)
        return time.thread_time() - began

    backlog, fresh = (min(spent(applied.document) for _ in range(5)) for applied in (young, old))
    assert backlog < 1.5 * fresh


def test_what_has_ended_by_its_own_date_is_archived() -> None:
    """Days count from when it was said, not from when it was stored."""
    trip = fact("I am in Rome for a week", valid_days=7)
    applied = run(EMPTY, said("I am in Rome for a week", NOW - 30 * DAY), new_facts=(trip,))
    assert (contents(applied.document), reasons(applied)) == (set(), ["expired"])
    assert [archive_reason(entry) for entry in archive_of(applied.document)] == ["expired"]
    applied = run(EMPTY, said("I am in Rome for a week", NOW - 3 * DAY), new_facts=(trip,))
    assert [valid_until(entry) for entry in facts_of(applied.document)] == ["2026-11-24T10:00:00.000Z"]


def test_a_summary_is_not_rewritten_by_older_words() -> None:
    """What is as new as its own words may rewrite it, and so may other words of the same conversation."""
    document = EMPTY
    for thread, days, text, expected in (
        ("a", 5, "Works at Acme.", "Works at Acme."),
        ("b", 9, "Studies law.", "Works at Acme."),
        ("c", 1, "Leads a team at Acme.", "Leads a team at Acme."),
    ):
        applied = run(
            document, said("about my work", NOW - days * DAY, thread=thread), thread, summaries={"workContext": text}
        )
        document = applied.document
        assert summary(document, "workContext") == expected
        assert reasons(applied) == ([] if expected == text else ["said_earlier"])


def test_other_speakers_prove_facts_about_themselves_only() -> None:
    """A fact of the user, a confirmation, a retirement and a summary need the user's own words."""
    document = run(EMPTY, said("I live in Porto", NOW - DAY), new_facts=(fact("I live in Porto"),)).document
    [stored] = facts_of(document)
    ben = said("I live in Berlin and eat meat, Porto is over", NOW, thread="chat", name="Ben Carter")
    berlin = fact("Lives in Berlin", quote="I live in Berlin")
    applied = run(
        document,
        ben,
        "chat",
        new_facts=(
            berlin,
            replace(berlin, subject=Subject("Ben", "friend")),
            fact("Eats meat", quote="eat meat", subject=Subject("Carl", "friend")),
        ),
        confirmed_facts=(ConfirmedFact(id_of(stored), "Porto is over"),),
        retired_facts=(RetiredFact(id_of(stored), "gone", "Porto is over"),),
        summaries={"workContext": "Lives in Berlin."},
    )
    assert [fact.get("subject", {}).get("person") for fact in facts_of(applied.document)] == [None, "Ben"]
    assert reasons(applied) == ["other_speaker"] * 5
    user = said("Carl eats meat", NOW, thread="own")
    applied = run(document, user, "own", new_facts=(fact("Carl eats meat", subject=Subject("Carl", "friend")),))
    assert "Carl eats meat" in contents(applied.document)


PLACES = ("Braga", "Porto", "Lisbon")


def remembered(statements: Sequence[tuple[int, str, str]]) -> set[str]:
    """The facts after these statements (day, what, value), in this order, each from a conversation of its own. A new
    value replaces all others of its kind that the document holds, as a model would say.
    """
    document = EMPTY
    for number, (day, what, value) in enumerate(statements):
        text = f"{what} is {value}"
        others = [
            id_of(one) for one in facts_of(document) if content_of(one).startswith(what) and content_of(one) != text
        ]
        message = said(text, NOW - day * DAY, thread=f"t{number}-{day}")
        document = run(document, message, f"t{number}-{day}", new_facts=(fact(text, replaces=others),)).document
    return contents(document)


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.integers(0, 400), st.sampled_from(("My home", "My job")), st.sampled_from(PLACES)),
        min_size=2,
        max_size=3,
        unique_by=lambda row: row[0],
    )
)
@example([(9, "My home", "Porto"), (5, "My home", "Lisbon"), (1, "My home", "Porto")])
def test_any_order_of_pushes_gives_the_same_facts(statements: list[tuple[int, str, str]]) -> None:
    """What counts is when it was said: of each kind the newest value is active, in whatever order it arrives."""
    newest = {what: value for _, what, value in sorted(statements, reverse=True)}
    expected = {f"{what} is {value}" for what, value in newest.items()}
    for order in permutations(statements):
        assert remembered(order) == expected
