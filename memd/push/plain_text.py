"""Plain text: a text as a reader sees it, with the way back to the places of the original.

Look-alikes of ASCII become ASCII one by one (full width, mathematical letters, digits of other scripts, curly quotation
marks, dashes, spaces). Characters without width, which can split a word that looks whole, are left out.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import cached_property

_GONE = "\u200b"
_GAPS = re.compile(f"{_GONE}+")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u3164\uffa0\u180b\u180c\u180d")
_SAME = {
    **dict.fromkeys("‘’‚‛′`´", "'"),
    **dict.fromkeys("“”„‟″«»『』「」‹›", '"'),
    "İ": "I",  # the only letter whose lower case is longer
    "−": "-",
    "·": ".",
    "•": ".",
}
_KEPT = frozenset("，；、：（）")
"""Full-width punctuation of sentences, which never is a part of a secret."""


class _Table(dict[int, str]):
    """For `str.translate`: what each character reads as, looked up once."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = read = _read(char)
        return read


def _read(char: str) -> str:
    category = unicodedata.category(char)
    if char in _SAME:
        return _SAME[char]
    if category == "Cf" or char in _INVISIBLE or 0xFE00 <= ord(char) <= 0xFE0F:
        return _GONE
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category in ("Zs", "Pd"):
        return " " if category == "Zs" else "-"
    same = unicodedata.normalize("NFKC", char)
    return same if char not in _KEPT and len(same) == 1 and same.isascii() else char


_TABLE = _Table()


class Shortened:
    """A text without some characters, and the way back to the original.

    `spans`: the places of those characters, in order. They are looked at only when a place is asked for, as nearly no
    text holds a secret.
    """

    def __init__(self, text: str, spans: Callable[[], Iterable[tuple[int, int]]]) -> None:
        self.text = text
        self._spans = spans

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original text of a span of the shortened one."""
        return (self._one(start), self._one(end - 1) + 1) if self._way_back[0] else (start, end)

    def _one(self, place: int) -> int:
        places, shifts = self._way_back
        return place + shifts[bisect_right(places, place)]

    @cached_property
    def _way_back(self) -> tuple[list[int], list[int]]:
        """The places in the shortened text where something is left out, and the characters left out before each."""
        places, shifts = [], [0]
        for start, end in self._spans():
            places.append(start - shifts[-1])
            shifts.append(shifts[-1] + end - start)
        return places, shifts


def without(pattern: re.Pattern[str], text: str) -> Shortened:
    """The text without the matches of a pattern."""
    return Shortened(pattern.sub("", text), lambda: (match.span() for match in pattern.finditer(text)))


def plain_text(text: str) -> Shortened:
    """The text as it reads."""
    read = text if text.isascii() else text.translate(_TABLE)
    return without(_GAPS, read) if _GONE in read else Shortened(read, lambda: ())
