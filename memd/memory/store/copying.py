"""Copying what one store holds into another one, piece by piece, and comparing the two.

A pass makes the target what the source is: it writes what differs, and removes what the source does not have. It may be
killed and begun again, and repeated while memd runs. Tombstones go first, so that nothing is ever in the target whose
forgetting is not, and last, as one may have grown meanwhile. Only a pass over a sealed source copies one moment.

The target is sealed from the first pass on, so that nobody works with a part of a store; and what is sealed for
another copy, or holds anything that no copy has brought, is never written over.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from memd.context import Bucket, Key, user_hash
from memd.errors import ConfigError, DocumentDamaged
from memd.memory.store.moving import MovableStore, MovedSession, Seal
from memd.memory.store.protocol import Store, Tombstone

Kind = Literal["memory", "project", "session", "tombstone"]
KINDS: tuple[Kind, ...] = ("memory", "project", "session", "tombstone")

Progress = Callable[[int, int], None]
"""Called with the number of pieces that are done, and of all."""


class Piece(NamedTuple):
    """What is copied in one step: the document of a bucket, a session of it, or the tombstone of a user (a hash)."""

    kind: Kind
    bucket: Bucket | None = None
    thread_id: str = ""
    owner: str = ""


@dataclass
class Moved:
    """What a pass, or a comparison, has found. The counts are by kind."""

    seen: Counter[str] = field(default_factory=Counter)
    """Pieces of the source."""

    copied: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    """Pieces that only the target had."""

    differing: list[Piece] = field(default_factory=list)
    grown: set[str] = field(default_factory=set)
    """The owners whose tombstones were written at the end of the pass: they changed while it ran."""

    unreadable: list[tuple[Piece, str]] = field(default_factory=list)
    """Pieces of the source that nobody can read, with the code of their damage: they are in no copy."""


class StoreCopy:
    """A copy of one store into another one. Every method raises StoreUnavailable."""

    def __init__(self, source: Store, target: Store) -> None:
        """Raises ConfigError for stores that cannot be moved, and for one and the same."""
        self.source, self.target = _end(source), _end(target)
        self.ids = (source.make_id(), target.make_id())
        if self.ids[0] == self.ids[1]:
            raise ConfigError("E_STORE_SAME: both ends of the copy are the same store, or copies of its files")

    def prepare(self, *, into_any: bool = False) -> None:
        """Seal the target for this copy. Raises ConfigError for one that is not empty, or sealed for another copy.

        `into_any`: also one that is not empty; what the source does not have is removed from it.
        """
        (source, target), (source_id, target_id) = (self.source.moving, self.target.moving), self.ids
        if (seal := source.seal()) is not None and seal.role == "target":
            raise ConfigError("E_STORE_UNFINISHED: the store to copy from is itself the target of an unfinished copy")
        if seal is not None and seal.other != target_id:
            raise ConfigError("E_STORE_SEALED: the store to copy from is sealed for a copy into another store")
        held = target.seal()
        if held is None and not into_any and not _is_empty(self.target):
            raise ConfigError(
                "E_STORE_NOT_EMPTY: the store to copy into holds memories or tombstones that no copy has brought, and "
                "they would be lost; copy into an empty one"
            )
        if held is not None and held.other != source_id:
            raise ConfigError("E_STORE_SEALED: the store to copy into is sealed for another copy")
        if held != (wanted := Seal("target", source_id)):
            target.set_seal(wanted)

    def run(self, progress: Progress, of: Collection[str] | None = None) -> Moved:
        """One pass; `of`: only over what these users (hashes) have, and over projects, which they may have left."""
        found = Moved()
        self._tombstones(found)
        buckets = [bucket for bucket in self.source.moving.buckets() if _is_of(bucket, of)]
        for number, bucket in enumerate(buckets):
            progress(number, len(buckets))
            self._memory(bucket, found)
            self._sessions(bucket, found)
        own = set(buckets)
        for bucket in list(self.target.moving.buckets()):
            if bucket not in own and _is_of(bucket, of):
                self._memory(bucket, found)
                self._sessions(bucket, found)
        found.grown = self._tombstones(found)
        progress(len(buckets), len(buckets))
        return found

    def compare(self, progress: Progress) -> Moved:
        """Compare every document with its ledger, old version and said layer, every session, every tombstone."""
        found = Moved()
        buckets = list(dict.fromkeys([*self.source.moving.buckets(), *self.target.moving.buckets()]))
        for number, bucket in enumerate(buckets):
            progress(number, len(buckets))
            piece = Piece(_kind(bucket), bucket)
            with _Reading(found, piece):
                ours, theirs = (end.moving.memory(bucket) for end in (self.source, self.target))
                if ours is not None or theirs is not None:
                    found.seen[piece.kind] += ours is not None
                    if ours is None or ours.differs(theirs):
                        found.differing.append(piece)
            for key in self._keys(bucket):
                piece = Piece("session", bucket, key.thread_id)
                with _Reading(found, piece):
                    session = self.source.moving.session(key)
                    found.seen["session"] += session is not None
                    if session != self.target.moving.session(key):
                        found.differing.append(piece)
        for owner in self._owners():
            piece = Piece("tombstone", owner=owner)
            with _Reading(found, piece):
                tombstone = tombstone_of(self.source, owner)
                found.seen["tombstone"] += tombstone is not None
                if tombstone != tombstone_of(self.target, owner):
                    found.differing.append(piece)
        progress(len(buckets), len(buckets))
        return found

    def _memory(self, bucket: Bucket, found: Moved) -> None:
        piece = Piece(_kind(bucket), bucket)
        with _Reading(found, piece):
            memory = self.source.moving.memory(bucket)
            try:
                present = self.target.moving.memory(bucket)
            except DocumentDamaged:  # of an older copy; it is written again
                present = None
            found.seen[piece.kind] += memory is not None
            if memory is None:
                self.target.moving.put_memory(bucket, None)
                if present is not None:
                    self.target.moving.put_notes(bucket, {})
                    found.removed[piece.kind] += 1
                return
            if memory.differs(present):
                self.target.moving.put_memory(bucket, memory)
                found.copied[piece.kind] += 1
            self._notes(bucket)

    def _notes(self, bucket: Bucket) -> None:
        """Copy the reading notes, which are a hint and are compared nowhere."""
        now = time.time()
        notes, present = (end.reading_notes.read(bucket, now).by_fact for end in (self.source, self.target))
        if dict(notes) != dict(present):
            self.target.moving.put_notes(bucket, dict(notes))

    def _sessions(self, bucket: Bucket, found: Moved) -> None:
        for key in self._keys(bucket):
            with _Reading(found, Piece("session", bucket, key.thread_id)):
                session, present = self.source.moving.session(key), self._present(key)
                found.seen["session"] += session is not None
                if session != present:
                    self.target.moving.put_session(key, session)
                    (found.copied if session is not None else found.removed)["session"] += 1

    def _present(self, key: Key) -> MovedSession | None:
        try:
            return self.target.moving.session(key)
        except DocumentDamaged:
            return MovedSession(None, b"", (), -1)  # differs from every other

    def _keys(self, bucket: Bucket) -> Iterator[Key]:
        """The keys that have a session at either end. Projects and shared memories have none."""
        if bucket.user_id:
            threads = (thread for end in (self.source, self.target) for thread in end.moving.threads(bucket))
            yield from (Key(thread, bucket.user_id, bucket.agent_name) for thread in dict.fromkeys(threads))

    def _tombstones(self, found: Moved) -> set[str]:
        """Copy the tombstones that differ; returns whose these are."""
        differing = set[str]()
        for owner in self._owners():
            with _Reading(found, Piece("tombstone", owner=owner)):
                tombstone = tombstone_of(self.source, owner)
                if tombstone != tombstone_of(self.target, owner):
                    self.target.moving.put_tombstone(owner, tombstone)
                    (found.copied if tombstone is not None else found.removed)["tombstone"] += 1
                    differing.add(owner)
        return differing

    def _owners(self) -> list[str]:
        return list(dict.fromkeys(owner for end in (self.source, self.target) for owner in owners_of(end)))


class _Reading:
    """Notes a piece that cannot be read; everything else passes."""

    def __init__(self, found: Moved, piece: Piece) -> None:
        self._found, self._piece = found, piece

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if not isinstance(error, DocumentDamaged):
            return False
        if not any(piece == self._piece for piece, _ in self._found.unreadable):
            self._found.unreadable.append((self._piece, str(error).partition(":")[0]))
        return True


class _End(Store, MovableStore, Protocol):
    """A store that can be moved."""


def _end(store: Store) -> _End:
    if not isinstance(store, MovableStore):
        raise ConfigError("E_STORE_FIXED: the class of this store cannot copy what it holds")
    return store


def _is_of(bucket: Bucket, owners: Collection[str] | None) -> bool:
    return owners is None or bool(bucket.project_id) or bucket.owner in owners


def _kind(bucket: Bucket) -> Kind:
    return "project" if bucket.project_id else "memory"


def owners_of(store: Store) -> list[str]:
    """The hashes of all users with a tombstone, or with a wish alone: who was killed at the start of a forgetting."""
    wishing = (user_hash(wish.user_id) for wish in store.tombstones.unfinished())
    return list(dict.fromkeys([*store.tombstones.owners(), *wishing]))


def tombstone_of(store: Store, owner: str) -> Tombstone | None:
    """The tombstone of a user, given their hash; None where nothing was ever forgotten, and nobody wishes it."""
    found = store.tombstones.of(owner)
    if found is None or found.generation:
        return found
    # Of a wish alone the salt is made anew by each read.
    return Tombstone(owner, 0, "", frozenset(), found.open, found.emptied, found.erased) if found.open else None


def _is_empty(store: _End) -> bool:
    return not owners_of(store) and next(iter(store.moving.buckets()), None) is None
