"""What the user asks to forget, and asks not to keep, in the messages of one update."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memd.context import Message
from memd.memory.document import Fact
from memd.memory.facts import content_of, id_of, quotes_of, rests_on, subject_of
from memd.memory.said.matter import Matter, nearest
from memd.memory.text import fold


@dataclass(frozen=True, slots=True)
class ToForget:
    """What the user asks to forget in the messages of an update.

    `gone`: the identities of the messages that a wish takes along, of this claim and stored ones; `matters`: what
    wishes name; `unread`: messages of the claim that prove nothing; `asking`: those of them that the extractor reads,
    for what they ask to forget; `pointed`: those of `gone` that a wish means as a whole, not only what they say of a
    matter; `everything`: all that is known of the user is to be forgotten.
    """

    gone: frozenset[str] = frozenset()
    matters: tuple[Matter, ...] = ()
    unread: tuple[Message, ...] = ()
    pointed: frozenset[str] = frozenset()
    asking: frozenset[str] = frozenset()
    everything: bool = False

    def __bool__(self) -> bool:
        """Whether anything is asked for."""
        return bool(self.gone or self.matters or self.everything)

    def means(self, fact: Fact) -> bool:
        """Whether nothing proves a fact but messages meant as a whole, or it holds what a wish names."""
        return rests_on(fact, self.pointed) or any(matter.held_by(_text(fact)) for matter in self.matters)

    def meant(self, facts: Sequence[Fact], others: Sequence[Fact] = ()) -> Iterator[Fact]:
        """Those of the facts that go: first those that hold what a wish names. One may come twice.

        `others`: further facts, which may quote the same words.
        """
        for matter in self.matters:
            yield from _holding(matter, facts, others)
        yield from (fact for fact in facts if rests_on(fact, self.pointed))

    def guessed(self, facts: Sequence[Fact], others: Sequence[Fact] = ()) -> Iterator[Fact]:
        """For a matter that no fact holds the one that shares most of it, of those that only rest on what goes."""
        resting = [(place, _text(fact)) for place, fact in enumerate(facts) if rests_on(fact, self.gone)]
        for matter in self.matters if resting else ():
            place = None if any(_holding(matter, (*facts, *others), ())) else nearest(resting, [matter])
            yield from () if place is None else [facts[place]]


NOTHING_TO_FORGET = ToForget()

NO_WISH = ToForget()
"""The same where wishes were looked for in all messages, and none has any."""


def _text(fact: Fact) -> str:
    return " ".join((content_of(fact), *subject_of(fact)))


def _holding(matter: Matter, facts: Sequence[Fact], others: Sequence[Fact]) -> Iterator[Fact]:
    """The facts whose sentence holds a matter; then those that only quotes prove which hold it (a paraphrase).

    Not where another fact quotes the same words: "I am a nurse in Porto" proves two facts.
    """
    yield from (fact for fact in facts if matter.held_by(_text(fact)))
    for fact in facts:
        quotes = quotes_of(fact)
        if quotes and "provenBy" not in fact and all(map(matter.held_by, quotes)):
            told = [quote for other in (*facts, *others) if id_of(other) != id_of(fact) for quote in quotes_of(other)]
            if not any(_overlap(quote, other) for quote in quotes for other in told):
                yield fact


def _overlap(quote: str, other: str) -> bool:
    one, two = fold(quote), fold(other)
    return one in two or two in one
