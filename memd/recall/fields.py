"""Fields: what is indexed of a fact or an excerpt besides its own words, and how much each field counts.

A fact is found by the message that it quotes, the turns around it, the day it was said, and whom it is about, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import chain, repeat

from msgspec import Struct

from memd.memory.document import Fact
from memd.memory.facts import backstory_of, content_of, created_at, quotes_of, source_error, subject_of, updated_at
from memd.push.times import moment
from memd.recall.index import IndexEntry
from memd.recall.words import roots

MESSAGE, BEFORE, AFTER, DAY, SUBJECT, ASIDE = 0.5, 0.2, 0.1, 0.4, 1.0, 0.4
"""Weights of a word in the message quoted, in the turns before and after it, in the day and the speaker, in the person
whom a fact is about, and in its asides (backstory, corrected error), relative to a word of the fact itself."""

MESSAGE_CHARS, TURN_CHARS = 500, 160
"""Characters of the message quoted, and of each turn around it, that are indexed."""

_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


class Around(Struct, frozen=True, gc=False):
    """What was said around a fact or an excerpt: the message itself, the turns before and after it, its speaker."""

    message: str = ""
    before: str = ""
    after: str = ""
    speaker: str = ""


def entries_of(facts: Iterable[Fact], around: Sequence[Around] = ()) -> Iterator[IndexEntry]:
    """What is indexed of each fact. `around`: what was said around the first facts; of the others nothing is known."""
    again = lru_cache(maxsize=1_024)(roots)  # for what neighbours share: days, persons, the turn between them
    for fact, known in zip(facts, chain(around, repeat(Around())), strict=False):
        yield _entry(fact, known, again)


def _entry(fact: Fact, around: Around, again: Callable[[str], Sequence[str]]) -> IndexEntry:
    """What is indexed of a fact. Without a message its quotes stand in for it. `again`: `roots` with a memory."""
    person, relationship = subject_of(fact)
    message = around.message or " ".join(dict.fromkeys(quotes_of(fact)))
    texts = (
        (MESSAGE, message[:MESSAGE_CHARS]),
        (BEFORE, around.before[-TURN_CHARS:]),
        (AFTER, around.after[:TURN_CHARS]),
        (DAY, f"{day_text(said_on(fact))} {around.speaker}"),
        (SUBJECT, f"{person} {relationship}"),
        (ASIDE, f"{backstory_of(fact)} {source_error(fact)}"),
    )
    return IndexEntry(roots(content_of(fact)), [(weight, again(text)) for weight, text in texts if text.strip()])


def said_on(fact: Fact) -> datetime | None:
    """When a fact was said; of one without such a time when its words were last changed by hand, or stored."""
    return moment(fact.get("saidAt")) or moment(updated_at(fact)) or moment(created_at(fact))


def day_text(time: datetime | None) -> str:
    """A day in the words of a question."""
    return f"{time.day} {_MONTHS[time.month - 1]} {time.year}" if time else ""


def names_of(facts: Sequence[Fact]) -> dict[str, tuple[int, ...]]:
    """The roots of the names of persons that facts are about, each with the places of those facts."""
    names: dict[str, list[int]] = {}
    for place, fact in enumerate(facts):
        if "subject" in fact:
            for root in roots(" ".join(subject_of(fact))):
                names.setdefault(root, []).append(place)
    return {root: tuple(places) for root, places in names.items()}
