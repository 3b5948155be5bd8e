"""May keep: which messages may be kept, and which may prove a fact. A pure function.

A user's wish to forget, or off the record, is not kept, nor is the reply to it. A wish that points back takes the
user's turn before it along, with its reply; one that names what to forget takes nothing along and forbids no new fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memd.context import Message
from memd.memory.said.wishes import AskedNot, Why, wish_of


@dataclass(frozen=True, slots=True)
class Kept:
    """What may be kept of the messages of one thread, in their order."""

    kept: tuple[Message, ...]
    not_kept: Mapping[str, Why]
    """The identities of the others, and why."""

    no_quotes: frozenset[str]
    """The identities of the messages that must prove nothing; all of them are among `not_kept`."""

    before: Literal["", "turn", "thread"] = ""
    """What a wish takes along of the time before these messages: the thread's last turn of the user with its reply, or
    all its turns. They are stored already, if anywhere."""

    why_before: Why = "forget_wish"


def may_keep(messages: Sequence[Message]) -> Kept:
    """What may be kept of messages of one thread, oldest first. Never raises."""
    wishes = {place: wish for place, message in enumerate(messages) if (wish := _wish_of(message))}
    if not wishes:
        return Kept(tuple(messages), {}, frozenset())
    not_kept: dict[str, Why] = {}
    no_quotes: set[str] = set()
    before: Literal["", "turn", "thread"] = ""
    why_before: Why = "forget_wish"
    for place, wish in wishes.items():
        start, end = _reach(messages, place, wish)
        if start < 0 and before != "thread":
            before, why_before = "thread" if wish.reach == "thread" else "turn", wish.why
        for index in range(max(0, start), end):
            identity = messages[index].identity
            not_kept[identity] = wish.why
            if index < place or wish.own:
                no_quotes.add(identity)
    kept = tuple(message for message in messages if message.identity not in not_kept)
    return Kept(kept, not_kept, frozenset(no_quotes), before, why_before)


def _wish_of(message: Message) -> AskedNot | None:
    return wish_of(message.content) if message.role == "user" else None


def _reach(messages: Sequence[Message], place: int, wish: AskedNot) -> tuple[int, int]:
    """The messages that go: from the first (-1: one before all of these) to the one after the last."""
    if wish.reach == "thread":
        return -1, len(messages)
    end = next(_users(messages, range(place + 1, len(messages))), len(messages))
    if wish.reach == "earlier":
        return next(_users(messages, range(place - 1, -1, -1)), -1), end
    if wish.reach == "next":
        return place, next(_users(messages, range(end + 1, len(messages))), len(messages))
    return place, end


def _users(messages: Sequence[Message], places: range) -> Iterator[int]:
    """Those of these places where the user speaks."""
    return (place for place in places if messages[place].role == "user")
