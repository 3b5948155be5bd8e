"""Quotes: finds the passage of a message that a quote repeats, and gives it back as it was written.

Only letters, digits and the signs that belong to them are compared. Case, width, spaces, dashes, quotation marks,
markdown, emoji, list marks and punctuation do not count, for models copy them loosely; between two digits they do
("1.5" is not "15"). An ellipsis is a gap: its parts stand in the message in this order. Words are never guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import compress, count

from memd.memory.text import CJK, fold, one_line

MAX_QUOTE_CHARS = 500
"""Characters of a passage that are kept; the beginning of a passage is verbatim too."""

MAX_GAPS = 5
"""Gaps in one quote. Each part says something by itself, so honest quotes have one or two."""

_UNSPACED = f"{CJK}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Characters of scripts that put no space between words: Chinese, Japanese, Thai, Lao, Burmese, Khmer; and Korean."""

_MARKS = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
"""Accents and vowel signs, which are letters to a reader and none to `\\w`."""

_LETTER = rf"(?:[^\W_{_UNSPACED}]|[{_MARKS}])"
_WORD = re.compile(rf"(?<![^\W_{_UNSPACED}])(?<![{_MARKS}]){_LETTER}+(?:['’-]{_LETTER}+)*(?!{_LETTER})")
_INSIDE = re.compile(rf"(?<={_LETTER}){_LETTER}|(?<=\d)[.,]\d|(?<=\d[.,])\d")
"""The inside of a word or number goes on here."""

_UNSPACED_CHARACTER = re.compile(f"[{_UNSPACED}]")

_GAP = re.compile(r"[\[(（【]?(?:…|⋯|\.\.|。。)[.…⋯。]*[\])）】]?")
_COMPOSING = (
    "\u0300-\u036f\u0653-\u0655\u093c\u09be\u09d7\u0b3e\u0b56\u0b57\u0bbe\u0bd7\u0c56\u0cc2\u0cd5\u0cd6\u0d3e\u0d57"
    "\u0dca\u0dcf\u0ddf\u102e\u1161-\u11c2\u3099\u309a\uff9e\uff9f"
)
"""What can become one character with the one before it: accents, vowel signs, sounds of kana, letters of Hangul."""

_LIST_NUMBER = re.compile(r"^[ \t]*\d{1,3}[.)）、．](?!\d)", re.MULTILINE)
_DECORATION = re.compile(
    r"(?<=\])\((?:https?:|mailto:|/|#|\.)[^()\s]{0,2000}\)|(?<![\w:]):[a-z][a-z0-9_+-]{1,30}:(?![\w:])|(?<!\w)[:;=8x]-?[DPpOo3](?!\w)|<3"
)
"""Addresses of markdown links, named emoji, and emoticons with a letter."""

_CLUSTER = re.compile(f".[{_COMPOSING}]+", re.DOTALL)
_PUNCTUATION = re.compile(r"[^\w]{1,20}")
_BETWEEN_DIGITS = re.compile(r"(?<=\d)[^\w%‰°$€£¥]+(?=\d)")
_SIGNS = "%‰°$€£¥"
_ATTACHED = re.compile(r"[#+\-−](?:(?<=[^\W_][#+])[#+]*|(?<=[-−])(?<!\S[-−])(?=\d))")
"""It begins with the sign, so that texts without one cost nothing."""

_DASHES = dict.fromkeys("‐‑‒–—−－", "-")


class QuotedText:
    """A message in which quotes are looked up. It is read once, in linear time."""

    def __init__(self, text: str) -> None:
        self._readings = [_Reading(text, _pieces(text))]
        if _LIST_NUMBER.search(text):
            self._readings.append(_Reading(text, _pieces(_LIST_NUMBER.sub(_blank, text))))

    def find(self, quote: str) -> list[str]:
        """The passages that a quote repeats, as written; none where it repeats nothing, or nothing that says something.

        A quote with gaps gives the whole passage where it is short enough, else each of its parts.
        """
        return next(filter(None, (reading.find(quote) for reading in self._readings)), [])


