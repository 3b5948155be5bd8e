"""The index of one memory: which facts contain the words of a query, ranked by BM25.

It is built in memory in a few milliseconds and queried in less than one, so it needs no server and no file of its own
(docs/decisions/0007-an-index-in-memory.md). It never changes once built: any number of threads may query it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from sys import getsizeof
from typing import Any

from memd.memory.document import Fact
from memd.memory.facts import asides_of, content_of, quotes_of
from memd.recall.words import BEGINNING, terms

K1, B = 1.2, 0.5
"""BM25's saturation and length weight, at the low end of their usual range (Robertson and Zaragoza 2009): facts are
short."""

ASIDE_WEIGHT = 0.4
"""Weight of a word in a quote or an aside of a fact (backstory, corrected error), relative to its sentence."""

BEGINNING_WEIGHT = 0.5
"""Weight of a match by the beginning of a word, relative to a match of the whole word."""

FULL_SHARE = 0.5
"""A fact is fully similar at this share of the score that a fact with exactly the query's words would have."""

MAX_TIMES = 3
"""A repeated word of the query counts at most this often: the query may be a whole message."""


class Index:
    """Facts by the terms they contain; a fact is known by its place in the list.

    `like`: an index whose average length is used, so that the scores of both can be compared.
    """

    def __init__(self, facts: Sequence[Fact], like: Index | None = None) -> None:
        counted = [_counted(fact) for fact in facts]
        lengths = [sum(counts.values()) for counts in counted]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._average: float = like._average if like else average
        self.size = len(facts)
        postings: dict[str, list[float]] = {}
        for place, counts in enumerate(counted):
            norm = K1 * (1 - B + B * lengths[place] / self._average)
            for term, count in counts.items():
                postings.setdefault(term, []).extend((place, count * (K1 + 1) / (count + norm)))
        # For each term place, share, place, share …: the garbage collector looks at flat tuples of numbers only once,
        # and at lists of pairs again and again.
        self._postings: dict[str, tuple[Any, ...]] = {term: tuple(flat) for term, flat in postings.items()}

    @cached_property
    def bytes_taken(self) -> int:
        """The bytes that the index takes, by estimate."""
        shares = sum(map(self.frequency, self._postings)) * getsizeof(0.0)
        terms_and_tuples = sum(getsizeof(term) + getsizeof(flat) for term, flat in self._postings.items())
        return getsizeof(self._postings) + terms_and_tuples + shares

    def frequency(self, term: str) -> int:
        """How many facts contain the term."""
        return len(self._postings.get(term, ())) // 2

    def scores(self, weights: Mapping[str, float]) -> dict[int, float]:
        """The BM25 score of each fact that contains any of the terms."""
        scores: dict[int, float] = {}
        for term, weight in weights.items():
            flat = self._postings.get(term, ())
            for place, share in zip(flat[::2], flat[1::2], strict=True):
                scores[place] = scores.get(place, 0.0) + weight * share
        return scores


def similarities(query: str, indexes: Sequence[Index]) -> dict[int, float]:
    """How well facts match the query, above 0 up to 1; facts without a word of the query are left out.

    A fact's BM25 score divided by the best fact's, or by `FULL_SHARE` of the highest possible score if that is more.
    Places are counted through all indexes, as if they were one.
    """
    size = sum(index.size for index in indexes)
    weights: dict[str, float] = {}
    for term, times in Counter(terms(query)).items():
        frequency = sum(index.frequency(term) for index in indexes)
        # The inverse document frequency in the form that never falls below zero.
        rarity = math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))
        weights[term] = rarity * min(times, MAX_TIMES) * (BEGINNING_WEIGHT if term[0] == BEGINNING else 1.0)
    scores: dict[int, float] = {}
    start = 0
    for index in indexes:
        scores |= {start + place: score for place, score in index.scores(weights).items()}
        start += index.size
    full = max(FULL_SHARE * sum(weights.values()), max(scores.values(), default=0.0))
    return {place: score / full for place, score in scores.items()}


def _counted(fact: Fact) -> dict[str, float]:
    """How often each term occurs in a fact; quotes and asides count less."""
    counts: dict[str, float] = {}
    for term in terms(content_of(fact)):
        counts[term] = counts.get(term, 0.0) + 1.0
    for text in (*asides_of(fact).values(), *quotes_of(fact)):
        for term in terms(text):
            if counts.get(term, 0.0) < 1.0:
                counts[term] = ASIDE_WEIGHT
    return counts
