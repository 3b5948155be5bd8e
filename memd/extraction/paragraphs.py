"""Where a text is best split in two: at a blank line, else after a sentence, else at the end of a line, else anywhere.

A pure function of the text. CJK text needs no blanks, and code in fences is split only where nothing else is left.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import nsmallest

from memd.push.sentence_ends import sentence_ends

MIN_CHARS = 400
"""Sentences with fewer characters are never split."""

NEAR_CHARS = 1_000
"""Sentences are looked for this close to the middle first, so that a long text costs little more than a short one."""

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_ITEM = re.compile(r"\n(?=[ \t]{0,8}(?:[-*+•·#>]|\d{1,3}[.)、]|```|~~~))|(?:```|~~~)[ \t]*\n")
_LINE = re.compile(r"\n")
_FENCE = re.compile(r"^[ \t]{0,8}(?:```|~~~)", re.M)
_CLAUSE = re.compile(r"[,，、:：;；] ?|\s")
_ENDED = re.compile(r"[.!?。！？…;；:：]\W*\Z")


def middle(text: str, start: int, end: int) -> int | None:
    """The best place to split text[start:end] in two that both say something; None when it should stay whole.

    Of the places of the best kind it is the one nearest to the middle. A kind that has none in the middle half gives
    way to the next kind; code in fences comes after all of them, and a place inside a sentence comes last.
    """
    span = _Span(text, start, end)
    if not text[start:end].strip():
        return None
    if (place := span.between_sentences()) is not None:
        return place
    return span.inside_a_sentence() if end - start >= MIN_CHARS else None


class _Span:
    """The part of a text that is to be split."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self._text, self._start, self._end = text, start, end
        self._aim, quarter = (start + end) // 2, (end - start) // 4
        self._half = (self._aim - quarter, self._aim + quarter)
        self._fences = [found.start() for found in _FENCE.finditer(text, 0, end)]

    def between_sentences(self) -> int | None:
        """The best place between two sentences, or two lines of code."""
        for kinds, fenced in ((self._prose_kinds, False), (self._code_kinds, True)):
            for bounds in (self._half, (self._start, self._end)):
                for places in kinds(*bounds):
                    if (place := self._nearest(places, fenced=fenced)) is not None:
                        return place
        return None

    def inside_a_sentence(self) -> int:
        """The best place between two clauses or words, else the middle."""
        clauses = (found.end() for found in _CLAUSE.finditer(self._text, *self._half))
        return self._nearest(clauses, fenced=True) or self._aim

    def _prose_kinds(self, first: int, last: int) -> Iterator[Iterable[int]]:
        """The places from `first` to `last`, by kind, the best kind first."""
        yield (found.end() for found in _BLANK_LINE.finditer(self._text, first, last))
        yield (found.end() for found in _ITEM.finditer(self._text, first, last))
        near = (max(first, self._aim - NEAR_CHARS), min(last, self._aim + NEAR_CHARS))
        yield self._sentences(*near)
        if near != (first, last):
            yield self._sentences(first, last)
        yield (found.end() for found in _LINE.finditer(self._text, first, last))

    def _code_kinds(self, first: int, last: int) -> Iterator[Iterable[int]]:
        for kind in (_BLANK_LINE, _LINE):
            yield (found.end() for found in kind.finditer(self._text, first, last))

    def _sentences(self, first: int, last: int) -> Iterator[int]:
        """The ends of sentences. That of a line is one only if its text is complete there: lines may be wrapped."""
        for length in sentence_ends(self._text[first:last]):
            place = first + length
            if place == last:  # where the search ends, no sentence need end
                return
            if self._text[place - 1] != "\n" or _ENDED.search(self._text, max(first, place - 8), place):
                yield place

    def _nearest(self, places: Iterable[int], *, fenced: bool) -> int | None:
        """The place nearest to the middle, with something said on both sides. `fenced`: it may be in a fence."""
        fit = (place for place in places if fenced or bisect_right(self._fences, place - 1) % 2 == 0)
        for place in nsmallest(3, fit, key=lambda place: abs(place - self._aim)):
            if self._text[self._start : place].strip() and self._text[place : self._end].strip():
                return place
        return None
