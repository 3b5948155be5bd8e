"""Contradicting: facts about one person and one thing that differ in a number, a name or a negation.

Only sentences that are alike in all else are compared, so that most of what is reported is right; a contradiction in
other words is not found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from math import ceil

from memd.memory.document import Fact
from memd.memory.duplicates import changes_meaning, tokens
from memd.memory.facts import content_of
from memd.memory.many_texts import ManyTexts
from memd.memory.telling import telling
from memd.memory.text import CJK, fold
from memd.memory.whom import whom_of

ALIKE = 0.5
"""The least share of words, without numbers, that two sentences with other numbers share."""

ALIKE_DENIED = 0.6
"""The same for a sentence and its denial."""

MAX_VALUE = 60
"""Characters of a name or place; what is longer is a clause."""

MAX_CHARS = 2_000
"""Characters of a sentence that are compared: the patterns take time by the square of them, minutes for 100 KB."""

_DIGITS = re.compile(r"\d+(?:[.,:]\d+)*|[零一二三四五六七八九十两百千万]+")
_CJK = re.compile(f"[{CJK}]")
_NAME = re.compile(rf"[^\W\d_a-z]|\d|[{CJK}]")
_NOBODY = frozenset(tokens("the user"))


def contradictions(facts: Sequence[Fact]) -> Iterator[tuple[int, int, str]]:
    """The places of two facts that cannot both be true today, the later one first, and what they differ in."""
    sentences = [Sentence(content_of(fact), whom_of(fact)) for fact in facts]
    by_word: dict[str, list[int]] = {}
    for place, sentence in enumerate(sentences):
        shared = Counter(other for word in sentence.frame for other in by_word.get(word, ()))
        for other in sorted(shared, reverse=True):  # one finding a fact: the latest that it contradicts
            if sentences[other].person == sentence.person and (kind := sentence.differs_in(sentences[other])):
                yield place, other, kind
                break
        for word in sentence.frame:
            by_word.setdefault(word, []).append(place)


class Sentence:
    """A fact's sentence, taken apart."""

    def __init__(self, content: str, person: str) -> None:
        self.person = person
        self.text = content[:MAX_CHARS]

    @cached_property
    def frame(self) -> frozenset[str]:
        """The words that say what the sentence is about: neither numbers nor negations."""
        return _content_words(_DIGITS.sub(" ", telling().negation.sub(" ", self.text))) - telling().numbers

    def rivals(self, folded: ManyTexts) -> set[int]:
        """The places of the texts that this sentence may contradict (`differs_in`), found by a few searches.

        `folded`: sentences as `folded_lines` gives them. No text that it contradicts is left out.
        """
        if self._is_past:
            return set()
        frame = list(map(fold, self.frame))
        alike = folded.holding_most(frame, max(1, ceil(ALIKE * len(frame))))
        if self._value is None:
            return set(alike)
        whose, kind = list(map(fold, self._value[0])), self._value[1]
        same = folded.holding_any(telling().literals[kind])
        return {*alike, *(place for place in same if all(word in folded.texts[place] for word in whose))}

    def differs_in(self, other: Sentence) -> str:
        """What the two contradict each other in: number, name or negation; "" when they do not."""
        if self._is_past or other._is_past:
            return ""
        if self._denied != other._denied and (self._denies(other) or other._denies(self)):
            return "negation"
        if self._numbers and other._numbers and self._counts_otherwise(other):
            return "number"
        return "name" if self._names_another(other) else ""

    @cached_property
    def _is_past(self) -> bool:
        return telling().past.search(self.text) is not None

    @cached_property
    def _numbers(self) -> frozenset[str]:
        spelled = telling().numbers.intersection(tokens(_DIGITS.sub(" ", self.text)))
        return spelled.union(_DIGITS.findall(fold(self.text)))

    @cached_property
    def _denied(self) -> frozenset[str]:
        """The words that the sentence denies: those after the first negation, up to the end of the clause."""
        negation = telling().negation.search(self.text)
        if negation is None:
            return frozenset()
        end = telling().clause_end.search(self.text, negation.end())
        return _content_words(self.text[negation.end() : end.start() if end else len(self.text)])

    @cached_property
    def _value(self) -> tuple[frozenset[str], int, str] | None:
        """Whose value the sentence names, of what kind it is, and the name."""
        found = telling().one_value.search(self.text)
        if found is None or self._denied:
            return None
        whose, rest = self.text[: found.start()], self.text[found.end() :].strip()
        end = telling().clause_end.search(rest)
        value = rest[: end.start()].strip() if end else rest
        if not value or len(value) > MAX_VALUE or not _NAME.search(value):
            return None
        if telling().several.search(whose) and not telling().only.search(whose):
            return None
        return _content_words(whose), found.lastindex or 0, fold(value)

    def _denies(self, other: Sentence) -> bool:
        """Whether this sentence denies what the other one says."""
        if not self._denied or other._denied or not self._denied <= other.frame:
            return False
        return _alike(self.frame, other.frame) >= ALIKE_DENIED

    def _counts_otherwise(self, other: Sentence) -> bool:
        if self._numbers == other._numbers or any(map(changes_meaning, self.frame ^ other.frame)):
            return False
        return _alike(self.frame, other.frame) > ALIKE

    def _names_another(self, other: Sentence) -> bool:
        one, two = self._value, other._value
        if one is None or two is None or one[:2] != two[:2]:
            return False
        return one[2] not in two[2] and two[2] not in one[2]


def _content_words(text: str) -> frozenset[str]:
    """The words that say something; of CJK the characters, for words there have no bounds."""
    bare = telling().filler.sub(" ", text)
    spaced = frozenset(tokens(_CJK.sub(" ", bare))) - _NOBODY
    return spaced.union(_CJK.findall(bare))


def _alike(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other) if one or other else 0.0
