"""Tombstones in files: forgotten messages must not come back, and the files must not reveal their content.

`<data>/forgotten/<name>.json` holds salted hashes of the identities that were removed; it outlives the documents, the
inbox and the server. While a forgetting is unfinished, `<name>.open` next to it lists the wishes to fulfil, with their
cuts and with what is done of them (`tombstone_format`). The name is a keyed hash (`tombstone_names`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from memd.context import user_hash
from memd.disk import files
from memd.disk.lock import locked
from memd.errors import DocumentDamaged
from memd.memory.store import paths, seal_file
from memd.memory.store import tombstone_format as form
from memd.memory.store import tombstone_names as names
from memd.memory.store.protocol import Tombstone, Wish

MAX_KEPT = 100
"""Tombstones kept in memory; few users have one."""


class TombstoneFiles:
    """The tombstones of a data folder (see `protocol.Tombstones`). A tombstone read is kept until its file changes.

    Writers hold `forgotten/lock`, as those of older versions do. A tombstone grows only under its owner's exclusive
    lock besides, which waits for running commits of that user.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / paths.FORGOTTEN
        self._lock = paths.tombstone_lock(self._folder)
        self._key = names.store_key(data_dir)
        self._kept: dict[str, tuple[object, Tombstone]] = {}
        self._owners: dict[Path, str] = {}
        """Owners by file, so that only the first listing reads the files."""

    def find(self, user_id: str) -> Tombstone | None:
        """The tombstone of a user; None when nothing was ever forgotten."""
        if files.mark(self._folder) is None:
            return None
        owner = user_hash(user_id)
        self._key.get()  # a new key renames all
        if files.mark(self._folder / f"{owner}.json") is not None:  # written by an older version since
            with self._writing(owner, although_sealed=True):
                pass
        grown = files.mark(self._file(owner))
        if grown is None:
            return None
        mark = (grown, files.mark(self._open_file(owner)))
        kept = self._kept.get(owner)
        if kept and kept[0] == mark:
            return kept[1]
        tombstone = self._read(owner)
        if tombstone is not None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[owner] = (mark, tombstone)
        return tombstone

    def generation(self, user_id: str) -> int:
        """How often the tombstone of a user has grown; 0 without one."""
        tombstone = self.find(user_id)
        return tombstone.generation if tombstone else 0

    def begin(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Write the wish down, then the identities, before anything is removed."""
        with self._writing(user_hash(wish.user_id)):
            before = self._present(wish)
            others = tuple(other for other in before.open if not other.is_about(wish))
            self._write_open(replace(before, open=(*others, wish)))
        return self._grow(wish, identities, begins=True)

    def extend(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Add identities found while forgetting."""
        return self._grow(wish, identities, begins=False)

    def note(self, wish: Wish, done: Literal["emptied", "erased"]) -> None:
        """A part of this open wish is done."""
        with self._writing(user_hash(wish.user_id)):
            before = self._present(wish)
            if wish in before.open and done == "emptied":
                self._write_open(replace(before, emptied=before.emptied | {wish}))
            elif wish in before.open:
                self._write_open(replace(before, erased=before.erased | {wish}))

    def close(self, wish: Wish) -> None:
        """The wish is fulfilled; a later one about the same stays open."""
        with self._writing(user_hash(wish.user_id)):
            before = self._present(wish)
            if wish in before.open:
                self._write_open(replace(before, open=tuple(other for other in before.open if other != wish)))

    def unfinished(self) -> list[Wish]:
        """The wishes of all users that are not yet fulfilled."""
        owners = dict.fromkeys(map(self._owner_of, self._glob("*.open")))
        return [wish for owner in owners if (tombstone := self._read(owner)) is not None for wish in tombstone.open]

    def owners(self) -> list[str]:
        """The hashes of all users with a tombstone that can be read. A damaged one stops its own user in `find`."""
        found = []
        for file in self._glob("*.json"):
            with suppress(DocumentDamaged):
                found.append(self._owner_of(file))
        return list(dict.fromkeys(found))

    def _owner_of(self, file: Path) -> str:
        """The owner of a file, which is renamed if its name is an older version's, or of another key."""
        owner = self._owners.get(file) or names.owner_of(file)
        right = self._named(owner, file.suffix)
        self._owners[right] = owner
        if file != right:
            with locked(self._lock):
                names.move(file, right)
        return owner

    def of(self, owner: str) -> Tombstone | None:
        """The tombstone of the user with this hash."""
        return self._read(owner)

    def put(self, owner: str, tombstone: Tombstone | None) -> None:
        """Make this the tombstone of an owner, also in a sealed store; None: nothing was forgotten."""
        whole = tombstone or Tombstone(owner, 0, "", frozenset())
        with locked(paths.owner_lock(self._data_dir, owner)), self._writing(owner, although_sealed=True):
            self._write_open(whole)
            if whole.generation:
                form.write(self._file(owner), whole)
            else:
                self._remove(self._file(owner))

    def _present(self, wish: Wish) -> Tombstone:
        owner = user_hash(wish.user_id)
        return self._read(owner) or Tombstone(owner, 0, os.urandom(16).hex(), frozenset())

    def _grow(self, wish: Wish, identities: Iterable[str], *, begins: bool) -> Tombstone:
        """Write the tombstone with these identities added, and the wish if it `begins`."""
        # The owner's lock first: while it is waited for, other users' tombstones can be written.
        owner = user_hash(wish.user_id)
        with locked(paths.owner_lock(self._data_dir, owner)), self._writing(owner):
            before = self._present(wish)
            grown = before.grown(wish, identities, begins=begins)
            if grown is before:
                return before
            form.write(self._file(grown.owner), grown)
            return grown

    @contextmanager
    def _writing(self, owner: str, *, although_sealed: bool = False) -> Iterator[None]:
        """Hold the lock of all tombstones, with the owner's files under their present name. Raises StoreSealed."""
        key = self._key.get()  # before the lock: a new key takes it to rename all
        with locked(self._lock):
            if not although_sealed:
                seal_file.refuse_sealed(self._data_dir)
            names.rename_plain(self._folder, key, owner)
            yield

    def _write_open(self, tombstone: Tombstone) -> None:
        """Open wishes have a file of their own, so that a worker that starts need not read all tombstones."""
        file = self._open_file(tombstone.owner)
        if tombstone.open:
            form.write_open(file, tombstone)
        else:
            self._remove(file)

    def _remove(self, file: Path) -> None:
        try:
            file.unlink(missing_ok=True)
            files.sync_folder(self._folder)
        except OSError as error:
            raise files.unavailable(error) from None

    def _file(self, owner: str) -> Path:
        return self._named(owner, ".json")

    def _open_file(self, owner: str) -> Path:
        return self._named(owner, ".open")

    def _named(self, owner: str, suffix: str) -> Path:
        return self._folder / f"{names.name(self._key.get(), owner)}{suffix}"

    def _glob(self, pattern: str) -> list[Path]:
        try:
            return sorted(self._folder.glob(pattern))
        except OSError as error:
            raise files.unavailable(error) from None

    def _read(self, owner: str) -> Tombstone | None:
        data, opened = files.read(self._file(owner)), files.read(self._open_file(owner))
        if data is None and opened is None:
            return None
        # Killed before the tombstone was written: nothing was removed yet.
        present = form.parsed(data) if data is not None else Tombstone(owner, 0, os.urandom(16).hex(), frozenset())
        return form.with_open(present, opened)
