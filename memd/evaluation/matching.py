"""Matching: whether a fact contains the terms of a label. See evaluation/README.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Annotated

from msgspec import Meta, Struct

from memd.memory.document import Fact
from memd.memory.facts import content_of, subject_of
from memd.memory.text import CJK, fold

_SELF = frozenset({"", "user", "the user", "用户", "self", "本人"})
"""Subjects that mean the user."""

_CJK = re.compile(f"[{CJK}]")
_POINTS = frozenset(".,")

Term = Annotated[str, Meta(min_length=1, max_length=200)]
Terms = Annotated[tuple[Annotated[tuple[Term, ...], Meta(min_length=1)], ...], Meta(min_length=1)]


class Matcher(Struct, frozen=True, forbid_unknown_fields=True):
    """A text matches when all `terms` of one alternative occur in it, and none of `without`."""

    terms: Terms
    without: tuple[Term, ...] = ()

    def matches(self, folded: str) -> bool:
        """Whether a text normalised by `fold` matches."""
        if any(occurs(term, folded) for term in self.without):
            return False
        return any(all(occurs(term, folded) for term in alternative) for alternative in self.terms)


def occurs(term: str, folded: str) -> bool:
    """Whether a term occurs in a text that `fold` has normalised.

    A term begins where a word begins; a number is a whole number; Chinese, Japanese and Korean terms are anywhere.
    """
    term = _folded(term)
    start = folded.find(term)
    while start >= 0:
        if _begins(term, folded[max(0, start - 2) : start]) and _ends(term, folded[start + len(term) :][:2]):
            return True
        start = folded.find(term, start + 1)
    return False


def _begins(term: str, before: str) -> bool:
    """Whether a term may begin after these two characters."""
    if term[0].isdigit():
        return not (before[-1:].isdigit() or (before[-1:] in _POINTS and before[:1].isdigit() and len(before) == 2))
    return not (_is_letter(term[0]) and before and (_is_letter(before[-1]) or before[-1].isdigit()))


def _ends(term: str, after: str) -> bool:
    """Whether a term may end before these two characters."""
    if not term[-1].isdigit():
        return True
    return not (after[:1].isdigit() or (after[:1] in _POINTS and after[1:].isdigit()))


def _is_letter(character: str) -> bool:
    """Whether it is a letter of a script that puts spaces between words."""
    return character.isalpha() and not _CJK.match(character)


@cache
def _folded(text: str) -> str:
    return fold(text)


def text_of(fact: Fact) -> str:
    """The text that labels are compared with: the sentence of a fact, and the person it is about."""
    return _folded(" ".join((content_of(fact), *subject_of(fact))))


def matching(matcher: Matcher, facts: Iterable[Fact]) -> list[Fact]:
    """The facts that match."""
    return [fact for fact in facts if matcher.matches(text_of(fact))]


def is_about(fact: Fact, person: Sequence[str]) -> bool:
    """Whether the fact is about this person, named by any of their names; without names: about the user.

    A fact without a subject is about whomever its sentence names.
    """
    subject, relationship = subject_of(fact)
    if not person:
        return fold(subject) in _SELF
    named = fold(f"{subject} {relationship} {content_of(fact)}")
    return any(occurs(name, named) for name in person)
