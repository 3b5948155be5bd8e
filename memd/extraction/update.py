"""The update: what an extractor says changed. Only a wish; `apply` decides what of it comes true."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Evidence:
    """A passage that proves a fact: `quote` verbatim from the message with this index among those sent."""

    message: int
    quote: str


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a fact is about, when it is not the user."""

    person: str
    relationship: str


@dataclass(frozen=True, slots=True)
class NewFact:
    """One sentence worth remembering, with what the gates need to judge it."""

    content: str
    category: str
    confidence: float
    scope: str
    durability: str
    authority: str
    evidence: tuple[Evidence, ...]
    valid_days: int | None = None
    source_error: str | None = None
    subject: Subject | None = None
    backstory: str | None = None
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConfirmedFact:
    """A fact of the document that the user stated again."""

    id: str
    quote: str


@dataclass(frozen=True, slots=True)
class RetiredFact:
    """A fact of the document that is over, with nothing in its place."""

    id: str
    reason: str
    quote: str


@dataclass(frozen=True, slots=True)
class ReviewedFact:
    """The verdict on a fact that was offered for review: `keep`, `extend` (by so many days) or `retire`."""

    id: str
    verdict: str
    valid_days: int | None = None


@dataclass(frozen=True, slots=True)
class MergedFact:
    """Facts of one category that overlap, said in one sentence; `sources` are their ids."""

    content: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """What an extractor is asked beside the messages: ids to review, each with why, and categories to merge in."""

    review: Mapping[str, str] = field(default_factory=dict)
    merge: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Update:
    """Everything one answer of an extractor wants changed."""

    summaries: Mapping[str, str] = field(default_factory=dict)
    new_facts: tuple[NewFact, ...] = ()
    confirmed_facts: tuple[ConfirmedFact, ...] = ()
    retired_facts: tuple[RetiredFact, ...] = ()
    reviewed_facts: tuple[ReviewedFact, ...] = ()
    merged_facts: tuple[MergedFact, ...] = ()
