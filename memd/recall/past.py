"""The past: a memory as it was believed at a moment, put together from the facts and the archive.

A fact was believed from its creation (one edited by hand from that edit) until it was archived. What cannot be known
is said: the archive has a cap, removed facts leave no text, and summaries have no history.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memd.memory import removed
from memd.memory.document import SECTIONS, Document, Fact, iso, moment, summary
from memd.memory.facts import is_manual


@dataclass(frozen=True, slots=True)
class Past:
    """The document as it was believed, and a sentence for each reason why it may not be whole."""

    document: Document
    missing: tuple[str, ...]


def as_of(document: Document, at: datetime, archive_cap: int) -> Past:
    """The memory as it was believed at `at`. `archive_cap`: entries that the archive keeps at most."""
    versions = [*document.get("archive", ()), *document.get("facts", ())]
    facts = [_then(fact, at) for fact in versions if _was_believed(fact, at)]
    facts.sort(key=lambda fact: str(fact.get("createdAt", "")))
    sections, lost = _summaries(document, at)
    changes = [time for fact in versions for time in (_begin(fact), _end(fact)) if time is not None and time <= at]
    then: Document = {
        **{name: document[name] for name in ("version", "userId", "agentName") if name in document},
        **sections,
        "lastUpdated": iso(max(changes)) if changes else "",
        "facts": facts,
    }
    return Past(then, (*_gaps(document, at, archive_cap), *lost))


def _was_believed(fact: Fact, at: datetime) -> bool:
    begin, end = _begin(fact), _end(fact)
    if "archivedAt" in fact and end is None:
        return False  # `_gaps` says it
    return (begin is None or begin <= at) and (end is None or at < end)


def _begin(fact: Fact) -> datetime | None:
    edited = moment(fact.get("updatedAt")) if is_manual(fact) else None
    return edited or moment(fact.get("createdAt"))


def _end(fact: Fact) -> datetime | None:
    return moment(fact.get("archivedAt"))


def _then(fact: Fact, at: datetime) -> Fact:
    """The fact without what happened to it later."""
    later = {"archivedAt", "archiveReason", "archiveNote", "replacedBy"}
    confirmed = moment(fact.get("lastConfirmedAt"))
    if confirmed is not None and confirmed > at:
        later |= {"confirmations", "lastConfirmedAt"}
    return {name: value for name, value in fact.items() if name not in later}


def _summaries(document: Document, at: datetime) -> tuple[dict[str, Any], list[str]]:
    """The summaries that have not changed since, and a sentence about the others."""
    sections: dict[str, Any] = {name: {} for name in dict.fromkeys(SECTIONS.values())}
    lost: list[str] = []
    for name, section in SECTIONS.items():
        if not summary(document, name):
            continue
        entry = document[section][name]
        written = moment(entry.get("updatedAt"))
        if written is not None and written <= at:
            sections[section][name] = entry
        else:
            lost.append(name)
    said = f"summaries have no history: {', '.join(lost)} changed since, and what stood there is not known"
    return sections, [said] if lost else []


def _gaps(document: Document, at: datetime, archive_cap: int) -> Iterator[str]:
    entries = document.get("archive", [])
    ends = [end for entry in entries if (end := _end(entry)) is not None]
    # The archive loses those first that were archived first: none that was lost outlived one that is there.
    if len(entries) >= archive_cap and not (ends and min(ends) <= at):
        yield f"the archive keeps {archive_cap} facts: some that were believed then may be gone from it"
    if timeless := sum(_end(entry) is None for entry in entries):
        yield f"{timeless} archived facts do not say when they went, and are left out"
    if ageless := sum(_begin(fact) is None for fact in document.get("facts", ())):
        yield f"{ageless} facts do not say since when they are believed, and are shown"
    times = [moment(entry.get("removedAt")) for entry in document.get(removed.FIELD, ())]
    if gone := sum(time is None or time > at for time in times):
        yield f"{gone} facts were removed since: what they said is gone"
