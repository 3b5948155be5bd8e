"""A parser for JSON as models write it: it mends the form where only one reading is possible, and guesses nothing.

It accepts comments, commas too many, a comma missing where the next item cannot belong to the one before, other quotes
around strings, unquoted keys, Python's `True` and `None`, and raw control characters in strings. A bare word, a string
or object that never ends, and text after a string (an unescaped quote) are errors. It takes linear time.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

MAX_DEPTH = 64
"""Deepest nesting of objects and lists; an update has six levels."""

MAX_STEPS = 8_000
"""Most values, keys and commas of JSON that is not by the standard; 200 facts have half of that."""


class Unusable:
    """Stands for a value that cannot be used: text where a number belongs, or a key's second, different value.

    Validation refuses it, so that only the item that holds it is lost.
    """


UNUSABLE = Unusable()


class Broken(ValueError):
    """The text is no JSON at `place`. `code`: `not_json`, `incomplete` (it ends too early) or `too_deep`.

    `began`: whether a key and its colon were read, so that it was meant as an object. Contains no text.
    """

    def __init__(self, code: str, place: int, *, began: bool) -> None:
        super().__init__(code)
        self.code = code
        self.place = place
        self.began = began


_BLANK = re.compile(r"(?:[\s\ufeff\u200b]++|//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+(?:\*/)?)*+")
_MARKS = frozenset('{}[]":,')
_NUMBER = re.compile(r"[+-]?(?:\d++\.?+\d*+|\.\d++)(?:[eE][+-]?\d++)?+(?![\w.])")
_STRICT_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD = re.compile(r"[A-Za-z_$][\w$-]*+|-Infinity")
_BODY = {
    '"': re.compile(r'[^"\\]*+(?:\\[\s\S][^"\\]*+)*+'),
    "'": re.compile(r"[^'\\]*+(?:\\[\s\S][^'\\]*+)*+"),
    "“": re.compile(r"[^”\\]*+(?:\\[\s\S][^”\\]*+)*+"),
}
_TO_ESCAPE = re.compile(r"\\[\s\S]|\"")
_CONTROL = re.compile(r"[\x00-\x1f]")
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "True": True,
    "False": False,
    "None": None,
    "NaN": UNUSABLE,
    "nan": UNUSABLE,
    "Infinity": UNUSABLE,
    "-Infinity": UNUSABLE,
    "undefined": UNUSABLE,
}
_STRICT_WORDS = ("true", "false", "null")
_COMMAS = (",", "，")
_COLONS = (":", "：")
_LONGEST_NUMBER = 40


def decoder(mended: Counter[str]) -> json.JSONDecoder:
    """A decoder of JSON as the standard defines it, that counts a key's repetitions."""
    return json.JSONDecoder(
        object_pairs_hook=lambda pairs: merged(pairs, mended),
        parse_constant=lambda _: UNUSABLE,
        parse_int=_integer,
    )


def merged(pairs: list[tuple[str, Any]], mended: Counter[str]) -> dict[str, Any]:
    """The object of these pairs. A key that has two different values has neither."""
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    mended["duplicate_key"] += len(pairs) - len(result)
    first: dict[str, Any] = {}
    for name, value in pairs:
        if first.setdefault(name, value) != value:
            first[name] = UNUSABLE
    return first


