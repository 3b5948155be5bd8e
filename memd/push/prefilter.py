"""Prefilter: picks the few regexes that could match a text, by the literal substrings each one requires.

Finding a literal takes a tenth of a microsecond, trying a regex at every word of a text ten. So all literals are looked
for in one pass (Aho and Corasick's automaton), and a regex is tried only where one of its own occurs; most are never
compiled. For example `\\bi(?:'m| am) (?:a|an) \\w+` requires one of "i'm a ", "i am a ", "i'm an ", "i am an ". A regex
that cannot be analysed is always tried, so no match is lost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import product
from math import prod
from operator import itemgetter
from typing import Generic, TypeVar

import ahocorasick  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extension without types

V = TypeVar("V")

MAX_LITERALS = 64
"""Size of one set of literals; a larger product is split into two sets, and the cheaper one is kept."""

FEW = 8
"""So few literals are looked through as fast as a set of them is made."""

COMMON = " etaoinshr"
"""The most frequent characters of English."""

_OFTEN = (
    "a about all also am an and are as at be but by can do for from get go had has have he her his i if in is it its"
    " just like make may me more my no not now of off on one or our out own say she so some than that the their them"
    " then they thing things this time to up us use was we what when which who will with would you your"
)
_COMMON_WORDS = frozenset(_OFTEN.split())
"""Words that English texts have far more often than their characters tell."""

_COMMON_CJK = "的一是了我不人在他有这上个们来到时大为中你说就那和要她出也得里后以会都没很想吗吧把对前"
"""The same for the characters of Chinese."""

_RUN = re.compile(r"[^\\\[\](){}.*+?|^$]+(?![*+?{])")
"""Literal characters, up to one that a quantifier follows."""

_NO_WIDTH = "bBAZ"
_CLASSES = "dDwWsS"
_CONTROLS = {"n": "\n", "t": "\t"}
_LOOK_AROUND = ("?=", "?!", "?<=", "?<!")
_PLAIN_GROUPS = ("?:", "?>", "?m:", "?s:")
_ESCAPED_SIGN = re.compile(r"\\([^\w\s\\])")
_NAMED_GROUP = re.compile(r"\?P<\w+>")
_FOLDED_GROUP = re.compile(r"(?<!\\)\(\?-?i:")
"""Sound only where text and literals are folded."""

_ENDLESS = "*+?{"

_LITERAL = itemgetter(1)
"""What the automaton returns besides the place."""

WORTH = 0.8
"""A second set of literals that more texts have than this share rules out too little."""

Literals = frozenset[str]
NOTHING: Literals = frozenset({""})


class Prefilter(Generic[V]):
    """Values by their regex. `folded`: the regexes ignore case."""

    def __init__(self, patterns: Iterable[tuple[str, V]], *, folded: bool = False) -> None:
        self._folded = folded
        self._always: list[V] = []
        self._owners: dict[str, list[tuple[V, Literals]]] = defaultdict(list)
        """By literal the values whose regex requires it or others, with further literals: it requires one of these."""

        for source, value in patterns:
            branches = _branches(source, folded=folded)
            if not all(literals for literals, _ in branches):
                self._always.append(value)
                continue
            for literals, further in branches:
                for literal in literals:
                    self._owners[literal].append((value, further))
        known = {one for owners in self._owners.values() for _, further in owners for one in further} | {*self._owners}
        self._automaton = ahocorasick.Automaton()
        for literal in known:
            self._automaton.add_word(_as_bytes(literal), literal)
        self._automaton.make_automaton()

    def all(self) -> Iterator[V]:
        """All values, some more than once."""
        yield from self._always
        for owners in self._owners.values():
            yield from (value for value, _ in owners)

    def literals_in(self, text: str) -> list[str]:
        """The literals in a text that let a regex match it or a part of it; most texts have none, or few."""
        present = self._present(text)
        useful: set[str] = set()
        for literal in present:
            for _, further in self._owners.get(literal, ()):
                if not further:
                    useful.add(literal)
                elif not further.isdisjoint(present):
                    useful.add(literal)
                    useful |= further & present
        return list(useful)

    def could_match(self, literals: Sequence[str]) -> bool:
        """Whether any regex could match a text with these literals (of `literals_in`)."""
        return bool(self._always) or any(literal in self._owners for literal in literals)

    def finds(self, text: str) -> bool:
        """Whether any regex could match the text; stops at the first literal."""
        if self._always or not self._owners:
            return bool(self._always)
        found = self._automaton.iter(_as_bytes(_fold(text) if self._folded else text))
        return any(literal in self._owners for _, literal in found)

    def select(self, text: str) -> set[V]:
        """The values whose regex could match the text."""
        return {*self._likely(list(self._present(text)))}

    def select_part(self, literals: Sequence[str], part: str) -> list[V]:
        """The values whose regex could match a part of a text with these literals, each once.

        Not for regexes that ignore case.
        """
        return self._likely([literal for literal in literals if literal in part])

    def _present(self, text: str) -> set[str]:
        """The required literals that occur in a text."""
        text = _as_bytes(_fold(text) if self._folded else text)
        return set(map(_LITERAL, self._automaton.iter(text))) if self._owners else set()

    def _likely(self, literals: Sequence[str]) -> list[V]:
        """The values whose regex could match a text with just these literals, each once."""
        values = self._always[:]
        present = literals if len(literals) < FEW else frozenset(literals)
        for literal in literals:
            for value, further in self._owners.get(literal, ()):
                if not further or not further.isdisjoint(present):
                    values.append(value)
        return list(dict.fromkeys(values)) if len(literals) > 1 else values


def _branches(source: str, *, folded: bool) -> list[tuple[Literals, Literals]]:
    """For each of the outermost alternatives of a regex: literals of which each match has one, and further such ones.

    None for one that cannot be analysed. Apart, as what an alternative requires besides rules out most of its tries.
    """
    parts = _read_branches(_FOLDED_GROUP.sub("(?:", source) if folded else source)
    both = [(NOTHING, NOTHING) if "" in part.required else (part.required, part.further) for part in parts]
    made = [(frozenset(map(_fold, one)), frozenset(map(_fold, other))) for one, other in both] if folded else both
    return [(one - NOTHING, other - NOTHING) for one, other in made]


def _fold(text: str) -> str:
    """Make equal what `re.IGNORECASE` treats as equal; casefolding alone misses the Turkish letters."""
    folded = text.casefold()
    return folded if folded.isascii() else folded.replace("i\u0307", "i").replace("\u0131", "i")


def _as_bytes(text: str) -> str:
    """The text with one character for each byte of its UTF-8.

    The automaton tries the possible next characters in turn: hundreds at its root for Chinese literals, whose bytes
    begin in six ways.
    """
    return text if text.isascii() else text.encode(errors="surrogatepass").decode("latin-1")


class _Unknown(Exception):
    """The regex has syntax that the reader does not know."""


class _Part:
    """A part of a regex. `exact`: every text it can match, when there are few; `required`: each match contains one.

    `first`: each match begins with one. `begins`: each match begins with a required literal. `further`: each match also
    contains one of these; empty where that says nothing.
    """

    def __init__(
        self,
        exact: Literals | None,
        required: Literals = NOTHING,
        *,
        first: Literals = NOTHING,
        begins: bool = False,
        further: Literals = frozenset(),
    ) -> None:
        self.exact = exact
        self.required = required if exact is None else exact
        self.first = first if exact is None else exact
        self.begins = begins
        self.further = further


_ANYTHING = _Part(None)


def required_literals(pattern: str) -> Literals:
    """Literals: every match of a regex contains at least one of them. Empty when the regex cannot be analysed."""
    part = _read(pattern)
    return frozenset() if "" in part.required else part.required


def first_literals(pattern: str) -> Literals:
    """Literals: every match of a regex begins with one of them. Empty when the regex cannot be analysed."""
    part = _read(pattern)
    return frozenset() if "" in part.first else part.first


def _read(pattern: str) -> _Part:
    return _either(_read_branches(pattern))


def _read_branches(pattern: str) -> list[_Part]:
    """The outermost alternatives of a regex; one part that says nothing for a regex that cannot be analysed."""
    try:
        reader = _Reader(pattern)
        branches = reader.branches()
    except (_Unknown, IndexError):
        return [_ANYTHING]
    return branches if reader.at == len(pattern) else [_ANYTHING]


def _either(branches: Sequence[_Part]) -> _Part:
    """The part that matches what one of these does."""
    if len(branches) == 1:
        return branches[0]
    exact: set[str] = set()
    for branch in branches:
        if branch.exact is None or len(exact) > MAX_LITERALS:
            first = _union(branch.first for branch in branches)
            return _Part(None, _union(branch.required for branch in branches), first=first)
        exact |= branch.exact
    return _Part(frozenset(exact))


class _Reader:
    """Reads a regex from left to right."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self.at = 0

    def branches(self) -> list[_Part]:
        """The alternatives up to the end of the group or of the regex."""
        branches = [self._sequence()]
        while self._next("|"):
            branches.append(self._sequence())
        return branches

    def _sequence(self) -> _Part:
        """Parts in a row; the literals of neighbours are joined while every text they match is known."""
        run, sets, first = NOTHING, [NOTHING], None
        while self.at < len(self._pattern) and self._pattern[self.at] not in "|)":
            part = self._quantified(self._part())
            if part.exact is not None and len(run) * len(part.exact) <= MAX_LITERALS:
                run = frozenset(map("".join, product(run, part.exact)))
                continue
            if first is None:
                first = frozenset(map("".join, product(run, part.first)))
            if part.exact is None and len(run) * len(part.required) <= MAX_LITERALS and part.begins:
                run = frozenset(map("".join, product(run, part.required)))
            sets += [run, part.required, part.further or NOTHING]
            run = NOTHING if part.exact is None else part.exact
        if first is None:
            return _Part(run)
        best, *others = sorted(dict.fromkeys((*sets, run)), key=_cost)
        further = next((one for one in others if best.isdisjoint(one) and _cost(one) < WORTH), frozenset())
        return _Part(None, best, first=first, further=further)

    def _part(self) -> _Part:
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
            named = _NAMED_GROUP.match(self._pattern, start)
            kind = named[0] if named else next((one for one in kinds if self._pattern.startswith(one, start)), None)
            if kind is None:
                raise _Unknown
            self.at += len(kind)
        part = _either(self.branches())
        if not self._next(")"):
            raise _Unknown
        return _Part(NOTHING) if self._pattern.startswith(_LOOK_AROUND, start) else part

    def _set(self) -> _Part:
        """A character set; only a plain list of characters is analysed."""
        start = self.at
        self.at += self._pattern.startswith("^", start) + 1  # a bracket in first place is a member
        if self._pattern[self.at - 1] == "\\":
            self.at += 1
        while self._pattern[self.at] != "]":
            self.at += 1 + (self._pattern[self.at] == "\\")
        chars = self._pattern[start : self.at]
        self.at += 1
        members = _ESCAPED_SIGN.sub(r"\1", chars)
        return _ANYTHING if chars[0] == "^" or "\\" in members or "-" in chars[1:-1] else _Part(frozenset(members))

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

    def _quantified(self, part: _Part) -> _Part:
        """The part with the quantifier that follows it."""
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
        if not least:
            return _ANYTHING
        return _Part(None, part.required, first=part.first, begins=part.exact is not None)

    def _next(self, char: str) -> bool:
        if self._pattern.startswith(char, self.at):
            self.at += 1
            return True
        return False


def _union(sets: Iterable[Literals]) -> Literals:
    return frozenset().union(*sets)


def _cost(literals: Literals) -> float:
    """The share of useless tries, plus a little for the search: few long literals of rare letters are cheapest."""
    if "" in literals:
        return 2.0
    return 1 - prod(1 - _frequency(literal) for literal in literals) + 0.0001 * len(literals)


@cache
def _frequency(literal: str) -> float:
    """The share of short texts that have the literal."""
    words = literal.strip(" ,.'").lower().split()
    by_words = 0.1 * 0.4 ** (len(words) - 1) if words and _COMMON_WORDS.issuperset(words) else 0.0
    return min(0.98, max(by_words, (10 if literal.isascii() else 1) * prod(map(_char_frequency, literal))))


def _char_frequency(char: str) -> float:
    if char.isascii():
        return 0.25 if char in COMMON else 0.01 if char.isdigit() else 0.08
    return 0.15 if char in _COMMON_CJK else 0.02
