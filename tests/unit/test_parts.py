"""Parts: which messages of a claim are tried together, and what their outcomes add up to. No server, no model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.context import Key, Message, Role
from memd.errors import ContentRefused, ContentTooLong, NoUpdate, Truncated
from memd.extraction.update import Update
from memd.inbox.claim import Claim
from memd.workers.halving import ROUNDS, Parts
from memd.workers.outcome import Dead, Lost, Outcome, Overtaken, PartOutcome, Retry, Skipped, Stored, Unfit
from memd.workers.steps import ClaimPart

TOO_LONG = ContentTooLong("too_long", "")
REFUSED = ContentRefused("refusal", "")
FORMLESS = NoUpdate("bad_reply", "")
AGAIN = Retry("bad_reply", str(FORMLESS), costs=True, formless=True)
ATTEMPTS = 5


def parts_of(roles: str, attempts: int = 0, text: str = "text", **formless: int) -> Parts:
    """The parts of a claim whose messages are u(ser) or a(ssistant), each named by its place.

    `formless`: how many replies were no update, by place behind an underscore.
    """
    names: dict[str, Role] = {"u": "user", "a": "assistant"}
    messages = tuple(Message(names[role], text, identity=str(place)) for place, role in enumerate(roles))
    counts = {name.lstrip("_"): count for name, count in formless.items()}
    return Parts(Claim("id", Key("t", "u"), messages, attempts, 0, first=1, last=1, formless=counts), ATTEMPTS)


def names(parts: Parts, *outcomes: PartOutcome) -> list[tuple[str, ...]]:
    """The messages of each part, ended with these outcomes."""
    found, left = [], list(outcomes)
    for part in parts:
        found.append(tuple(message.identity for message in part.messages))
        parts.end(left.pop(0))
    return found


def tried(parts: Parts, guilty: set[str]) -> Outcome:
    """Try every part with a model that takes all messages but these."""
    for part in parts:
        parts.end(answer(part, guilty))
    return parts.finish()


def ended(parts: Parts, *outcomes: PartOutcome) -> Outcome:
    """End the parts with these outcomes, the last one as often as it takes."""
    left = list(outcomes)
    for _ in parts:
        parts.end(left.pop(0) if len(left) > 1 else left[0])
    return parts.finish()


def answer(part: ClaimPart, guilty: set[str]) -> PartOutcome:
    names = tuple(message.identity for message in part.messages)
    return Unfit(TOO_LONG) if guilty & {*names} else Stored(len(names), names)


@given(count=st.integers(1, 64), guilty=st.sets(st.integers(0, 63), max_size=5))
def test_the_guilty_messages_are_found_and_the_others_stored_in_order(count: int, guilty: set[int]) -> None:
    """Whichever up to five of 64 messages are guilty: they are found, and the rest is stored, in order."""
    names = {str(place) for place in guilty if place < count}
    others = tuple(str(place) for place in range(count) if str(place) not in names)
    outcome = tried(parts_of("u" * count), names)
    if not others:
        assert isinstance(outcome, Dead)
        return
    assert isinstance(outcome, Stored)
    assert {message.identity for message in outcome.guilty} == names
    assert outcome.fact_ids == others


@pytest.mark.parametrize(
    ("guilty", "stored", "found"),
    [
        ({"1"}, ("0", "2", "3"), {"1"}),  # a reply, so the question passes alone
        ({"0"}, ("2", "3"), {"0"}),  # a question: its reply is not tried without it
    ],
)
def test_a_reply_is_not_tried_without_its_question(guilty: set[str], stored: tuple[str, ...], found: set[str]) -> None:
    """Two turns, one of whose messages is guilty."""
    outcome = tried(parts_of("uaua"), guilty)
    assert isinstance(outcome, Stored)
    assert (outcome.fact_ids, {message.identity for message in outcome.guilty}) == (stored, found)


def test_guilty_messages_are_no_context_of_later_parts() -> None:
    """The second half is tried after the first, and knows whom the first found guilty."""
    parts, contexts = parts_of("uu"), []
    for part in parts:
        contexts.append(part.guilty)
        parts.end(answer(part, {"0"}))
    assert contexts == [frozenset(), frozenset(), {"0"}]


def test_a_refusal_costs_an_attempt_before_anything_is_halved() -> None:
    """Only the last attempt halves what the model refuses."""
    assert ended(parts_of("uu"), Unfit(REFUSED)) == Retry("refusal", str(REFUSED), costs=True)
    last = ended(parts_of("uu", attempts=ATTEMPTS - 1), Unfit(REFUSED), Stored(1, ("0",)), Unfit(REFUSED))
    assert isinstance(last, Stored)
    assert [message.identity for message in last.guilty] == ["1"]


def test_a_claim_of_guilty_messages_only_is_dead() -> None:
    """It is dead for the reason that the model gave for all of it."""
    assert ended(parts_of("uu"), Unfit(TOO_LONG), Unfit(REFUSED)) == Dead("too_long", str(TOO_LONG))


def test_a_part_that_is_overtaken_each_time_goes_back() -> None:
    """The same part starts again a few times, then the claim goes back at no attempt."""
    again = [Overtaken()] * (ROUNDS - 1)
    assert ended(parts_of("u"), *again, Stored(1, ("0",))) == Stored(1, ("0",))
    outcome = ended(parts_of("u"), *again, Overtaken(), Stored(1, ("0",)))
    assert outcome == Retry("conflict", "other writers were faster each time", costs=False)


@pytest.mark.parametrize("end", [Lost(), Retry("stopping", "", costs=False), Skipped("forgotten")])
def test_any_other_outcome_of_the_whole_is_that_of_the_claim(end: Lost | Retry | Skipped) -> None:
    """One part, one outcome."""
    assert ended(parts_of("uaua"), end, Stored(4, ())) == end


def test_an_outcome_that_ends_the_claim_ends_a_halving() -> None:
    """The worker stops during the second half: the claim goes back, though its first half is stored."""
    assert ended(parts_of("uuuu"), Unfit(TOO_LONG), Stored(2, ("0", "1")), Lost(), Stored(2, ("2", "3"))) == Lost()


@pytest.mark.parametrize("attempts", [0, ATTEMPTS - 1])
def test_a_reply_that_is_no_update_is_not_halved(attempts: int) -> None:
    """Before its four replies are used up it goes back, even on the last attempt; nothing behind it overtakes it."""
    assert ended(parts_of("uuuu", attempts), Unfit(FORMLESS)) == AGAIN
    assert ended(parts_of("uuuu", attempts, _0=2, _1=2), Unfit(FORMLESS), Stored(2, ())) == AGAIN


def test_messages_without_an_update_are_tried_apart_from_newer_ones() -> None:
    """Used up, they are dead alone; the newer ones are stored."""
    parts = parts_of("uauu", _0=4, _1=4)
    assert names(parts, Unfit(FORMLESS), Stored(2, ("2", "3"))) == [("0", "1"), ("2", "3")]
    outcome = parts.finish()
    assert isinstance(outcome, Stored)
    assert [message.identity for message in outcome.guilty] == ["0", "1"]


def test_a_claim_without_messages_has_one_part() -> None:
    """It ends with the outcome that its key has."""
    assert ended(parts_of(""), Skipped("forgotten")) == Skipped("forgotten")


TWO = "I live in Porto. I own a boat."


@pytest.mark.parametrize(
    ("roles", "text", "failure", "expected"),
    [
        ("u", TWO, Truncated(), [("0",), ("0",)]),
        ("u", TWO, TOO_LONG, [("0",), ("0",)]),
        ("u", "text", TOO_LONG, [("0",)]),  # it cannot be split
        ("u", "text", Truncated(Update(summaries={"topOfMind": "x"})), [("0",), ("0",)]),  # its complete items count
        ("u", "text", Truncated(Update()), [("0",)]),
        ("uaa", TWO, Truncated(), [("0", "1", "2")] * 2),  # a reply is no reason for a long answer
        ("ua", TWO, TOO_LONG, [("0", "1"), ("0",)]),  # it may be the reason for a long request
    ],
)
def test_a_single_message_is_tried_in_pieces(
    roles: str, text: str, failure: ContentTooLong, expected: list[tuple[str, ...]]
) -> None:
    """The second part has the failure of the first, so that its text is split; what fails in pieces is guilty."""
    assert names(parts_of(roles, text=text), Unfit(failure), *[Stored(1, ())] * 2) == expected
    assert isinstance(ended(parts_of(roles, text=text), Unfit(failure)), Dead)