@dataclass(slots=True)
class LenientParser:
    """Parses one value of a text, from a place on. `mended` counts the repairs by kind.

    With `partial`, a text that ends too early gives what is complete: an item that is cut off is left out.
    """

    text: str
    place: int
    mended: Counter[str]
    partial: bool = False
    cut: bool = False
    began: bool = False
    _steps: int = 0

    def value(self, depth: int = 0, *, in_item: bool = False) -> Any:
        """The value at `place`, which moves behind it. Raises Broken."""
        self._count_step()
        if depth > MAX_DEPTH:
            raise self._broken("too_deep")
        match self._next():
            case "{":
                return self._object(depth, in_item=in_item)
            case "[":
                return self._list(depth, in_item=in_item)
            case '"' | "'" | "“" | "”":
                return self._string()
            case _:
                return self._scalar()

    def _object(self, depth: int, *, in_item: bool) -> dict[str, Any]:
        pairs: list[tuple[str, Any]] = []
        self.place += 1
        try:
            while self._separated("}", first=not pairs, key=True):
                name = self._key()
                if self._next() not in _COLONS:
                    raise self._broken()
                self._count_fullwidth()
                self.place += 1
                self.began = True
                pairs.append((name, self.value(depth + 1, in_item=in_item)))
                if self.cut:
                    break
        except Broken as error:
            if not self._keeps_complete(error, in_item=in_item):
                raise
        return merged(pairs, self.mended)

    def _list(self, depth: int, *, in_item: bool) -> list[Any]:
        items: list[Any] = []
        self.place += 1
        try:
            while self._separated("]", first=not items, key=False):
                items.append(self.value(depth + 1, in_item=True))
        except Broken as error:
            if not self._keeps_complete(error, in_item=in_item):
                raise
        return items

    def _keeps_complete(self, error: Broken, *, in_item: bool) -> bool:
        """Whether what was read before a text's early end counts."""
        if error.code != "incomplete" or in_item or not self.partial:
            return False
        self.cut = True
        return True

    def _separated(self, end: str, *, first: bool, key: bool) -> bool:
        """Move to the next item; False behind the end of the object or list."""
        before = self.text[self.place - 1]
        start = self.place
        commas = 0
        while (mark := self._next()) in _COMMAS:
            self._count_step()
            self._count_fullwidth()
            commas += 1
            self.place += 1
        if mark == end:
            self.mended["comma"] += commas
            self.place += 1
            return False
        expected = 0 if first else 1
        if commas > expected:
            self.mended["comma"] += commas - expected
        elif commas < expected:
            if not self._is_apart(before, mark, start, key=key):
                raise self._broken()
            self.mended["comma"] += 1
        return True

    def _is_apart(self, before: str, mark: str, start: int, *, key: bool) -> bool:
        """Whether an item begins here though no comma precedes it; after a string only on a new line."""
        if key:
            return before not in "\"'“”" or "\n" in self.text[start : self.place]
        return before in "}]" and mark in "{["

    def _key(self) -> str:
        if self.text[self.place] in "\"'“”":
            name = self._string()
            if not isinstance(name, str):
                raise self._broken()
            return name
        word = _WORD.match(self.text, self.place)
        if word is None:
            raise self._broken()
        self.place = word.end()
        self.mended["quotes"] += 1
        return word[0]

    def _string(self) -> Any:
        """A text; UNUSABLE for one with an escape that JSON does not have, as its meaning is open."""
        mark = self.text[self.place]
        body = _BODY["“" if mark == "”" else mark].match(self.text, self.place + 1)
        assert body is not None  # noqa: S101  (the pattern matches the empty text)
        if body.end() >= len(self.text) or self.text[body.end()] == "\\":
            raise self._broken("incomplete")
        inner = body[0]
        if mark != '"':
            self.mended["quotes"] += 1
        if mark != '"' or "\\'" in inner:
            inner = _TO_ESCAPE.sub(_escaped, inner)
        if _CONTROL.search(inner):
            self.mended["control_character"] += 1
        self.place = body.end() + 1
        try:
            result: str = json.loads(f'"{inner}"', strict=False)
        except ValueError:  # only the item that holds it is refused
            return UNUSABLE
        return result

    def _scalar(self) -> Any:
        if number := _NUMBER.match(self.text, self.place):
            self.place = self._complete(number.end())
            return self._number(number[0])
        word = _WORD.match(self.text, self.place)
        if word is None or word[0] not in _WORDS:
            raise self._broken("incomplete" if word and word.end() == len(self.text) else "not_json")
        self.place = self._complete(word.end())
        if word[0] not in _STRICT_WORDS and _WORDS[word[0]] is not UNUSABLE:
            self.mended["literal"] += 1
        return _WORDS[word[0]]

    def _complete(self, end: int) -> int:
        """The end of a number or word, which must not be the end of the text: more of it may be missing."""
        if end == len(self.text):
            raise self._broken("incomplete")
        return end

    def _number(self, digits: str) -> Any:
        if _STRICT_NUMBER.fullmatch(digits):
            return float(digits) if set(digits) & set(".eE") else _integer(digits)
        if digits.lstrip("+-")[:2].isdigit() and digits.lstrip("+-")[0] == "0":  # octal in some languages
            return UNUSABLE
        self.mended["literal"] += 1
        return float(digits)

    def _next(self) -> str:
        """The next character that is neither blank nor a comment, without moving behind it."""
        if self.text[self.place : self.place + 1] in _MARKS:  # the fast path: most items are not indented
            return self.text[self.place]
        blank = _BLANK.match(self.text, self.place)
        assert blank is not None  # noqa: S101  (the pattern matches the empty text)
        if "/" in blank[0]:
            self.mended["comment"] += 1
        self.place = blank.end()
        if self.place >= len(self.text):
            raise self._broken("incomplete")
        return self.text[self.place]

    def _count_fullwidth(self) -> None:
        if not self.text[self.place].isascii():
            self.mended["quotes"] += 1

    def _count_step(self) -> None:
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise self._broken("too_deep")

    def _broken(self, code: str = "not_json") -> Broken:
        return Broken(code, self.place, began=self.began)


def _escaped(found: re.Match[str]) -> str:
    """A piece of a string in other quotes as JSON writes it."""
    return {"\\'": "'", '"': '\\"'}.get(found[0], found[0])


def _integer(digits: str) -> Any:
    return int(digits) if len(digits) <= _LONGEST_NUMBER else UNUSABLE
