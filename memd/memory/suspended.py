"""Suspended facts: the user may have asked to forget them, beyond what an update may remove by itself.

They stand apart from the facts in the document's `suspended`, each whole, with `suspendedAt` and `suspendedWhy`.
Nothing injects or searches them; a person removes them for good or takes them back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from memd.memory.apart import facts_in, with_facts_in
from memd.memory.document import Document, Fact

FIELD = "suspended"

MAX_SUSPENDED = 20
"""Suspended facts of a document: as many as a person will look through. A wish to forget everything suspends all."""

MAX_OF_ALL = 500
"""The same where wishes to forget everything have suspended them, one after the other: then the oldest go for good."""

WHY = "suspendedWhy"

Why = Literal["too_many_forgotten", "unclear_wish", "manual", "everything"]

ALL: Why = "everything"
"""The user asked to forget all that was known of them, and may tell it anew. Of the others words bring back none."""


def facts_of(document: Document) -> list[Fact]:
    """The suspended facts, oldest first; entries without an id or a content are skipped."""
    return facts_in(document, FIELD)


def with_facts(document: Document, facts: Sequence[Fact]) -> Document:
    """The document with these suspended facts."""
    return with_facts_in(document, FIELD, facts)


def suspended(fact: Fact, why: Why, now: str) -> Fact:
    """A fact as it is suspended."""
    return {**fact, "suspendedAt": now, WHY: why}


def restored(fact: Fact) -> Fact:
    """A suspended fact as it was before."""
    return {name: value for name, value in fact.items() if name not in ("suspendedAt", WHY)}


def as_withheld(fact: Fact) -> dict[str, object]:
    """A suspended fact in the form of a withheld retirement, with its `content`."""
    return {
        "fact": fact["id"],
        "wanted": "forgotten",
        "why": fact.get(WHY),
        "at": fact.get("suspendedAt"),
        "source": fact.get("source"),
        "content": fact["content"],
    }
