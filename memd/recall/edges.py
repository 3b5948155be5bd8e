"""Edges: the period of a question that names an event in place of a date, such as "before the move" or 搬家之前.

The event is looked for among what is indexed: the user's facts and excerpts. When it was said, or the day that its
sentence names, is the edge of the period. An event that is not found changes nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import NamedTuple

from memd.memory.facts import category_of, content_of, subject_of
from memd.memory.text import fold
from memd.recall import periods
from memd.recall.fields import said_on
from memd.recall.index import wanted
from memd.recall.periods import MAX_CHARS, Language, Period, languages
from memd.recall.ranking import Indexed
from memd.recall.words import roots

SIDES = {"before": (730, 0), "since": (0, 36_500), "after": (0, 365), "around": (30, 30)}
"""Days before and after the event that its period has."""

COVERED = 0.55
"""The share of an event's words, by weight, that a fact must have to be that event."""

CANDIDATES = 10
"""Facts and excerpts that are looked at as that event, at most."""

YEARLESS = timedelta(days=300)
"""A day further back than this is believed only if its sentence names the year: "in May" may be the coming May."""

OLDEST = timedelta(days=3_650)
"""An event further back is none of the life that the memory has seen ("born in 1985")."""


class Happening(NamedTuple):
    """An event that a question names. `wanted`: its words, each as alternatives, which are sets of roots."""

    side: str
    wanted: list[Sequence[frozenset[str]]]
    roots: frozenset[str]
    is_known_kind: bool


def period_of(query: str, now: datetime, indexed: Indexed) -> Period:
    """The period that a question names by a date or by an event."""
    period = periods.period_of(query, now)
    event = None if period.until else _event_of(query)
    edge = _edge(event, indexed) if event else None
    if event is None or edge is None or not now - OLDEST < edge <= now:
        return period
    before, after = SIDES[event.side]
    since, until = edge - timedelta(days=before), min(edge + timedelta(days=after), now)
    return Period(since.timestamp(), until.timestamp(), period.past or event.side in {"before", "around"})


def _event_of(query: str) -> Happening | None:
    """The first event that a question names; none in a question about what is to come, nor one of every day."""
    text = fold(query[:MAX_CHARS])
    for language in languages():
        if language.future.search(text):
            return None
        for pattern in language.events:
            if match := pattern.search(text):
                found = {side: words for side, words in match.groupdict().items() if words}
                side, words = next(iter(found.items()))
                if event := _event(side, words, language):
                    return event
    return None


def _event(side: str, words: str, language: Language) -> Happening | None:
    held = _roots(words) - language.small
    if not held or held <= language.daily:
        return None
    known = [phrases for phrases in _kinds() if any(phrase <= held for phrase in phrases)]
    rest = held - {root for phrases in known for phrase in phrases if phrase <= held for root in phrase}
    return Happening(side, [*known, *((frozenset((root,)),) for root in sorted(rest))], held, bool(known))


def _edge(event: Happening, indexed: Indexed) -> datetime | None:
    """When the event was, by the fact or excerpt that has most of its words: the last one that is called an event, else
    the first.
    """
    best = sorted(_candidates(event, indexed))[:CANDIDATES]
    facts = [indexed.memory.found[place] for share, _, place in best if share == best[0][0]]
    facts = [fact for fact in facts if not _only_names(content_of(fact))] or facts
    events = [fact for fact in facts if category_of(fact) == "event"]
    days = sorted(day for fact in events or facts if (day := _day(content_of(fact), said_on(fact))))
    return days[-1 if events else 0] if days else None


def _candidates(event: Happening, indexed: Indexed) -> Iterator[tuple[float, bool, int]]:
    """What may be the event: the share of its words, negative; whether it is none by its category; and the place."""
    weights = wanted(sorted(event.roots), indexed.indexes).weights
    whole = sum(weights.values())
    shares: dict[int, float] = {}
    kinds: set[int] = set()
    for number, phrases in enumerate(event.wanted):
        places = set().union(*(_places(phrase, indexed) for phrase in phrases))
        own = {root for phrase in phrases for root in phrase if root in weights}
        weight = max((weights[root] for root in own), default=0.0)
        if event.is_known_kind and number == 0:
            kinds = places
        for place in places:
            shares[place] = shares.get(place, 0.0) + weight / whole
    for place, share in shares.items():
        if place in kinds if event.is_known_kind else share >= COVERED:
            fact = indexed.memory.found[place]
            person = _roots(subject_of(fact)[0])
            if not person or person & event.roots:
                yield -share, category_of(fact) != "event", place


def _places(phrase: frozenset[str], indexed: Indexed) -> set[int]:
    """The places that have all roots of a phrase."""
    start, found = 0, set[int]()
    for index in indexed.indexes:
        found |= {start + place for place in set.intersection(*(index.places(root) for root in phrase))}
        start += index.size
    return found


def _only_names(content: str) -> bool:
    """Whether a sentence is about a plan, or only names the event as an edge ("since the move …")."""
    text = fold(content)
    return any(
        language.future.search(text)
        or language.plans.search(text)
        or any(pattern.search(text) for pattern in language.events)
        for language in languages()
    )


def _day(content: str, said: datetime | None) -> datetime | None:
    """When it was, by its sentence, else when it was said."""
    if said is None:
        return None
    said = said.astimezone(UTC)
    named = periods.period_of(content, said)
    if not named.until:
        return said
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (named.since, named.until))
    day = min(max(said, begin + periods.SLACK), end - periods.SLACK - timedelta(days=1))
    return day if said - day < YEARLESS or str(day.year) in content else said


def _roots(text: str) -> frozenset[str]:
    """The roots of a text; of characters without spaces only the pairs, if there are any."""
    found = roots(text)
    pairs = [root for root in found if root.isascii() or len(root) > 1]
    return frozenset(pairs or found)


@cache
def _kinds() -> tuple[tuple[frozenset[str], ...], ...]:
    """The kinds of events that people name in several ways, each with its phrases in all languages."""
    found: dict[str, list[frozenset[str]]] = {}
    for language in languages():
        for kind, phrases in language.kinds.items():
            found.setdefault(kind, []).extend(map(_roots, phrases))
    return tuple(map(tuple, found.values()))
