"""Duplicates: which fact says the same already, by its normalised text, and nearly the same, by likeness of words.

Cautious, as a wrong answer would lose a fact: two sentences that differ in a number, a negation, a time or a person
say different things, however alike they look.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from math import ceil

from memd.memory.document import Fact
from memd.memory.facts import content_of, id_of, person_of
from memd.memory.many_texts import ManyTexts
from memd.memory.text import CJK, folded_lines, names, normal_key, same_key
from memd.memory.whom import whom, whom_of

_WORDS = re.compile(f"[{CJK}]+|[^\\s{CJK}]+")
IS_CJK = re.compile(f"[{CJK}]")
_DIGIT = re.compile(r"\d|[一二三四五六七八九十两百千万]")

_EMPTY = frozenset((
    "a", "an", "the", "user", "users", "their", "his", "her", "its", "is", "are", "be", "been",
    "of", "to", "in", "at", "on", "for", "and", "that", "this",
))  # fmt: skip
"""Words that do not change what a fact is about. "Not", "was" and "will" do."""

_EMPTY_CJK = re.compile("用户的?|[了的]")

_TELLING = frozenset((
    "not", "no", "never", "without", "nor", "dont", "doesnt", "didnt", "isnt", "arent", "wont", "cant", "cannot",
    "was", "used", "former", "formerly", "previously", "once", "before", "anymore", "longer", "until", "stopped",
    "quit", "will", "plan", "want", "may", "might", "should", "only", "all", "every", "rarely", "sometime", "often",
    "hardly", "barely", "scarcely", "seldom", "dislike", "hate", "avoid", "refuse", "ex",
    "mother", "father", "mom", "dad", "mum", "parent", "wife", "husband", "partner", "girlfriend", "boyfriend",
    "son", "daughter", "child", "children", "kid", "baby", "brother", "sister", "aunt", "uncle", "cousin",
    "nephew", "niece", "grandson", "granddaughter", "fiance", "neighbor", "neighbour", "roommate", "flatmate",
    "grandmother", "grandfather", "friend", "bos", "boss", "colleague", "coworker", "manager", "team", "dog", "cat",
))  # fmt: skip
_TELLING_CJK = frozenset("不没無无非未别勿曾前妈爸母父妻夫儿女兄弟姐妹哥友孩狗猫侄甥孙叔姑舅姨邻厌")
"""Words that change a sentence's meaning when only one of two sentences has them."""

_DIRECTION = re.compile(r"\b(over|than|before|after|instead|rather|versus|vs)\b|(比|先|再|而非|多于|胜过)")
_FROM_TO = re.compile(r"\b(from|to|into)\b|(从|由|到|至|往|去)")
_FROM = re.compile(r"\bfrom\b|[从由]")
"""Words that give those before and after them different parts: "Python over Go", "from Berlin to Bonn"."""

SWAP = 0.5
"""Weight of the order of the words in a similarity; the rest is the share of words that both have."""


Key = tuple[str, str]
"""The person a fact is about, and its normalised text. A sentence that names the person says so by itself."""


def key_of(fact: Fact) -> Key:
    """The key by which a fact counts as said already."""
    return _key(person_of(fact), _text_key(content_of(fact)))


def _key(person: str, text: str) -> Key:
    """The key of a normalised text about a person; of one that names them it is the same without a subject."""
    return ("", text) if person and names(text, person) else (person, text)


class Contents:
    """The facts of a document by what they say. Facts about different persons never count as the same.

    A few searches in all of their sentences find those that are worth a look; only these are normalised.
    """

    def __init__(self, facts: Iterable[Fact], threshold: float = 1.0) -> None:
        self._threshold = threshold
        self._facts: dict[str, Fact] = {}
        self._lines: ManyTexts | None = None
        self.put(*facts)

    def put(self, *facts: Fact) -> None:
        """Add facts; of several that say the same the first counts."""
        before = len(self._facts)
        self._facts.update({fact["id"]: fact for fact in facts})
        grown = len(self._facts) == before + len(facts)
        self._lines = self._lines.and_(_folded(facts)) if self._lines is not None and grown else None

    def drop(self, fact_id: str) -> None:
        """Remove a fact."""
        del self._facts[fact_id]
        self._lines = None

    @property
    def lines(self) -> ManyTexts:
        """The sentences as `folded_lines`, in order."""
        if self._lines is None:
            self._lines = ManyTexts(_folded(self._facts.values()))
        return self._lines

    def at(self, places: Iterable[int]) -> list[Fact]:
        """The facts at these places of `lines`, in order."""
        facts = list(self._facts.values())
        return [facts[place] for place in sorted(places)]

    def same(self, content: str, person: str) -> str | None:
        """The id of the fact that says the same of this person, however spelled."""
        text = _text_key(content)
        key, traces = _key(person, text), list(_traces(_WORDS.findall(normal_key(content))))
        places = self.lines.holding_most(traces, len(traces)) if traces else range(len(self._facts))
        return next((id_of(fact) for fact in self.at(places) if key_of(fact) == key), None)

    def near(self, content: str, person: str) -> str | None:
        """The id of the most similar fact, if it reaches the threshold; the older one of equals."""
        if self._threshold >= 1:
            return None
        best, nearest = self._threshold, None
        alike = Alike(content, best)
        for fact in self.maybe_alike(alike, whom(content, person)):
            score = alike.to(content_of(fact), best)
            if score > best or (score == best and nearest is None):
                best, nearest = score, id_of(fact)
        return nearest

    def maybe_alike(self, alike: Alike, person: str) -> list[Fact]:
        """The facts about a person (as `whom` names them) that may be alike, in order."""
        return [fact for fact in self.at(alike.among(self.lines)) if whom_of(fact) == person]