class _Reading:
    """What counts of the characters of a message."""

    def __init__(self, text: str, pieces: list[str]) -> None:
        self._text = text
        self._pieces = pieces
        self._key = "".join(self._pieces)
        self._at: list[int] = []  # the place in the text of each character of the key

    def find(self, quote: str) -> list[str]:
        """The passages that a quote repeats."""
        places = self._places([quote]) or self._places(_parts(quote))
        if len(places) > 1 and places[-1][1] - places[0][0] <= MAX_QUOTE_CHARS:
            places = [(places[0][0], places[-1][1])]
        return [one_line(self._text[start:end])[:MAX_QUOTE_CHARS] for start, end in places]

    def _places(self, parts: Iterable[str]) -> list[tuple[int, int]]:
        """The places of all parts, one after another; none where one is missing."""
        places: list[tuple[int, int]] = []
        reached = 0
        for part in parts:
            found = self._next(part, reached)
            if found is None:
                return []
            reached, place = found
            places.append(place)
        return places

    def _next(self, quote: str, start: int) -> tuple[int, tuple[int, int]] | None:
        """The end in the key, and the place, of the first passage after `start` that repeats the quote."""
        key, enough = "".join(_pieces(quote)), _is_enough(quote, 0, len(quote))
        is_all = key != "" and self._key.strip(_SIGNS) in key
        while (is_all or enough) and (start := self._key.find(key, start)) >= 0:
            place = self._place(start, start + len(key))
            start += len(key)
            if is_all or (_is_whole(self._text, *place) and _is_enough(self._text, *place)):
                return start, self._with_edges(*place, quote)
        return None

    def _place(self, start: int, end: int) -> tuple[int, int]:
        """Where a stretch of the key stands in the text, with the marks on its last letter."""
        if not self._at:
            at = [*compress(count(), self._pieces)]  # right where no piece has two characters
            is_long = len(at) < len(self._key)
            self._at = [at for at, piece in enumerate(self._pieces) for _ in piece] if is_long else at
        last = self._at[end - 1] + 1
        while last < len(self._text) and unicodedata.category(self._text[last])[0] == "M":
            last += 1
        return self._at[start], last

    def _with_edges(self, start: int, end: int, quote: str) -> tuple[int, int]:
        """The passage with the punctuation that the quote begins and ends with, where the text has the same."""
        quote = quote.strip()
        head, tail = _edge(quote), _edge(quote[::-1])[::-1]
        before, after = max(start - len(head), 0), end + len(tail)
        same = fold(self._text[before:start]) == fold(head), fold(self._text[end:after]) == fold(tail)
        return before if same[0] else start, after if same[1] else end


def _edge(quote: str) -> str:
    """The punctuation that a quote begins with."""
    found = _PUNCTUATION.match(quote)
    return found[0] if found else ""


def _is_whole(text: str, start: int, end: int) -> bool:
    """Whether a passage begins and ends with whole words and numbers."""
    return not (_INSIDE.match(text, start) or _INSIDE.match(text, end))


def _is_enough(text: str, start: int, end: int) -> bool:
    """Whether a passage says something: two whole words, or three characters of scripts without spaces between words.

    A word counts as one and a half of such characters.
    """
    words = sum(word.end() <= end for word in _WORD.finditer(text, start, end + 1))
    return 3 * words + 2 * len(_UNSPACED_CHARACTER.findall(text, start, end)) >= 6


def _parts(quote: str) -> Iterator[str]:
    """The parts of a quote with gaps; none where it has no gap, or too many."""
    parts = [part for part in _GAP.split(quote) if any(map(str.isalnum, part))]
    if 1 < len(parts) <= MAX_GAPS + 1:
        yield from parts


def _pieces(text: str) -> list[str]:
    """What counts of each character of a text: most often the character itself, folded, or nothing."""
    if ":" in text or "<3" in text or "](" in text:
        text = _DECORATION.sub(_blank, text)
    if text.isascii():
        pieces = ["" if piece == _NOTHING else piece for piece in text.lower().translate(_ASCII_TABLE)]
    else:
        pieces = list(map(_folded, text))
        for cluster in _CLUSTER.finditer(text):
            start, end = cluster.span()
            pieces[start:end] = [_folded(cluster[0]), *[""] * (end - start - 1)]
    for match in _BETWEEN_DIGITS.finditer(text):
        pieces[match.start()] = _separator(match[0])
    for match in _ATTACHED.finditer(text):
        pieces[match.start()] = _DASHES.get(match[0], match[0])
    return pieces


def _blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


_NOTHING = "\x00"
_ASCII_TABLE = {code: _NOTHING for code in range(128) if not chr(code).isalnum() and chr(code) not in _SIGNS}


def _fold(cluster: str) -> str:
    """A character with its marks, folded for comparing; nothing where it is punctuation, a space or an emoji."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", cluster).casefold())
    return "".join(filter(_counts, folded))


_folded = lru_cache(maxsize=65_536)(_fold)


def _counts(char: str) -> bool:
    if "\ufe00" <= char <= "\ufe0f" or char == "\u20e3":  # variation selectors and the keycap of an emoji
        return False
    return char.isalnum() or char in _SIGNS or unicodedata.category(char)[0] == "M"


def _separator(between: str) -> str:
    """What stands between two digits: one sign, or a space for all else."""
    sign = unicodedata.normalize("NFKC", between).strip()
    sign = _DASHES.get(sign, sign)
    return sign if len(sign) == 1 and sign.isprintable() else " "
