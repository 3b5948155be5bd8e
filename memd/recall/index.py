"""The index of one memory: which of its facts hold the words of a query, weighed by BM25.

Built in memory in a few milliseconds and asked in less than one, so it needs no server and no file of its own
(docs/decisions/0007-an-index-in-memory.md). Never changed once it is built: any number of threads may ask.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from memd.memory.document import Fact
from memd.recall.words import BEGINNING, terms

K1, B = 1.2, 0.5
"""Of BM25: saturation and length weight, low in their usual range (Robertson and Zaragoza 2009), as facts are short."""

ASIDE_WEIGHT = 0.4
"""What a word counts that stands beside the fact (the user's own words, circumstance, what was wrong), not in it."""

BEGINNING_WEIGHT = 0.5
"""What it counts that a word of the fact only begins like one of the query."""

FULL_SHARE = 0.5
"""A fact is fully similar that gets this share of what one with every word of the query, and no other, would get."""

MAX_TIMES = 3
"""A word that a query repeats counts at most this often: a whole message may be the query."""


class Index:
    """Facts by the words they hold; a fact is known by its place in the list.

    `like`: an index whose average length counts, so that the scores of both can be compared.
    """

    def __init__(self, facts: Sequence[Fact], like: Index | None = None) -> None:
        counted = [_counted(fact) for fact in facts]
        lengths = [sum(counts.values()) for counts in counted]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._average: float = like._average if like else average
        self.size = len(facts)
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for place, counts in enumerate(counted):
            norm = K1 * (1 - B + B * lengths[place] / self._average)
            for term, count in counts.items():
                self._postings.setdefault(term, []).append((place, count * (K1 + 1) / (count + norm)))

    def frequency(self, term: str) -> int:
        """How many facts hold the term."""
        return len(self._postings.get(term, ()))

    def scores(self, weights: Mapping[str, float]) -> dict[int, float]:
        """The BM25 score of each fact that holds any of the terms."""
        scores: dict[int, float] = {}
        for term, weight in weights.items():
            for place, share in self._postings.get(term, ()):
                scores[place] = scores.get(place, 0.0) + weight * share
        return scores


def similarities(query: str, indexes: Sequence[Index]) -> dict[int, float]:
    """How well facts answer, above 0 to 1; what holds no word of the query is not there.

    BM25 as a share of the best one's, or of `FULL_SHARE` of all that the query could give when even the best one has
    less. Places are counted through all indexes, as if they were one.
    """
    size = sum(index.size for index in indexes)
    weights: dict[str, float] = {}
    for term, times in Counter(terms(query)).items():
        held = sum(index.frequency(term) for index in indexes)
        # The inverse document frequency in the form that never falls below zero.
        rarity = math.log(1 + (size - held + 0.5) / (held + 0.5))
        weights[term] = rarity * min(times, MAX_TIMES) * (BEGINNING_WEIGHT if term[0] == BEGINNING else 1.0)
    found: dict[int, float] = {}
    start = 0
    for index in indexes:
        found |= {start + place: score for place, score in index.scores(weights).items()}
        start += index.size
    full = max(FULL_SHARE * sum(weights.values()), max(found.values(), default=0.0))
    return {place: score / full for place, score in found.items()}


def _counted(fact: Fact) -> dict[str, float]:
    """How often each term stands in a fact, words beside it counted less."""
    counts: dict[str, float] = {}
    for term in terms(fact["content"]):
        counts[term] = counts.get(term, 0.0) + 1.0
    for text in _asides(fact):
        for term in terms(text):
            if counts.get(term, 0.0) < 1.0:
                counts[term] = ASIDE_WEIGHT
    return counts


def _asides(fact: Fact) -> Iterator[str]:
    values = [fact.get("sourceError"), fact.get("backstory")]
    subject, evidence = fact.get("subject"), fact.get("evidence")
    if isinstance(subject, dict):
        values += [subject.get("person"), subject.get("relationship")]
    if isinstance(evidence, list):
        values += [piece.get("quote") for piece in evidence if isinstance(piece, dict)]
    return (value for value in values if isinstance(value, str))
