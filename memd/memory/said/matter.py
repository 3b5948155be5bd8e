"""The matter of a wish: what it names ("the hamster", 我哥哥欠税的事), and which texts hold it, by their words.

A matter without a word of its own ("that thing", 这件事) names nothing. Words are compared without their endings,
Chinese and Japanese by characters, of which two in a row must be in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from memd.memory.duplicates import tokens
from memd.memory.text import CJK, fold
from memd.push.patterns import Lists

HELD = 0.6
"""A text with this share of a matter's words holds it."""

_LISTS = Lists(Path(__file__).parent / "wishes", "between", "hollow")
_CJK = re.compile(f"[{CJK}]+")
OF_VERBS = frozenset("掉记記光")
"""Characters that are left of the verb of a wish, and name nothing alone."""

_ENDING = re.compile(r"(?:ungen|ung|ing|ic|ies|ied|ent|en|er|ed|es|em|os|as|[sendoay])\Z")
_LEAST = 4
"""Letters of a word without its ending at least; a final s is cut from shorter ones too."""


@dataclass(frozen=True, slots=True)
class Matter:
    """Words without their endings, and runs of characters of the scripts without spaces between words."""

    words: frozenset[str]
    runs: tuple[str, ...] = ()

    def share(self, text: str) -> float:
        """The share of its words that a text has, from 0 to 1."""
        folded = fold(text)
        if not any(word in folded for word in self.words) and not any(char in folded for char in self._chars):
            return 0.0  # the fast path: most turns have none
        chars = {char for char in self._chars if char in folded}
        hits = len(self.words & stems(text)) + len(chars)
        return hits / (len(self.words) + len(self._chars))

    def held_by(self, text: str) -> bool:
        """Whether a text holds the matter: most of its words, and two of its characters in a row."""
        if self.share(text) < HELD:
            return False
        folded = fold(text)
        return bool(self.words & stems(text)) or any(pair in folded for run in self.runs for pair in _pairs(run))

    @property
    def _chars(self) -> frozenset[str]:
        return frozenset("".join(self.runs))


def matters_in(named: str, *, whole: bool) -> list[Matter]:
    """The matters that a wish names with these words, folded. `whole`: a clause, which is one matter."""
    parts = [named] if whole else _LISTS["between"].split(named)
    matters = (_matter(part) for part in parts)
    return [matter for matter in matters if matter.words or matter.runs]


def nearest(texts: Iterable[tuple[int, str]], matters: Iterable[Matter]) -> int | None:
    """The place of the text that shares most of one matter, of several the last; None where none shares a word."""
    matters = list(matters)
    ranked = ((max(matter.share(text) for matter in matters), place) for place, text in texts)
    return max((pair for pair in ranked if pair[0] > 0), default=(0.0, None))[1]


@lru_cache(maxsize=512)
def stems(text: str) -> frozenset[str]:
    """The words of a text without their endings."""
    return frozenset(_stem(word) for word in tokens(text) if not _CJK.match(word))


def _matter(part: str) -> Matter:
    told = _LISTS["hollow"].sub(" ", part)
    return Matter(stems(_CJK.sub(" ", told)), tuple(run for run in _CJK.findall(told) if run not in OF_VERBS))


def _stem(word: str) -> str:
    stem = _ENDING.sub("", word, count=1)
    return stem if len(stem) >= _LEAST else word


def _pairs(run: str) -> Iterator[str]:
    return (run[place : place + 2] for place in range(max(1, len(run) - 1)))
