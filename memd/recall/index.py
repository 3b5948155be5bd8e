"""The index of one memory: which of its facts hold the words of a query, weighed by BM25.

Built in memory in a few milliseconds and asked in less than one, so it needs no server and no file of its own
(docs/decisions/0007-an-index-in-memory.md). Never changed once it is built: any number of threads may ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from memd.memory.document import Fact
from memd.recall.words import terms

K1, B = 1.2, 0.5
"""BM25's saturation and length weight (Robertson and Zaragoza 2009); facts differ little in length."""

ASIDE_WEIGHT = 0.4
"""What a word counts that stands beside the fact (the user's own words, circumstance, what was wrong), not in it."""


class Index:
    """Facts by the words they hold; a fact is known by its place in the list."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        counted = [_counted(fact) for fact in facts]
        lengths = [sum(counts.values()) for counts in counted]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self._size = len(facts)
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for place, counts in enumerate(counted):
            norm = K1 * (1 - B + B * lengths[place] / average)
            for term, count in counts.items():
                self._postings.setdefault(term, []).append((place, count * (K1 + 1) / (count + norm)))

    def similarities(self, query: str) -> dict[int, float]:
        """How well each fact answers the query: BM25 as a share of the best one's, above 0 to 1; no word, no place."""
        scores: dict[int, float] = {}
        for term, times in _times(terms(query)).items():
            found = self._postings.get(term, ())
            # The usual inverse document frequency, which never falls below zero.
            weight = math.log(1 + (self._size - len(found) + 0.5) / (len(found) + 0.5)) * min(times, 3)
            for place, share in found:
                scores[place] = scores.get(place, 0.0) + weight * share
        best = max(scores.values(), default=0.0)
        return {place: score / best for place, score in scores.items()}


def _times(found: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for term in found:
        counts[term] = counts.get(term, 0) + 1
    return counts


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
    values = [fact.get("category"), fact.get("sourceError"), fact.get("backstory")]
    subject, evidence = fact.get("subject"), fact.get("evidence")
    if isinstance(subject, dict):
        values += [subject.get("person"), subject.get("relationship")]
    if isinstance(evidence, list):
        values += [piece.get("quote") for piece in evidence if isinstance(piece, dict)]
    return (value for value in values if isinstance(value, str))
