"""The quarantine: retirements that an update wanted and may not have, kept for a person to look at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memd.memory.document import Document

Entry = dict[str, Any]

CAP = 100
"""Entries that a document keeps; the oldest go."""


def entry(fact_id: str, wanted: str, why: str, now: str, thread_id: str, note: str) -> Entry:
    """A wish: which fact, what was wanted (an archive reason), why it was withheld, and the model's words."""
    found = {"fact": fact_id, "wanted": wanted, "why": why, "at": now, "source": thread_id}
    return {**found, "note": note} if note else found


def entries(document: Document) -> list[Entry]:
    """What lies in quarantine; nothing where a hand has left nonsense."""
    found = document.get("quarantine")
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def extend(document: Document, new: Sequence[Entry]) -> None:
    """Add entries to a document in the making; those of facts that are gone leave, one stays for each wish."""
    alive = {fact["id"] for fact in document["facts"]}
    wishes = {(one.get("fact"), one.get("wanted")): one for one in [*entries(document), *new]}
    kept = [one for one in wishes.values() if one.get("fact") in alive][-CAP:]
    if kept or "quarantine" in document:
        document["quarantine"] = kept
