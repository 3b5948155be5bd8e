"""Parts: which messages of a claim are tried together, and what their outcomes add up to. No server, no model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.context import Key, Message, Role
from memd.errors import ContentRefused, ContentTooLong
from memd.inbox.claim import Claim
from memd.workers.halving import ROUNDS, Parts
from memd.workers.outcome import Dead, Lost, Outcome, Overtaken, PartOutcome, Retry, Skipped, Stored, Unfit
from memd.workers.steps import Part

TOO_LONG = ContentTooLong("too_long", "")
REFUSED = ContentRefused("refusal", "")
ATTEMPTS = 5


def parts_of(roles: str, attempts: int = 0) -> Parts:
    """The parts of a claim whose messages are u(ser) or a(ssistant), each named by its place."""
    names: dict[str, Role] = {"u": "user", "a": "assistant"}
    messages = [Message(names[role], "text", identity=str(place)) for place, role in enumerate(roles)]
    return Parts(Claim("id", Key("t", "u"), tuple(messages), attempts, delays=0, first=1, last=1), ATTEMPTS)


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


def answer(part: Part, guilty: set[str]) -> PartOutcome:
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
