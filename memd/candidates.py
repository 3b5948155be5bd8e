"""Candidates: which of many patterns may be found in a text at all, told by the texts that they cannot do without.

A text is cut into all its pieces of two or four characters once; a pattern is a candidate when one of its needed texts
has its rarest piece there and occurs. Most patterns are never looked at, and never compiled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic, TypeVar

from memd.literals import COMMON, needed

P = TypeVar("P")
Piece = int


class Candidates(Generic[P]):
    """Patterns by what they need. `size`: characters of a piece, 4, or 2 for scripts whose words are that short."""

    def __init__(self, patterns: Iterable[tuple[str, P]], size: int) -> None:
        self._size = size
        self._always: list[P] = []
        self._owners: dict[str, list[P]] = defaultdict(list)
        for source, pattern in patterns:
            texts = needed(source)
            if not texts:
                self._always.append(pattern)
            for text in texts:
                self._owners[text].append(pattern)
        self._pieces: dict[Piece, list[str]] = defaultdict(list)
        self._short = [text for text in self._owners if len(text) < size]
        for text in self._owners:
            if len(text) >= size:
                self._pieces[_rarest(text, size)].append(text)

    def all(self) -> Iterator[P]:
        """All patterns, some more than once."""
        yield from self._always
        for owners in self._owners.values():
            yield from owners

    def needs(self, text: str, pieces: set[Piece]) -> list[str]:
        """The needed texts that occur in a text; `pieces`: what `cut` makes of it."""
        likely = [wanted for piece in pieces & self._pieces.keys() for wanted in self._pieces[piece]]
        return [wanted for wanted in (*likely, *self._short) if wanted in text]

    def among(self, found: Sequence[str], text: str) -> list[P]:
        """The patterns to try on a part of a text for which `needs` has answered `found`; some maybe twice."""
        return [*self._always, *(owner for wanted in found if wanted in text for owner in self._owners[wanted])]


def cut(text: str, size: int) -> set[Piece]:
    """All pieces of so many characters (4 or 2), each four bytes read as a number: ten times as fast as strings.

    Characters that Latin-1 has not are all `?` in pieces of four; what is alike by that is compared as a whole later.
    """
    data = memoryview(text.encode("latin-1", "replace") if size == 4 else text.encode("utf-16-le", "surrogatepass"))
    pieces: set[Piece] = set()
    for start in range(0, 4, 4 // size):
        whole = (len(data) - start) // 4 * 4
        if whole > 0:
            pieces.update(data[start : start + whole].cast("I"))
    return pieces


def _rarest(text: str, size: int) -> Piece:
    """The piece with the fewest common letters: looked up in place of the whole text."""
    places = range(len(text) - size + 1)
    rarest = min((text[at : at + size] for at in places), key=lambda piece: sum(char in COMMON for char in piece))
    return next(iter(cut(rarest, size)))
