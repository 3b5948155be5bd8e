"""The past: a memory as it was believed at a moment, rebuilt from the facts and the archive.

A fact was believed from its creation (a fact edited by hand: from that edit) until it was archived. The result names
its gaps: the archive has a cap, removed facts leave no text, and summaries keep few versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memd.memory.document import (
    MAX_VERSIONS,
    SECTIONS,
    Document,
    Fact,
    archive_of,
    facts_of,
    summaries_of,
    summary_entry,
    summary_versions,
    tombstones_of,
)
from memd.memory.facts import archived_at, created_at, is_archived, is_manual, last_confirmed_at, updated_at
from memd.printable import counted, noun
from memd.push.times import iso, moment


@dataclass(frozen=True, slots=True)
class Gap:
    """A reason why a past memory may be incomplete, and the number of facts that it is about.

    `archive_full`: the archive keeps no more than `count` facts; `timeless`: archived, nobody knows when; `ageless`:
    nobody knows since when; `removed`: removed since, without a trace; `summaries`: those of `names` were rewritten.
    """

    kind: Literal["archive_full", "timeless", "ageless", "removed", "summaries"]
    count: int
    names: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The reason in words."""
        match self.kind:
            case "archive_full":
                return f"the archive keeps {_facts(self)}: some that were believed then may no longer be in it"
            case "timeless":
                return f"left out, as they have no time of archiving: {counted(self.count, 'archived fact')}"
            case "ageless":
                return f"shown, though they have no time of creation: {_facts(self)}"
            case "removed":
                return f"{_facts(self)} {noun(self.count, 'was', 'were')} removed since: the text is gone"
            case "summaries":
                lost = ", ".join(self.names)
                return f"summaries keep their last {self.count} versions: the text of {lost} then is not known"


@dataclass(frozen=True, slots=True)
class Past:
    """The document as believed at that moment, and the reasons why it may be incomplete."""

    document: Document
    gaps: tuple[Gap, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """The reasons as sentences."""
        return tuple(gap.sentence for gap in self.gaps)


def as_of(document: Document, at: datetime, archive_cap: int) -> Past:
    """The memory as it was believed at `at`. `archive_cap`: entries that the archive keeps at most."""
    versions = [*archive_of(document), *facts_of(document)]
    facts = [_then(fact, at) for fact in versions if _was_believed(fact, at)]
    facts.sort(key=created_at)
    with_summaries, lost = _summaries(document, at)
    changes = [
        time for fact in versions for time in (believed_from(fact), _end(fact)) if time is not None and time <= at
    ]
    then: Document = {
        **{name: document[name] for name in ("version", "userId", "agentName") if name in document},
        **with_summaries,
        "lastUpdated": iso(max(changes)) if changes else "",
        "facts": facts,
    }
    return Past(then, (*_gaps(document, at, archive_cap), *lost))


def _was_believed(fact: Fact, at: datetime) -> bool:
    begin, end = believed_from(fact), _end(fact)
    if is_archived(fact) and end is None:
        return False  # `_gaps` reports these
    return (begin is None or begin <= at) and (end is None or at < end)


def believed_from(fact: Fact) -> datetime | None:
    """The first moment at which a fact, or this version of it, was believed; None when that is not known."""
    edited = moment(updated_at(fact)) if is_manual(fact) else None
    return edited or moment(created_at(fact))


def _end(fact: Fact) -> datetime | None:
    return moment(archived_at(fact))


def _then(fact: Fact, at: datetime) -> Fact:
    """The fact without its later changes."""
    later = {"archivedAt", "archiveReason", "archiveNote", "replacedBy"}
    confirmed = moment(last_confirmed_at(fact))
    if confirmed is not None and confirmed > at:
        later |= {"confirmations", "lastConfirmedAt"}
    return {name: value for name, value in fact.items() if name not in later}


def _summaries(document: Document, at: datetime) -> tuple[Document, tuple[Gap, ...]]:
    """The sections with the summaries as they were, and the gap of those of which that is not known."""
    sections: Document = {name: {} for name in dict.fromkeys(SECTIONS.values())}
    lost: list[str] = []
    for name, _ in summaries_of(document):
        versions = [*summary_versions(document, name), summary_entry(document, name)]
        then = [version for version in versions if (written := moment(version.get("updatedAt"))) and written <= at]
        if then:
            sections[SECTIONS[name]][name] = {field: value for field, value in then[-1].items() if field != "versions"}
        else:
            lost.append(name)
    return sections, (Gap("summaries", MAX_VERSIONS, tuple(lost)),) if lost else ()


def _gaps(document: Document, at: datetime, archive_cap: int) -> Iterator[Gap]:
    entries = archive_of(document)
    ends = [end for entry in entries if (end := _end(entry)) is not None]
    # The archive drops its oldest entries first: no dropped fact was believed longer than the oldest entry.
    if len(entries) >= archive_cap and not (ends and min(ends) <= at):
        yield Gap("archive_full", archive_cap)
    if timeless := sum(_end(entry) is None for entry in entries):
        yield Gap("timeless", timeless)
    if ageless := sum(believed_from(fact) is None for fact in facts_of(document)):
        yield Gap("ageless", ageless)
    times = [moment(tombstone.get("removedAt")) for tombstone in tombstones_of(document)]
    if gone := sum(time is None or time > at for time in times):
        yield Gap("removed", gone)


def _facts(gap: Gap) -> str:
    return counted(gap.count, "fact")
