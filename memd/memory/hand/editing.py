"""Editing: changes by hand, committed like a worker's update: under the lock, against the loaded revision.

When another writer was faster, the edit is applied again to the newer document, so neither change is lost. Editing
does not need the server.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol, TypeVar, Unpack

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import Conflict, Rejected
from memd.memory import doubtful, profiles, refused, suspended
from memd.memory.document import (
    Document,
    Fact,
    Withheld,
    revision_of,
    said_file_of,
    withheld_of,
)
from memd.memory.facts import with_id
from memd.memory.hand import doubts, edits, profile_edits
from memd.memory.hand.edits import RemovedFact
from memd.memory.hand.steps import Edited
from memd.memory.ledger import Ledger
from memd.memory.listing import ArchiveFilters, FactFilter, ListFilters, as_listed, checked_filters
from memd.memory.said.changes import SaidChange
from memd.memory.said.marking import edited_facts, over_marks
from memd.memory.said.taking import took_in
from memd.memory.said.turns import Said, Turn
from memd.memory.scoped import Places, all_facts
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Loaded, Store
from memd.memory.store.said_reader import keeps_said, read_said
from memd.memory.store.sessions import Sessions
from memd.push.times import iso

ROUNDS = 50
"""How often an edit is retried because another writer was faster; each time that writer made progress."""


BY_PERSON = "person"
"""Who approves a fact where no door knows better."""


class Result(Protocol):
    """The result of an edit: the next document, of the same revision when nothing had to change."""

    @property
    def document(self) -> Document:
        """The document after the edit."""
        ...

    @property
    def said(self) -> SaidChange | None:
        """The change of the said layer that belongs to it."""
        ...


R = TypeVar("R", bound=Result)
Step = Callable[[Document, datetime], R]
"""An edit of one document at one moment; it may be called more than once."""


@dataclass(frozen=True, slots=True)
class Change:
    """The outcome of an edit: the id of the fact, whether anything changed, and the fact before and after.

    `turns`: the turns that a removal takes out of what was said, with the agent in whose memory each was.
    """

    fact_id: str
    changed: bool
    before: Fact | None
    after: Fact | None
    turns: tuple[tuple[str, Turn], ...] = ()


class Editing:
    """Changes documents by hand. Safe against other threads and against any worker.

    Every method raises Rejected (nothing changed), StoreUnavailable, and DocumentDamaged with the place of the damage;
    a damaged file stays in place for its editor to repair.
    """

    def __init__(self, settings: Settings, store: Store | None = None) -> None:
        self._settings = settings
        self._store = store or open_store(settings)

    def facts(self, bucket: Bucket, **filters: Unpack[ListFilters]) -> list[Fact]:
        """Copies of the facts of a memory as doors show them, oldest first, archived ones last."""
        filters["places"] = self._named(bucket, filters.get("places"))
        return self._listed(bucket, checked_filters(**filters))

    def archived(self, bucket: Bucket, reason: str | None = None, **filters: Unpack[ArchiveFilters]) -> list[Fact]:
        """Those that are not active, latest last. `reason`: only this archive reason; None: all."""
        filters["places"] = self._named(bucket, filters.get("places"))
        return self._listed(bucket, checked_filters(**filters).of_archive(reason))

    def _named(self, bucket: Bucket, places: Places | None) -> Places | None:
        return None if places is None else places.of_user(bucket.user_id, shared=self._settings.store.shared)

    def _listed(self, bucket: Bucket, chosen: FactFilter) -> list[Fact]:
        found = list(chosen.listed(self.load(bucket).document))
        accesses = self._store.reading_notes.read(bucket, time.time())
        return [as_listed(fact, accesses) for fact in found]

    def withheld(self, bucket: Bucket) -> list[Withheld]:
        """What is held back: retirements, too many at once or of a manual fact, and suspended facts (`forgotten`)."""
        document = self.load(bucket).document
        return [*withheld_of(document), *map(suspended.as_withheld, suspended.facts_of(document))]

    def add(self, bucket: Bucket, content: str, category: str | None = None, *, dry_run: bool = False) -> Change:
        """Add a fact by hand."""
        settings = self._settings.apply
        return self._one(bucket, lambda document, now: edits.add(document, content, category, now, settings), dry_run)

    def edit(
        self,
        bucket: Bucket,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        *,
        dry_run: bool = False,
    ) -> Change:
        """Change a fact. Raises FactUnknown."""
        settings = self._settings.apply
        return self._one(
            bucket, lambda document, now: edits.edit(document, fact_id, content, category, now, settings), dry_run
        )

    def restore(self, bucket: Bucket, fact_id: str, *, dry_run: bool = False) -> Change:
        """Take a suspended fact back. Raises FactUnknown."""
        settings = self._settings.apply
        return self._one(bucket, lambda document, now: edits.restore(document, fact_id, now, settings), dry_run)

    def doubtful(self, bucket: Bucket) -> list[Fact]:
        """Copies of the doubtful facts, oldest first."""
        return [dict(fact) for fact in doubtful.facts_of(self.load(bucket).document, datetime.now(UTC))]

    def profile(self, bucket: Bucket) -> dict[str, dict[str, object]]:
        """The profile of a memory, in the order of its fields."""
        return profile_edits.shown(profiles.profile_of(self.load(bucket).document))

    def set_profile(self, bucket: Bucket, field: str, value: object) -> bool:
        """Set a field by hand; whether that changed anything."""
        before, edited = self.change(bucket, lambda document, now: profile_edits.set_field(document, field, value, now))
        return has_changed(before, edited)

    def unset_profile(self, bucket: Bucket, field: str) -> bool:
        """Take a field out; whether there was one."""
        before, edited = self.change(bucket, lambda document, now: profile_edits.unset_field(document, field, now))
        return has_changed(before, edited)

    def approve(
        self, bucket: Bucket, fact_id: str, *, by: str = BY_PERSON, anyway: bool = False, dry_run: bool = False
    ) -> Change:
        """Make a doubtful fact a fact of the memory. Raises FactUnknown."""
        settings = self._settings.apply

        def step(document: Document, now: datetime) -> Edited:
            return doubts.approve(document, fact_id, now, settings, by=by, anyway=anyway)

        return self._one(bucket, step, dry_run)

    def drop(self, bucket: Bucket, fact_id: str, *, dry_run: bool = False) -> Change:
        """Take a doubtful fact out for good. Raises FactUnknown."""
        before, edited = self.change(bucket, lambda document, now: doubts.drop(document, fact_id, now), dry_run=dry_run)
        return Change(fact_id, has_changed(before, edited), with_id(doubtful.facts_of(before), fact_id), None)

    def remove(self, bucket: Bucket, fact_id: str, *, dry_run: bool = False) -> Change:
        """Remove a fact for good, with the turns that say it in all memories of the user. Raises FactUnknown.

        One write for each memory, that of the fact last: a removal that was cut short can be repeated.
        """

        def step(document: Document, now: datetime) -> RemovedFact:
            return edits.remove(document, fact_id, now, self._store.read_said(bucket, document))

        before, removal = self.change(bucket, step, dry_run=True)
        turns: list[tuple[str, Turn]] = []
        for agent in self._other_agents(bucket):
            gone = self._remove_from_said(Bucket(bucket.user_id, agent), removal.facts, dry_run=dry_run)
            turns += ((agent, turn) for turn in gone)
        if not dry_run:
            before, removal = self.change(bucket, step)
        turns += ((bucket.agent_name, turn) for turn in removal.turns)
        apart = (fact for field in (suspended, doubtful, refused) for fact in field.facts_of(before))
        known = with_id([*all_facts(before), *apart], fact_id)
        return Change(fact_id, True, known, None, tuple(turns))

    def _other_agents(self, bucket: Bucket) -> list[str]:
        """The agents of the user's other memories, the user's own among them."""
        if self._settings.store.shared:
            return []
        return [name for name in (DEFAULT_AGENT, *self.agents(bucket.user_id)) if name != bucket.agent_name]

    def _remove_from_said(self, bucket: Bucket, facts: Sequence[Fact], *, dry_run: bool) -> tuple[Turn, ...]:
        def step(document: Document, now: datetime) -> RemovedFact:
            return edits.remove_from_said(document, facts, now, self._store.read_said(bucket, document))

        return self.change(bucket, step, dry_run=dry_run)[1].turns

    def said(self, bucket: Bucket, document: Document) -> Said:
        """The turns that belong to a document as loaded. Raises StoreUnavailable."""
        return read_said(self._store, bucket, document, self._settings, datetime.now(UTC))

    def ledger(self, bucket: Bucket, document: Document) -> Ledger:
        """The ledger that belongs to a document as loaded. Raises StoreUnavailable."""
        return self._store.read_ledger(bucket, document)

    def forgotten(self, bucket: Bucket) -> Callable[[str], bool]:
        """Whether a message was forgotten, by its identity. Raises StoreUnavailable, DocumentDamaged."""
        grave = self._store.tombstones.find(bucket.user_id)
        return lambda identity: grave is not None and grave.holds(bucket, identity)

    @property
    def sessions(self) -> Sessions:
        """The sessions of the store."""
        return self._store.sessions

    def agents(self, user_id: str) -> list[str]:
        """The agents with a memory of this user."""
        return self._store.agents(user_id)

    def users(self) -> Iterator[str]:
        """The users with a memory, in no order."""
        return self._store.users()

    def load(self, bucket: Bucket) -> Loaded:
        """The document as it is; see `load_unrepaired`."""
        return load_unrepaired(self._store, bucket)

    def change(self, bucket: Bucket, step: Step[R], *, dry_run: bool = False) -> tuple[Document, R]:
        """Do one edit in one write. Returns the document before it, and the result.

        Raises Conflict when other writers were faster every time.
        """
        for _ in range(ROUNDS):
            loaded = self.load(bucket)
            now = datetime.now(UTC)
            result = step(loaded.document, now)
            if dry_run or not has_changed(loaded.document, result):
                return loaded.document, result
            said = result.said or self._ended(bucket, loaded.document, result.document, now)
            document = profiles.settled(result.document)
            try:
                self._store.commit(bucket, loaded, document, lambda: self._is_free(bucket), said=said)
            except Conflict:  # nothing was written: the edit is applied again to the newer document
                continue
            return loaded.document, result
        raise Conflict("E_CONFLICT: other writers were faster every time; nothing was changed, try again")

    def _ended(self, bucket: Bucket, before: Document, after: Document, now: datetime) -> SaidChange | None:
        """The marks on the turns that say what this edit has ended, as after a replacement."""
        changes = list(edited_facts(before, after))
        if not changes or not keeps_said(self._settings):
            return None
        said = self._store.read_said(bucket, before)
        marks = over_marks(said, changes, iso(now))
        return took_in(said_file_of(before), lambda: said, (), self._settings.said, now, marks)

    def _one(self, bucket: Bucket, step: Step[Edited], dry_run: bool) -> Change:
        before, edited = self.change(bucket, step, dry_run=dry_run)
        old, new = (with_id(all_facts(document), edited.fact_id) for document in (before, edited.document))
        return Change(edited.fact_id, has_changed(before, edited), old, new)

    def _is_free(self, bucket: Bucket) -> bool:
        """Called under the lock: an edit during an unfinished forgetting would be erased with the rest."""
        grave = self._store.tombstones.find(bucket.user_id)
        if grave is not None and grave.open:
            raise Rejected("E_FORGETTING", "this user is being forgotten; a worker has to finish that first", "user_id")
        return True


def load_unrepaired(store: Store, bucket: Bucket) -> Loaded:
    """A document as it is. A damaged one raises DocumentDamaged and stays in place, for its editor to repair."""
    store.inspect(bucket)
    return store.load(bucket)


def has_changed(before: Document, result: Result) -> bool:
    """Whether an edit changed anything."""
    return revision_of(result.document) != revision_of(before)
