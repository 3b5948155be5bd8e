"""Near-duplicates: how alike two facts are by their words. Cautious, as a wrong answer would lose a fact.

Two sentences that differ in a number, a negation, a time or a person say different things, however alike they look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from math import ceil

from memd.memory.text import normal_key

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORDS = re.compile(f"[{_CJK}]+|[^\\s{_CJK}]+")
_IS_CJK = re.compile(f"[{_CJK}]")
_DIGIT = re.compile(r"\d|[一二三四五六七八九十两百千万]")

_EMPTY = frozenset((
    "a", "an", "the", "user", "users", "their", "his", "her", "its", "is", "are", "be", "been",
    "of", "to", "in", "at", "on", "for", "and", "that", "this",
))  # fmt: skip
"""Words that say nothing about what a fact is about. "Not", "was" and "will" are none of them."""

_EMPTY_CJK = re.compile("用户的?|[了的]")

_TELLING = frozenset((
    "not", "no", "never", "without", "nor", "dont", "doesnt", "didnt", "isnt", "arent", "wont", "cant", "cannot",
    "was", "used", "former", "formerly", "previously", "once", "before", "anymore", "longer", "until", "stopped",
    "quit", "will", "plan", "want", "may", "might", "should", "only", "all", "every", "rarely", "sometime", "often",
    "mother", "father", "mom", "dad", "mum", "parent", "wife", "husband", "partner", "girlfriend", "boyfriend",
    "son", "daughter", "child", "children", "kid", "baby", "brother", "sister", "aunt", "uncle", "cousin",
    "grandmother", "grandfather", "friend", "bos", "boss", "colleague", "coworker", "manager", "team", "dog", "cat",
))  # fmt: skip
_TELLING_CJK = frozenset("不没無无非未别勿曾前妈爸母父妻夫儿女兄弟姐妹哥友孩狗猫")
"""What turns a sentence into another one when only one of the two has it."""

SWAP = 0.5
"""Share of the order of words in the likeness; the rest is the share of words that both have."""


def similarity(one: str, other: str, floor: float = 0.0) -> float:
    """How alike two contents are, from 0 to 1 (the same words in the same order).

    The mean of the Jaccard index of their words (for CJK: pairs of characters) and of the ratio of those that stand in
    the same order; 0 when what differs changes the meaning, or when the likeness cannot reach `floor`.
    """
    mine, theirs = tokens(one), tokens(other)
    shared, different = set(mine) & set(theirs), set(mine) ^ set(theirs)
    if not shared or any(map(_changes_meaning, different)):
        return 0.0
    jaccard = len(shared) / (len(shared) + len(different))
    if (1 - SWAP) * jaccard + SWAP < floor:
        return 0.0
    ratio = SequenceMatcher(None, mine, theirs, autojunk=False).ratio()
    return (1 - SWAP) * jaccard + SWAP * ratio


class Alike:
    """One content, held against many: what cannot be alike enough is told by a few looks for a text."""

    def __init__(self, content: str, floor: float) -> None:
        self._content = content
        words = set(tokens(content))
        self._marks = tuple(_traces(filter(_changes_meaning, words)))
        self._words = tuple(tuple(_traces([word])) for word in sorted(words, key=len, reverse=True))
        self._least = max(1, ceil(len(words) * (floor - SWAP) / (1 - SWAP)))  # so that the Jaccard index is enough

    def may_be(self, key: str) -> bool:
        """Whether a content of this `normal_key` may be alike: False only when `similarity` is less than the floor."""
        for mark in self._marks:
            if mark not in key:
                return False
        missing = len(self._words) - self._least
        for traces in self._words:
            if traces[0] not in key or traces[-1] not in key:
                missing -= 1
                if missing < 0:
                    return False
        return missing >= 0

    def to(self, other: str, floor: float) -> float:
        """See `similarity`."""
        return similarity(self._content, other, floor)


def says_more(one: str, other: str) -> bool:
    """Whether a content has all words of another one, and further ones."""
    return set(tokens(other)) < set(tokens(one))


@lru_cache(maxsize=4096)
def tokens(content: str) -> tuple[str, ...]:
    """The words that count, in order: plural and verb endings in -s cut, CJK as pairs of characters."""
    found: list[str] = []
    for word in _WORDS.findall(normal_key(content)):
        if _IS_CJK.match(word):
            found += _pairs(_EMPTY_CJK.sub("", word))
        elif word not in _EMPTY:
            found.append(word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word)
    return tuple(found)


def _traces(words: Iterable[str]) -> Iterator[str]:
    """What a text has in it when these words are among its tokens: a word, or the characters of a pair."""
    for word in words:
        yield from word if _IS_CJK.match(word) else (word,)


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)] or ([run] if run else [])


@lru_cache(maxsize=4096)
def _changes_meaning(token: str) -> bool:
    return bool(_DIGIT.search(token)) or token in _TELLING or bool(_TELLING_CJK & set(token))
