"""The store of a backup as the forgettings since then leave it: what a restore may bring back.

A wish that a tombstone lists and the backup's own does not was made after the backup. What it was about is as if it
were not in the backup; the words of a user who was forgotten as a whole leave the projects, too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from memd.config import StoreSettings
from memd.context import Bucket, Key, user_hash
from memd.memory.document import Document, archive_of, facts_of
from memd.memory.parsing import parse
from memd.memory.projects.leaving import without_user
from memd.memory.projects.members import members_of
from memd.memory.projects.proofs import speakers_of
from memd.memory.store.document_file import serialised
from memd.memory.store.json_store import JsonStore
from memd.memory.store.moving import MovedMemory, MovedSession, Seal
from memd.memory.store.moving_files import MovedFiles
from memd.memory.store.protocol import Tombstone, Wish, Wished
from memd.memory.store.reading_notes import ReadingNoteFiles
from memd.memory.store.tombstone import TombstoneFiles


class BackedUpStore(JsonStore):
    """The store of a backup, under these tombstones. Only `moving`, `tombstones` and `reading_notes` are to be used."""

    def __init__(self, data_dir: Path, settings: StoreSettings, united: Mapping[str, Tombstone], now: str) -> None:
        """`united`: by owner, what backup, store and inbox know together. `now`: when projects are left, for them."""
        super().__init__(data_dir, settings)
        self.united = united
        self.later = ForgottenSince(TombstoneFiles(data_dir), united)
        self.tombstones = _UnitedTombstones(data_dir, united)
        self.moving = _RemainingFiles(data_dir, self.tombstones, self.reading_notes, self.later, now)


class ForgottenSince:
    """What was forgotten since the backup."""

    def __init__(self, before: TombstoneFiles, united: Mapping[str, Tombstone]) -> None:
        self._wishes = {owner: _younger(before.of(owner), tombstone) for owner, tombstone in united.items()}

    def takes(self, bucket: Bucket) -> bool:
        """Whether the memory of a bucket was forgotten."""
        return any(wish.scope in ("", bucket.hash) for wish in self._wishes.get(user_hash(bucket.user_id), ()))

    def takes_all(self, user_id: str) -> bool:
        """Whether all of a user was forgotten."""
        return any(wish.scope == "" for wish in self._wishes.get(user_hash(user_id), ()))

    @property
    def users(self) -> int:
        """How many users were forgotten, or had a memory forgotten."""
        return sum(bool(wishes) for wishes in self._wishes.values())


def _younger(before: Tombstone | None, tombstone: Tombstone) -> frozenset[Wished]:
    return frozenset(tombstone.wished) - frozenset(before.wished if before else ())


class _UnitedTombstones(TombstoneFiles):
    def __init__(self, data_dir: Path, united: Mapping[str, Tombstone]) -> None:
        super().__init__(data_dir)
        self._united = united

    def owners(self) -> list[str]:
        return list(self._united)

    def of(self, owner: str) -> Tombstone | None:
        return self._united.get(owner)

    def unfinished(self) -> list[Wish]:
        return [wish for tombstone in self._united.values() for wish in tombstone.open]


class _RemainingFiles(MovedFiles):
    def __init__(
        self,
        data_dir: Path,
        tombstones: TombstoneFiles,
        reading_notes: ReadingNoteFiles,
        later: ForgottenSince,
        now: str,
    ) -> None:
        super().__init__(data_dir, tombstones, reading_notes)
        self._later = later
        self._now = now

    def buckets(self) -> Iterator[Bucket]:
        return (bucket for bucket in super().buckets() if not self._is_gone(bucket))

    def threads(self, bucket: Bucket) -> list[str]:
        return [] if self._is_gone(bucket) else super().threads(bucket)

    def memory(self, bucket: Bucket) -> MovedMemory | None:
        if self._is_gone(bucket):
            return None
        memory = super().memory(bucket)
        return self._without_forgotten(memory, bucket) if memory and bucket.project_id else memory

    def session(self, key: Key) -> MovedSession | None:
        return None if self._is_gone(key.bucket) else super().session(key)

    def seal(self) -> Seal | None:
        """A backup is always sealed; that it is a copy is no reason not to copy it."""
        return None

    def _is_gone(self, bucket: Bucket) -> bool:
        return not bucket.project_id and self._later.takes(bucket)

    def _without_forgotten(self, memory: MovedMemory, bucket: Bucket) -> MovedMemory:
        """A project without those who were forgotten. Then it has no version before, which has their words."""
        document = before = parse(memory.document, bucket)
        for user_id in sorted(_named(before)):
            if self._later.takes_all(user_id):
                document = without_user(document, user_id, self._now)
        return memory if document is before else memory._replace(document=serialised(document), previous=None)


def _named(document: Document) -> set[str]:
    """The users whom a project names."""
    speakers = (speakers_of(fact) for fact in (*facts_of(document), *archive_of(document)))
    return {str(one) for one in members_of(document)}.union(*speakers)
