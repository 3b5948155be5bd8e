"""The history of a memory: what was learned, replaced, retired, evicted and forgotten, by day. Pure.

Like `past`, it reads the facts, the archive and the tombstones of the document as it is now, so it has their gaps: what
left a full archive, and the words of what was removed, are not known any more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Literal, NamedTuple, get_args

from memd.memory.document import Document, Fact, archive_of, facts_of, tombstones_of
from memd.memory.facts import archive_reason, archived_at, id_of, replaced_by
from memd.memory.listing import SUPERSEDING
from memd.push.times import moment
from memd.recall.past import believed_from

ChangeKind = Literal["learned", "replaced", "retired", "evicted", "forgotten"]
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)


class MemoryChange(NamedTuple):
    """One change. `fact`: as it was learned or as it went; None for one that was forgotten: its words are gone.

    `successor`: the fact that took its place, as the memory or the archive has it; None when none did.
    """

    at: datetime
    kind: ChangeKind
    fact: Fact | None = None
    successor: Fact | None = None


class DayOfChanges(NamedTuple):
    """The changes of one day (UTC), the latest first, and how many of each kind there are."""

    day: date
    changes: tuple[MemoryChange, ...]
    numbers: Mapping[ChangeKind, int]


def history(document: Document) -> list[DayOfChanges]:
    """The days on which the memory changed, the latest first. Changes without a readable time are left out."""
    changes = sorted(_changes(document), key=lambda change: change.at, reverse=True)
    days = [(day, tuple(group)) for day, group in groupby(changes, key=_day)]
    return [DayOfChanges(day, group, Counter(change.kind for change in group)) for day, group in days]


def _changes(document: Document) -> Iterator[MemoryChange]:
    archive = archive_of(document)
    versions = (*archive, *facts_of(document))
    for fact in versions:
        if (begin := believed_from(fact)) is not None:
            yield MemoryChange(begin, "learned", fact)
    successors = _Successors(versions)
    for entry in archive:
        if (end := moment(archived_at(entry))) is not None:
            yield MemoryChange(end, _kind(entry), entry, successors.of(entry))
    for tombstone in tombstones_of(document):
        # A tombstone without threads is about turns that were removed for a fact of another memory.
        if "threads" in tombstone and (gone := moment(tombstone.get("removedAt"))) is not None:
            yield MemoryChange(gone, "forgotten")


def _kind(entry: Fact) -> ChangeKind:
    reason = archive_reason(entry)
    if reason in SUPERSEDING:
        return "replaced"
    return "evicted" if reason == "evicted" else "retired"


class _Successors:
    """What took the place of each archived fact, among all versions of all facts."""

    def __init__(self, versions: Iterable[Fact]) -> None:
        self._first: dict[str, Fact] = {}
        self._next: dict[int, Fact] = {}
        last: dict[str, Fact] = {}
        for fact in versions:
            name = id_of(fact)
            self._first.setdefault(name, fact)
            if name in last:
                self._next[id(last[name])] = fact
            last[name] = fact

    def of(self, entry: Fact) -> Fact | None:
        """The fact in its place; of one that was edited, the version after it; None for one that nothing replaced."""
        if name := replaced_by(entry):
            return self._first.get(name)
        return self._next.get(id(entry)) if archive_reason(entry) == "edited" else None


def _day(change: MemoryChange) -> date:
    return change.at.astimezone(UTC).date()