def _folded(facts: Iterable[Fact]) -> list[str]:
    return folded_lines(list(map(content_of, facts)))


def _text_key(content: str) -> str:
    """Equal wherever `strip().casefold()` is; that alone where nothing but punctuation is left."""
    return normal_key(content) or same_key(content)


def similarity(first: str, second: str, floor: float = 0.0) -> float:
    """How alike two contents are, from 0 to 1 (the same words in the same order).

    The mean of the Jaccard index of their words (for CJK: pairs of characters) and the share of words in the same
    order; 0 when a differing word changes the meaning, or when the result cannot reach `floor`.
    """
    left, right = tokens(first), tokens(second)
    shared, different = set(left) & set(right), set(left) ^ set(right)
    if not shared or any(map(changes_meaning, different)) or differ_in_sides(first, second):
        return 0.0
    jaccard = len(shared) / (len(shared) + len(different))
    if (1 - SWAP) * jaccard + SWAP < floor:
        return 0.0
    ratio = SequenceMatcher(None, left, right, autojunk=False).ratio()
    return (1 - SWAP) * jaccard + SWAP * ratio


class Alike:
    """Compares one content with many. `may_be` is the prefilter: a few substring searches rule most of them out."""

    def __init__(self, content: str, floor: float) -> None:
        self._content = content
        words = set(tokens(content))
        self._marks = tuple(_traces(filter(changes_meaning, words)))
        self._words = tuple(tuple(_traces([word])) for word in sorted(words, key=len, reverse=True))
        self._least = max(1, ceil(len(words) * (floor - SWAP) / (1 - SWAP)))  # so that the Jaccard index is enough

    def among(self, lines: ManyTexts) -> list[int]:
        """The places of those that `may_be`, of keys or of `folded_lines`."""
        if self._marks:
            first = set(lines.holding(max(self._marks, key=len)))
        else:  # who lacks all of the first words lacks too many
            first = lines.holding_any(traces[0] for traces in self._words[: max(0, len(self._words) - self._least + 1)])
        return [place for place in first if self.may_be(lines.texts[place])]

    def may_be(self, key: str) -> bool:
        """Whether a content with this `normal_key` (or folded line) can reach the floor; never False for one that
        does."""
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
        """The `similarity` to another content."""
        return similarity(self._content, other, floor)


def differ_in_sides(first: str, second: str) -> bool:
    """Whether a word that both contents have stands on different sides of "over", "than", "from", "to" and the like."""
    one, other = _sides(first), _sides(second)
    if not one or not other:
        return False
    return any(sides.isdisjoint(other[token]) for token, sides in one.items() if token in other)


@lru_cache(maxsize=4096)
def _sides(content: str) -> dict[str, frozenset[str]]:
    """The words by which of these words stands before them; empty where there is none."""
    key = normal_key(content)
    places = [(found.start(), found.end(), found[0]) for found in _DIRECTION.finditer(key)]
    if _FROM.search(key):
        places += [(found.start(), found.end(), found[0]) for found in _FROM_TO.finditer(key)]
    if not places:
        return {}
    sides: dict[str, frozenset[str]] = {}
    end, name = 0, ""
    for start, after, found in [*sorted(places), (len(key), len(key), "")]:
        for token in tokens(key[end:start]):
            sides[token] = sides.get(token, frozenset()) | {name}
        end, name = after, found
    return sides


def says_more(content: str, other: str) -> bool:
    """Whether one content has all words of the other, and further ones."""
    return set(tokens(other)) < set(tokens(content))


@lru_cache(maxsize=4096)
def tokens(content: str) -> tuple[str, ...]:
    """The words that count, in order: plural and verb endings in -s cut, CJK as pairs of characters."""
    words: list[str] = []
    for word in _WORDS.findall(normal_key(content)):
        if IS_CJK.match(word):
            words += _pairs(_EMPTY_CJK.sub("", word))
        elif word not in _EMPTY:
            words.append(word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word)
    return tuple(words)


def _traces(words: Iterable[str]) -> Iterator[str]:
    """Substrings of any text that has these tokens: the word, or the two characters of a pair."""
    for word in words:
        yield from word if IS_CJK.match(word) else (word,)


def _pairs(run: str) -> list[str]:
    return [run[place : place + 2] for place in range(len(run) - 1)] or ([run] if run else [])


@lru_cache(maxsize=4096)
def changes_meaning(token: str) -> bool:
    return bool(_DIGIT.search(token)) or token in _TELLING or bool(_TELLING_CJK & set(token))
