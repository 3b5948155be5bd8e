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
    """Whether a term occurs in a text normalised by `fold`."""
    return _pattern(term).search(folded) is not None


@cache
def _pattern(term: str) -> re.Pattern[str]:
    """The regex of a term: at the beginning of a word, or anywhere in CJK text; a number only as a whole number."""
    folded = fold(term)
    start = end = ""
    if folded[:1].isdigit():
        start = r"(?<!\d)(?<!\d[.,])"
    elif folded[:1].isalpha() and not re.match(f"[{CJK}]", folded):
        start = rf"(?<![^\W_{CJK}])"
    if folded[-1:].isdigit():
        end = r"(?!\d)(?![.,]\d)"
    return re.compile(start + re.escape(folded) + end)


def text_of(fact: Fact) -> str:
    """The text that labels are compared with: the sentence of a fact, and the person it is about."""
    return fold(" ".join((content_of(fact), *subject_of(fact))))


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
