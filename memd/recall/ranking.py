"""Ranking: how well each fact, excerpt and pending message of a memory answers a query, by words, names and vectors.

One list for all of them. Pure: `reader` does the reading, `order` knows what must never stand above what.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from memd.memory.facts import content_of, source_of, subject_of
from memd.recall.domains import Limits, is_request
from memd.recall.fields import Around, entries_of, names_of, said_on
from memd.recall.index import Index, Match, Wanted, wanted
from memd.recall.memories import Memory, with_pending
from memd.recall.periods import NO_PERIOD, Period
from memd.recall.replaced import Replaced, replaced_in
from memd.recall.words import roots

if TYPE_CHECKING:
    from memd.recall.layers import Excerpt
    from memd.recall.pending import Pending

COVERED, THREAD, NAMED, HOP = 0.6, 0.15, 0.4, 0.4
"""What is added to the words' score, of which the best is 1: for the share of the query's words that an entry has (by
weight), for the best entry of its thread, for being about somebody whom the query names, and for being about the person
whom the best entry is about while it has the words that the best entry lacks."""

THEN = 0.4
"""What is added for being said in the period that the query names."""

LIMITING = 0.8
"""What is added, of the best score, for a constraint that limits what a request asks for."""

EXCERPTS = 100
"""Excerpts that answer one query at most, the best by words; a block has room for some 30."""

VECTORS = 0.5
"""What the nearest vector adds, the farthest adding nothing."""

FLOOR = 0.3
"""The cosine below which a fact that shares no word with the query is no answer."""

FEEDBACK, FEEDBACK_FROM = 0.15, 3
"""Weight of the roots that a Chinese query borrows, relative to its own, and how many of the best entries lend them."""

_FIRST_UNSPACED = "\u0e00"


class Answering(NamedTuple):
    """How well a place answers: from 0 to 1, and the query's roots among its own words, as bits."""

    similarity: float
    covered: int


Near = Mapping[int, float] | Callable[[], Mapping[int, float]]
"""How near the vectors of facts are to a query's, by the places of the facts; or a function that waits for that."""


