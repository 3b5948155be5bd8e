"""The index of one memory: which entries contain the words of a query, ranked by BM25F.

It is built in memory in some milliseconds and queried in less than one, so it needs no server and no file of its own
(docs/decisions/0007-an-index-in-memory.md). It never changes once built: any number of threads may query it. Its
postings are flat arrays, so that the garbage collector has next to nothing to look at.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import accumulate, chain
from sys import getsizeof
from typing import NamedTuple

from memd.recall.words import beginnings

K1, B = 0.8, 0.5
"""BM25's saturation and length weight, at the low end of their usual range (Robertson and Zaragoza 2009): facts are
short."""

BEGINNING_WEIGHT = 0.3
"""Weight of a match by the beginning of a word, relative to a match of the whole word."""

MAX_TIMES = 3
"""A repeated word of the query counts at most this often: the query may be a whole message."""


FIELDS = 16
"""Weights of fields that an index tells apart, at most; the own words of its entries are one of them."""


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

    def __init__(self, entries: Iterable[IndexEntry], like: Index | None = None) -> None:
        # A posting is one number: the place of the entry, and the weight of the field that has the root, by its number.
        # The own words of an entry come first and have number 0.
        postings = defaultdict[str, list[int]](list)
        numbers: dict[float, int] = {}
        lengths: list[float] = []
        for place, entry in enumerate(entries):
            posting = place * FIELDS
            for of_root in map(postings.__getitem__, entry.own):
                of_root.append(posting)
            for weight, found in entry.fields:
                of_field = posting + numbers.setdefault(weight, len(numbers) + 1)
                for of_root in map(postings.__getitem__, found):
                    of_root.append(of_field)
            lengths.append(len(entry.own) + sum(weight * len(found) for weight, found in entry.fields))
        average = sum(lengths) / len(lengths) if any(lengths) else 1.0
        self.average: float = like.average if like else average
        self.size = len(lengths)
        self._norms = array("f", [K1 * (1 - B + B * length / self.average) for length in lengths])
        self._weights = (1.0, *numbers)
        self._postings = array("I", chain.from_iterable(postings.values()))
        self._numbers = {root: number for number, root in enumerate(postings)}
        self._ends = array("I", (0, *accumulate(map(len, postings.values()))))
        self._frequencies = array("I", bytes(4 * len(postings)))

    @cached_property
    def _by_beginning(self) -> dict[str, tuple[str, ...]]:
        """The roots that begin alike. As tuples: the garbage collector looks at tuples of texts only once."""
        found: dict[str, list[str]] = {}
        for root in self._numbers:
            for begin in beginnings(root):
                found.setdefault(begin, []).append(root)
        return {begin: tuple(alike) for begin, alike in found.items()}

    @cached_property
    def bytes_taken(self) -> int:
        """The bytes that the index takes, by estimate."""
        arrays = sum(map(getsizeof, (self._norms, self._postings, self._ends, self._frequencies)))
        roots = getsizeof(self._numbers) + sum(getsizeof(root) + getsizeof(1) for root in self._numbers)
        return arrays + roots + getsizeof(self._by_beginning) + sum(map(getsizeof, self._by_beginning.values()))

    def frequency(self, root: str) -> int:
        """How many entries contain the root."""
        number = self._numbers.get(root)
        if number is None:
            return 0
        if not self._frequencies[number]:  # counted when first asked for; two threads may do so at once, to one end
            self._frequencies[number] = _entries_in(self._postings_of(root))
        return self._frequencies[number]

    def places(self, root: str) -> set[int]:
        """The places of the entries that contain the root."""
        return {posting // FIELDS for posting in self._postings_of(root)}

    def frequency_of_beginning(self, beginning: str) -> int:
        """How many entries contain a word that begins so, at most."""
        return min(self.size, sum(map(self.frequency, self._by_beginning.get(beginning, ()))))

    def matches(self, wanted: Wanted) -> Iterator[tuple[int, Match]]:
        """The entries that contain any of the roots or beginnings, with their places.

        Of the words that begin alike the one with the best share counts, and only an entry's own words.
        """
        scores = [0.0] * self.size
        held = [0.0] * self.size
        covered = [0] * self.size
        shares_of = cache(self._shares)  # a word is asked for by itself and by its beginnings
        for root, weight in wanted.weights.items():
            bit = wanted.bits[root]
            for place, share, is_own in shares_of(root):
                scores[place] += weight * share
                held[place] += weight
                if is_own:
                    covered[place] |= bit
        for beginning, weight in wanted.beginnings.items():
            best: dict[int, float] = {}
            for root in self._by_beginning.get(beginning, ()):
                for place, share, is_own in shares_of(root):
                    if is_own and share > best.get(place, 0.0):
                        best[place] = share
            for place, share in best.items():
                scores[place] += weight * share
        return ((place, Match(score, held[place], covered[place])) for place, score in enumerate(scores) if score > 0)

    def _postings_of(self, root: str) -> Sequence[int]:
        number = self._numbers.get(root)
        return () if number is None else self._postings[self._ends[number] : self._ends[number + 1]]

    def _shares(self, root: str) -> list[tuple[int, float, bool]]:
        """Of each entry that contains the root: its place, its share of the score, and whether it has it itself."""
        counts: dict[int, float] = {}
        own: set[int] = set()
        weights = self._weights
        for posting in self._postings_of(root):
            place, number = posting // FIELDS, posting % FIELDS
            counts[place] = counts.get(place, 0.0) + weights[number]
            if not number:
                own.add(place)
        norms = self._norms
        return [(place, count * (K1 + 1) / (count + norms[place]), place in own) for place, count in counts.items()]


def _entries_in(postings: Sequence[int]) -> int:
    """How many entries these postings are of."""
    return len(postings) if len(postings) == 1 else len({posting // FIELDS for posting in postings})


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
