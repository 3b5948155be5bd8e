"""Relationships that have ended, so that older facts about the person do not go on showing them. Pure.

A fact keeps the subject with which it was stored. When facts are read, the newest word on the relationship counts: a
fact whose subject is former ("ex-wife", 前妻), or the fact that took the place of one about the person and says so.
Two persons can have one name, so only a relationship of the same kind is over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import chain

from memd.memory.document import Document, Fact, archive_of, facts_of
from memd.memory.facts import archive_note, archive_reason, content_of, id_of, replaced_by, said_at_of, subject_of
from memd.memory.text import fold
from memd.push.times import moment

_FORMER = re.compile(r"(?:ex|former|late)(?:[\s-]+|$)|前(?=[夫妻任男女]|丈夫|老)", re.IGNORECASE)
_PARTNER = re.compile(
    r"wife|husband|spouse|partner|girlfriend|boyfriend|fianc[eé]e?"
    r"|妻|妻子|老婆|太太|爱人|夫|丈夫|老公|(?:男|女)(?:朋)?友|伴侣|未婚[夫妻]|任"
)
_ENDED = re.compile(
    r"\b(?:(?:br(?:oke|oken|eak)|split) up|separated|divorced?|no longer together)\b|分手|离婚|分居", re.IGNORECASE
)
_NEVER = datetime.min.replace(tzinfo=UTC)

_Kind = tuple[str, str]
"""A person and the kind of their relationship, folded."""


def current_facts(document: Document) -> Iterator[Fact]:
    """The facts of a document, in order; the subject of those about a former partner or colleague says so."""
    facts = facts_of(document)
    ends = _ends(document) if any("subject" in fact for fact in facts) else {}
    for fact in facts:
        person, relationship = subject_of(fact)
        _, former = ends.get(_kind(person, relationship), (_NEVER, ""))
        if former and not is_former(relationship):
            yield {**fact, "subject": {"person": person, "relationship": former}}
        else:
            yield fact


def is_former(relationship: str) -> bool:
    """Whether a relationship says itself that it is over."""
    return _FORMER.match(relationship) is not None


def _ends(document: Document) -> dict[_Kind, tuple[datetime, str]]:
    """When each relationship ended, and its name since; without those that a later fact states anew."""
    facts, archive = facts_of(document), archive_of(document)
    by_id = {id_of(fact): fact for fact in chain(archive, facts)}
    ends: dict[_Kind, tuple[datetime, str]] = {}
    for fact in archive:
        person, relationship = subject_of(fact)
        later = by_id.get(replaced_by(fact), {})
        told = content_of(later) if later else archive_note(fact)
        if person and archive_reason(fact) in ("replaced", "retired") and _ENDED.search(told):
            ends[_kind(person, relationship)] = _said(later or fact), _former(relationship)
    for fact in facts:
        person, relationship = subject_of(fact)
        if person and is_former(relationship):
            ends[_kind(person, relationship)] = _said(fact), relationship
    for fact in facts:
        person, relationship = subject_of(fact)
        kind = _kind(person, relationship)
        if kind in ends and not is_former(relationship) and _said(fact) > ends[kind][0]:
            del ends[kind]
    return ends


def _kind(person: str, relationship: str) -> _Kind:
    plain = fold(_FORMER.sub("", relationship, count=1))
    return fold(person), "partner" if _PARTNER.fullmatch(plain) else plain


def _former(relationship: str) -> str:
    if is_former(relationship):
        return relationship
    return f"former {relationship}" if relationship.isascii() else f"前{relationship}"


def _said(fact: Fact) -> datetime:
    return moment(said_at_of(fact)) or _NEVER