@dataclass(frozen=True)
class Indexed:
    """A memory with its index and all that its ranking asks for. Built once, never changed."""

    memory: Memory
    around: Sequence[Around] = ()
    """What was said around each of `memory.found`; shorter where nothing is known of the others."""

    base: Indexed | None = None
    """The same memory without pending messages, whose index is used."""

    def with_pending(self, messages: Sequence[Pending]) -> Indexed:
        """The same with pending messages."""
        return Indexed(with_pending(self.memory, messages), (), self)

    @cached_property
    def indexes(self) -> Sequence[Index]:
        """The indexes of all that can be found, in the order of `memory.found`."""
        if self.base is None:
            return (Index(entries_of(self.memory.found, self.around)),)
        pending = (message.as_fact() for message in self.memory.pending)
        return (*self.base.indexes, Index(entries_of(pending), self.base.indexes[0]))

    @cached_property
    def names(self) -> Mapping[str, Sequence[int]]:
        """The places of the facts about each person."""
        return names_of(self.memory.facts)

    @cached_property
    def replaced(self) -> Replaced:
        """The facts that others have replaced."""
        return replaced_in(self.memory.facts)

    @cached_property
    def limits(self) -> Limits:
        """The facts that limit requests."""
        return Limits(self.memory.facts)

    def names_in(self, query: str) -> int:
        """The bits of the query's roots that are names of persons."""
        bits = wanted(roots(query), ()).bits
        return sum(bit for root, bit in bits.items() if root in self.names)

    @cached_property
    def threads(self) -> Sequence[str]:
        """The thread of each of `memory.found`; "" when it has none."""
        return tuple(map(source_of, self.memory.found))

    @cached_property
    def times(self) -> Sequence[float]:
        """When each of `memory.found` was said, in seconds; 0 when that is not known."""
        times = map(said_on, self.memory.found)
        return array("d", [time.timestamp() if time else 0.0 for time in times])

    @property
    def bytes_taken(self) -> int:
        """The bytes that its index takes, by estimate."""
        return sum(index.bytes_taken for index in self.indexes) if "indexes" in vars(self) else 0

    def left_out(self, turns: Collection[str], *, past: bool) -> frozenset[int]:
        """The places of the excerpts that are not for a query: those of these turns, and what has changed since unless
        the query is about the past.
        """
        own = (place for place, excerpt in self._excerpts if excerpt.turn.id in turns) if turns else ()
        return frozenset(own) if past else self._over.union(own)

    @cached_property
    def _over(self) -> frozenset[int]:
        """The places of the excerpts whose matter has changed since."""
        return frozenset(place for place, excerpt in self._excerpts if excerpt.over)

    @property
    def _excerpts(self) -> Iterator[tuple[int, Excerpt]]:
        """The excerpts with their places."""
        return enumerate(self.memory.excerpts, len(self.memory.facts))

    def answering(
        self,
        query: str,
        near: Near | None = None,
        without: frozenset[int] = frozenset(),
        period: Period = NO_PERIOD,
    ) -> dict[int, Answering]:
        """All places that answer a query. The best has similarity 1; what shares nothing with the query is left out.

        `near`: how near the facts are to the query; it is waited for when the words have been compared.
        `without`: places that are no answer. `period`: what was said then is preferred.
        """
        asked = wanted(roots(query), self.indexes)
        matches = {place: match for place, match in self._matches(asked).items() if place not in without}
        values = self._by_words(asked, matches)
        self._add_limits(query, values)
        for place in values:
            values[place] += THEN * (self.times[place] in period)
        if cosines := near() if callable(near) else near:
            values = _with_vectors(values, cosines)
        values = self._without_weak_excerpts(values)
        best = max(values.values(), default=1.0)
        nothing = Match(0.0, 0.0, 0)
        return {place: Answering(value / best, matches.get(place, nothing).covered) for place, value in values.items()}

    def _without_weak_excerpts(self, values: dict[int, float]) -> dict[int, float]:
        """Without the excerpts beyond the best ones, of which no block has room."""
        first = len(self.memory.facts)
        last = first + len(self.memory.excerpts)
        excerpts = [place for place in values if first <= place < last]
        if len(excerpts) <= EXCERPTS:
            return values
        weak = set(sorted(excerpts, key=values.__getitem__, reverse=True)[EXCERPTS:])
        return {place: value for place, value in values.items() if place not in weak}

    def _matches(self, asked: Wanted) -> dict[int, Match]:
        matches: dict[int, Match] = {}
        start = 0
        for index in self.indexes:
            matches.update((start + place, match) for place, match in index.matches(asked))
            start += index.size
        return matches

    def _by_words(self, asked: Wanted, matches: Mapping[int, Match]) -> dict[int, float]:
        if not matches:
            return {}
        scores = {place: match.score for place, match in matches.items()}
        self._add_feedback(asked, scores)
        best, whole = max(scores.values()), sum(asked.weights.values()) or 1.0
        threads: dict[str, float] = {}
        for place, score in scores.items():
            thread = self.threads[place]
            threads[thread] = max(score, threads.get(thread, 0.0))
        threads[""] = 0.0
        held = {place: match.held / whole for place, match in matches.items()}
        values = {
            place: (score + THREAD * threads[self.threads[place]]) / best + COVERED * held.get(place, 0.0)
            for place, score in scores.items()
        }
        self._add_names(asked, matches, values)
        return values

    def _add_feedback(self, asked: Wanted, scores: dict[int, float]) -> None:
        """Where words have no spaces, the best entries lend the query the words with which they say the same."""
        unspaced = sum(root[0] >= _FIRST_UNSPACED for root in asked.weights)
        if 2 * unspaced <= len(asked.weights):
            return
        best = sorted(scores, key=lambda place: -scores[place])[:FEEDBACK_FROM]
        lent = [
            root
            for place in best
            for root in set(roots(content_of(self.memory.found[place])))
            if len(root) > 1 and root not in asked.weights
        ]
        borrowed = wanted(lent, self.indexes)
        weights = {root: FEEDBACK / FEEDBACK_FROM * weight for root, weight in borrowed.weights.items()}
        for place, match in self._matches(Wanted(weights, dict.fromkeys(weights, 0), {})).items():
            if place in scores:
                scores[place] += match.score

    def _add_names(self, asked: Wanted, matches: Mapping[int, Match], values: dict[int, float]) -> None:
        """Whoever is named outranks common words; whoever is only described is named by the best entry."""
        named = [self.names[root] for root in asked.weights if root in self.names]
        if named:
            for place in set().union(*named) & values.keys():
                values[place] += NAMED
            return
        best = max(values, key=lambda place: values[place])
        if best >= len(self.memory.facts):
            return
        lacked = sum(asked.bits.values()) & ~matches[best].covered if best in matches else 0
        same = set().union(*(self.names.get(root, ()) for root in roots(subject_of(self.memory.facts[best])[0])))
        for place in same & values.keys():
            if place != best and place in matches and matches[place].covered & lacked:
                values[place] += HOP

    def _add_limits(self, query: str, values: dict[int, float]) -> None:
        """A request that names no fact brings the constraints of its domain, of persons whom it names before others."""
        if not is_request(query):
            return
        limits = self.limits.of(query)
        best = max(values.values(), default=1.0)
        named = set().union(*(self.names.get(root, ()) for root in roots(query)))
        for place in limits:
            values[place] = values.get(place, 0.0) + best * (LIMITING + (NAMED if place in named else 0.0))


def _with_vectors(values: Mapping[int, float], cosines: Mapping[int, float]) -> dict[int, float]:
    """Words plus VECTORS times the cosine, which is spread from 0 (the farthest) to 1 (the nearest)."""
    lowest, highest = min(cosines.values()), max(cosines.values())
    spread = highest - lowest
    best = max(values.values(), default=1.0)
    fused = {place: value / best for place, value in values.items()}
    for place, cosine in cosines.items():
        if place in fused or cosine >= FLOOR:
            nearness = (cosine - lowest) / spread if spread else 1.0  # one fact alone is the nearest
            fused[place] = fused.get(place, 0.0) + VECTORS * nearness
    return fused
