"""Plain text: a text as a reader sees it, with the way back to the places of the original.

Look-alikes of ASCII become ASCII one by one (full width, mathematical letters, digits of other scripts, curly quotation
marks, dashes, spaces). Characters without width, which can split a word that looks whole, are left out.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from itertools import accumulate

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
    """A text without some spans, and the way back to the original."""

    def __init__(self, text: str, spans: list[tuple[int, int]]) -> None:
        bounds = [0, *(bound for span in spans for bound in span), len(text)]
        self.text = "".join(text[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True))
        lengths = [end - start for start, end in spans]
        self._shifts = [0, *accumulate(lengths)]
        self._places = [start - shift for (start, _), shift in zip(spans, self._shifts, strict=False)]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original text of a span of the shortened one."""
        return (self._one(start), self._one(end - 1) + 1) if self._places else (start, end)

    def _one(self, place: int) -> int:
        return place + self._shifts[bisect_right(self._places, place)]


def plain_text(text: str) -> Shortened:
    """The text as it reads."""
    if text.isascii():
        return Shortened(text, [])
    read = text.translate(_TABLE)
    return Shortened(read, [gap.span() for gap in _GAPS.finditer(read)] if _GONE in read else [])
