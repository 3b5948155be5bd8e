"""No leak through the request: a fact for a project may not carry what stands only in the request's private part. Pure.

The model sees the member's own memory and private turns beside those of the project, so a word of these may slip into a
sentence for all members. Such a fact stays private, and so does what is about a person rather than the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from memd.extraction.update import NewFact
from memd.memory.duplicates import IS_CJK, tokens
from memd.memory.text import CJK, fold
from memd.push.patterns import load, prepared

PERSONAL = frozenset({"identity", "preference", "behavior"})
"""Categories that tell of a person; what they say of a project stays with the member who said it."""

WORD = 3
"""Letters of a word that says something, its plural cut: "cats" counts; shorter ones only as names and numbers."""

STEM = 5
"""Letters by which two forms of a word count as one: "deploys", "deployment"."""

_NAME = re.compile(rf"(?<![^\W_])[^\W\d_{CJK}]+")
_NUMBER = re.compile(r"\d[\d.,:/-]*")


@prepared
def _common() -> frozenset[str]:
    """Words, and pairs of characters, that name nothing: they betray no secret wherever they stand."""
    return frozenset(load(Path(__file__).with_suffix(""))["common"])


def is_personal(fact: NewFact, category: str) -> bool:
    """Whether a fact tells of a person rather than of the project, so that it is never published by itself.

    `category`: as it would be stored.
    """
    return fact.subject is not None or fact.sensitive or category in PERSONAL


class Fence:
    """What stands in the private part of a request, and what in a project's own: its marked messages and its facts."""

    def __init__(self, private: Iterable[str], project: Iterable[str]) -> None:
        self._private = frozenset(key for text in private for key in _keys(text))
        self._project = frozenset(key for text in project for key in _keys(text))
        self._secret = self._private - self._project

    def holds_back(self, content: str) -> bool:
        """Whether a sentence has a word, number or name that only the private part has."""
        return bool(self._secret) and not self._secret.isdisjoint(_keys(content))


def _keys(text: str) -> Iterator[str]:
    """The words, numbers and names of a text that say something, in the form in which they are compared."""
    for token in tokens(text):
        if IS_CJK.match(token):
            if len(token) == 2 and token not in _common():
                yield token
        elif any(map(str.isdigit, token)) or (len(token) >= WORD and token not in _common()):
            yield token[:STEM] if token.isalpha() else token
    for name in _NAME.finditer(text):
        word = fold(name[0])
        if name[0][0].isupper() and 2 <= len(word) < WORD and word not in _common():
            yield word
    for number in _NUMBER.findall(text):
        yield number.strip(".,:/-")
