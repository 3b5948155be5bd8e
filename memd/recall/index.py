"""The index of one memory: which entries contain the words of a query, ranked by BM25F.

It is built in memory in some milliseconds and queried in less than one, so it needs no server and no file of its own
(docs/decisions/0007-an-index-in-memory.md). It never changes once built: any number of threads may query it. Its
postings are two flat arrays, so that the garbage collector has next to nothing to look at.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from sys import getsizeof
from typing import Any, NamedTuple

from memd.recall.words import beginnings

K1, B = 0.8, 0.5
"""BM25's saturation and length weight, at the low end of their usual range (Robertson and Zaragoza 2009): facts are
short."""

BEGINNING_WEIGHT = 0.3
"""Weight of a match by the beginning of a word, relative to a match of the whole word."""

MAX_TIMES = 3
"""A repeated word of the query counts at most this often: the query may be a whole message."""


class IndexEntry(NamedTuple):
    """What is indexed of one fact or excerpt: the roots of its own words, and of other fields with their weights."""

    own: Sequence[str]
    fields: Sequence[tuple[float, Sequence[str]]] = ()


class Wanted(NamedTuple):
    """The roots of a query. `weights`: rarity times repetitions, of each root. `bits`: one bit for each root.

    `beginnings`: the weights of the beginnings of its words.
    """

    weights: Mapping[str, float]
    bits: Mapping[str, int]
    beginnings: Mapping[str, float]


class Match(NamedTuple):
    """How an entry matches: its BM25F score, the weight of the roots that it has anywhere, and those it has itself."""

    score: float
    held: float
    covered: int


class Index:
    """Entries by the roots they contain; an entry is known by its place in the list.

    `like`: an index whose average length is used, so that the scores of both can be compared.
    """

    def __init__(self, entries: Sequence[IndexEntry], like: Index | None = None) -> None:
        counted = [_counted(entry) for entry in entries]
        lengths = [sum(counts.values()) for counts in counted]
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self.average: float = like.average if like else average
        self.size = len(entries)
        postings: dict[str, list[Any]] = {}
        for place, (counts, entry) in enumerate(zip(counted, entries, strict=True)):
            norm = K1 * (1 - B + B * lengths[place] / self.average)
            own, code = len(set(entry.own)), 2 * place + 1
            for number, (root, count) in enumerate(counts.items()):
                # The entry's own roots come first; the lowest bit of the code tells them from the others.
                flat = (code if number < own else code - 1, count * (K1 + 1) / (count + norm))
                if root in postings:
                    postings[root] += flat
                else:
                    postings[root] = [*flat]
        self._codes = array("I")
        self._shares = array("f")
        self._ends: dict[str, int] = {}
        self._starts: dict[str, int] = {}
        for root, flats in postings.items():
            self._starts[root] = len(self._codes)
            self._codes.extend(flats[::2])
            self._shares.extend(flats[1::2])
            self._ends[root] = len(self._codes)

    @cached_property
    def _by_beginning(self) -> dict[str, tuple[str, ...]]:
        """The roots that begin alike. As tuples: the garbage collector looks at tuples of texts only once."""
        found: dict[str, list[str]] = {}
        for root in self._starts:
            for begin in beginnings(root):
                found.setdefault(begin, []).append(root)
        return {begin: tuple(alike) for begin, alike in found.items()}

    @cached_property
    def bytes_taken(self) -> int:
        """The bytes that the index takes, by estimate."""
        arrays = getsizeof(self._codes) + getsizeof(self._shares)
        roots = sum(map(getsizeof, self._starts)) + 2 * sum(map(getsizeof, self._ends.values()))
        lists = sum(map(getsizeof, self._by_beginning.values()))
        return arrays + roots + 2 * getsizeof(self._starts) + getsizeof(self._by_beginning) + lists

    def frequency(self, root: str) -> int:
        """How many entries contain the root."""
        return self._ends.get(root, 0) - self._starts.get(root, 0)

    def places(self, root: str) -> set[int]:
        """The places of the entries that contain the root."""
        start, end = self._starts.get(root, 0), self._ends.get(root, 0)
        return {code >> 1 for code in self._codes[start:end]}

    def frequency_of_beginning(self, beginning: str) -> int:
        """How many entries contain a word that begins so, at most."""
        return min(self.size, sum(map(self.frequency, self._by_beginning.get(beginning, ()))))

    def matches(self, wanted: Wanted) -> Iterator[tuple[int, Match]]:
        """The entries that contain any of the roots or beginnings, with their places."""
        scores = [0.0] * self.size
        held = [0.0] * self.size
        covered = [0] * self.size
        for root, weight in wanted.weights.items():
            bit = wanted.bits[root]
            for code, share in self._postings(root):
                place = code >> 1
                scores[place] += weight * share
                held[place] += weight
                if code & 1:
                    covered[place] |= bit
        for beginning, weight in wanted.beginnings.items():
            for place, share in self._postings_of_beginning(beginning).items():
                scores[place] += weight * share
        return ((place, Match(score, held[place], covered[place])) for place, score in enumerate(scores) if score > 0)

    def _postings(self, root: str) -> Iterator[tuple[int, float]]:
        start, end = self._starts.get(root, 0), self._ends.get(root, 0)
        return zip(self._codes[start:end], self._shares[start:end], strict=True)

    def _postings_of_beginning(self, beginning: str) -> dict[int, float]:
        """The best share of a word that begins so, for each entry that has one among its own words."""
        best: dict[int, float] = {}
        for root in self._by_beginning.get(beginning, ()):
            for code, share in self._postings(root):
                if code & 1 and share > best.get(code >> 1, 0.0):
                    best[code >> 1] = share
        return best


def wanted(query: Sequence[str], indexes: Sequence[Index]) -> Wanted:
    """The roots of a query, weighed by how rare they are in all these indexes as if they were one."""
    size = sum(index.size for index in indexes)

    def rarity(frequency: int) -> float:
        """The inverse document frequency in the form that never falls below zero."""
        return math.log(1 + (size - frequency + 0.5) / (frequency + 0.5))

    times = Counter(query)
    weights = {
        root: rarity(sum(index.frequency(root) for index in indexes)) * min(count, MAX_TIMES)
        for root, count in times.items()
    }
    begun = Counter(begin for root in times for begin in beginnings(root))
    return Wanted(
        weights,
        {root: 1 << number for number, root in enumerate(weights)},
        {
            begin: BEGINNING_WEIGHT * rarity(sum(index.frequency_of_beginning(begin) for index in indexes)) * count
            for begin, count in begun.items()
        },
    )


def _counted(entry: IndexEntry) -> dict[str, float]:
    """How often each root occurs in an entry, by weight; its own roots first."""
    counts: dict[str, float] = {}
    for root in entry.own:
        counts[root] = counts.get(root, 0.0) + 1.0
    for weight, roots in entry.fields:
        for root in roots:
            counts[root] = counts.get(root, 0.0) + weight
    return counts
