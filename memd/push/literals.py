"""What a regular expression cannot do without: texts of which each match contains at least one.

Looking for a text costs a tenth of a microsecond where trying a pattern at every word costs ten, so a pattern is only
tried where one of its texts occurs. For example `\\bi(?:'m| am) (?:a|an) \\w+` needs one of "i'm a ", "i am a ",
"i'm an ", "i am an ". Whatever is not understood here needs nothing, and is always tried: nothing is ever missed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from math import prod

MAX_TEXTS = 64
"""Of one set; a larger product is cut into two sets, of which the better one is taken."""

COMMON = " etaoinshr"
"""What English consists of, mostly."""

_RUN = re.compile(r"[^\\\[\](){}.*+?|^$]+(?![*+?{])")
"""Characters that stand for themselves, up to one that may come any number of times."""

_NO_WIDTH = "bBAZ"
_CLASSES = "dDwWsS"
_CONTROLS = {"n": "\n", "t": "\t"}
_LOOK_AROUND = ("?=", "?!", "?<=", "?<!")
_PLAIN_GROUPS = ("?:", "?>")
_ENDLESS = "*+?{"

Texts = frozenset[str]
NOTHING: Texts = frozenset({""})


class _Unknown(Exception):
    """The pattern has something that this reader does not know."""


class _Part:
    """A piece of a pattern. `exact`: all that it can match, when that is little; `needed`: what each match contains.

    `begins`: each match begins with what it needs.
    """

    def __init__(self, exact: Texts | None, needed: Texts = NOTHING, *, begins: bool = False) -> None:
        self.exact = exact
        self.needed = needed if exact is None else exact
        self.begins = begins


_ANYTHING = _Part(None)


def needed(pattern: str) -> Texts:
    """Texts of which every match of the pattern contains at least one; empty when nothing is known."""
    try:
        reader = _Reader(pattern)
        part = reader.alternatives()
        if reader.at < len(pattern):
            return frozenset()
    except (_Unknown, IndexError):
        return frozenset()
    return frozenset() if "" in part.needed else part.needed


class _Reader:
    """Reads a pattern from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0

    def alternatives(self) -> _Part:
        """Up to the end of the group or of the pattern."""
        branches = [self._sequence()]
        while self._next("|"):
            branches.append(self._sequence())
        if len(branches) == 1:
            return branches[0]
        exact: set[str] = set()
        for branch in branches:
            if branch.exact is None or len(exact) > MAX_TEXTS:
                return _Part(None, _union(branch.needed for branch in branches))
            exact |= branch.exact
        return _Part(frozenset(exact))

    def _sequence(self) -> _Part:
        """Pieces in a row: what they match runs together as long as all of it is known."""
        run, sets, whole = NOTHING, [NOTHING], True
        while self.at < len(self._pattern) and self._pattern[self.at] not in "|)":
            piece = self._repeated(self._piece())
            if piece.exact is not None and len(run) * len(piece.exact) <= MAX_TEXTS:
                run = frozenset(map("".join, product(run, piece.exact)))
                continue
            whole = False
            if piece.exact is None and len(run) * len(piece.needed) <= MAX_TEXTS and piece.begins:
                run = frozenset(map("".join, product(run, piece.needed)))
            sets += [run, piece.needed]
            run = NOTHING if piece.exact is None else piece.exact
        return _Part(run) if whole else _Part(None, min((*sets, run), key=_cost))

    def _piece(self) -> _Part:
        if run := _RUN.match(self._pattern, self.at):
            self.at = run.end()
            return _Part(frozenset({run[0]}))
        char = self._pattern[self.at]
        self.at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return self._set()
        if char == "\\":
            return self._escape()
        if char in "^$":
            return _Part(NOTHING)
        return _ANYTHING if char == "." else _Part(frozenset({char}))

    def _group(self) -> _Part:
        start = self.at
        if self._pattern.startswith("?", start):
            kinds = (*_PLAIN_GROUPS, *_LOOK_AROUND)
            kind = next((kind for kind in kinds if self._pattern.startswith(kind, start)), None)
            if kind is None:
                raise _Unknown
            self.at += len(kind)
        part = self.alternatives()
        if not self._next(")"):
            raise _Unknown
        return _Part(NOTHING) if self._pattern.startswith(_LOOK_AROUND, start) else part

    def _set(self) -> _Part:
        """One of some characters; only a plain list of them is known."""
        start = self.at
        self.at += self._pattern.startswith("^", start) + 1  # a bracket at once is one of the characters
        if self._pattern[self.at - 1] == "\\":
            self.at += 1
        while self._pattern[self.at] != "]":
            self.at += 1 + (self._pattern[self.at] == "\\")
        chars = self._pattern[start : self.at]
        self.at += 1
        return _ANYTHING if chars[0] == "^" or "\\" in chars or "-" in chars[1:-1] else _Part(frozenset(chars))

    def _escape(self) -> _Part:
        char = self._pattern[self.at]
        self.at += 1
        if char in _NO_WIDTH:
            return _Part(NOTHING)
        if char in _CLASSES:
            return _ANYTHING
        if char.isalnum() and char not in _CONTROLS:
            raise _Unknown
        return _Part(frozenset({_CONTROLS.get(char, char)}))

    def _repeated(self, part: _Part) -> _Part:
        """The piece with what stands behind it: how often it may come."""
        if self.at >= len(self._pattern) or self._pattern[self.at] not in _ENDLESS:
            return part
        sign = self._pattern[self.at]
        self.at += 1
        least = int(sign == "+")
        if sign == "{":
            bounds, _, rest = self._pattern[self.at :].partition("}")
            first = bounds.partition(",")[0]
            if not (first.isdigit() and rest is not None):
                raise _Unknown
            self.at += len(bounds) + 1
            least = int(first)
        if self.at < len(self._pattern) and self._pattern[self.at] in "?+":  # lazy, possessive
            self.at += 1
        if sign == "?" and part.exact is not None:
            return _Part(part.exact | NOTHING)
        return _Part(None, part.needed if least else NOTHING, begins=least > 0 and part.exact is not None)

    def _next(self, char: str) -> bool:
        if self._pattern.startswith(char, self.at):
            self.at += 1
            return True
        return False


def _union(sets: Iterable[Texts]) -> Texts:
    return frozenset().union(*sets)


def _cost(texts: Texts) -> float:
    """How often one of them will be found for nothing, and what looking costs: few, long, of rare letters is best."""
    return sum(prod(0.25 if char in COMMON else 0.08 for char in text) + 0.001 for text in texts)
