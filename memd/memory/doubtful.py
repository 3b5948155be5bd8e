"""Doubtful facts: proven by the user's words, but perhaps a permission, not meant so, or sensitive. A person decides.

They stand apart from the facts in the document's `doubtful`, each whole, with `doubtfulWhy` and `doubtfulAt`; their
`replaces` name what they would replace. Nothing injects, searches or sends them; a person approves or drops them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from memd.memory.apart import facts_in, with_facts_in
from memd.memory.document import Document, Fact
from memd.push.times import moment

FIELD = "doubtful"

MAX_DOUBTFUL = 50
"""Doubtful facts of a document: as many as a person will look through; the oldest go."""

DAYS = 90
"""Days after which nobody will decide on a doubtful fact any more."""

Why = Literal["authority", "support", "sensitive"]
"""authority: it sounds like a permission or an order. support: what was said does not quite prove it. sensitive: more
private than an assistant needs."""

_OWN_FIELDS = ("doubtfulAt", "doubtfulWhy")


def facts_of(document: Document, now: datetime | None = None) -> list[Fact]:
    """The doubtful facts, oldest first; entries without an id or a content are skipped.

    `now`: those that are older than DAYS are left out too.
    """
    facts = facts_in(document, FIELD)
    return facts if now is None else [fact for fact in facts if not _is_old(fact, now)]


def with_facts(document: Document, facts: Sequence[Fact]) -> Document:
    """The document with these doubtful facts."""
    return with_facts_in(document, FIELD, facts)


def has_old(document: Document, now: datetime) -> bool:
    """Whether any doubtful fact is older than DAYS."""
    return any(_is_old(fact, now) for fact in facts_of(document))


def without_old(document: Document, now: datetime) -> Document:
    """The document without the doubtful facts that are older than DAYS."""
    return with_facts(document, facts_of(document, now)) if has_old(document, now) else document


def doubted(fact: Fact, why: Why, now: str) -> Fact:
    """A fact as it is kept apart."""
    return {**fact, "doubtfulAt": now, "doubtfulWhy": why}


def cleared(fact: Fact) -> Fact:
    """A doubtful fact without the fields that say so."""
    return {name: value for name, value in fact.items() if name not in _OWN_FIELDS}


def latest(facts: Iterable[Fact], now: datetime) -> list[Fact]:
    """Those that a document keeps: not too old, and the last MAX_DOUBTFUL."""
    return [fact for fact in facts if not _is_old(fact, now)][-MAX_DOUBTFUL:]


def _is_old(fact: Fact, now: datetime) -> bool:
    at = moment(fact.get("doubtfulAt"))
    return at is not None and at < now - timedelta(days=DAYS)
