"""Tombstones in files: what a user had forgotten must not come back, and nobody may learn from them what it was.

`<data>/forgotten/<owner>.json` holds salted hashes of the identities that were removed; it outlives the documents, the
inbox and the server. While a forgetting is unfinished, `<owner>.open` next to it lists the wishes to fulfil.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from memd.context import user_hash
from memd.errors import DocumentDamaged
from memd.memory.store import files, paths
from memd.memory.store.lock import locked
from memd.memory.store.protocol import Tombstone, Wish

VERSION = 1
MAX_KEPT = 100
"""Tombstones kept in memory; few users have one."""

DAMAGED = "E_TOMBSTONE: a tombstone cannot be read; restore it from a backup, or remove it by hand"


class TombstoneFiles:
    """The tombstones of a data folder (see `protocol.Tombstones`). A tombstone read is kept until its file changes.

    Writers hold `forgotten/lock`, as those of older versions do. A tombstone grows only under its owner's exclusive
    lock besides, which waits for running commits of that user.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._folder = data_dir / paths.FORGOTTEN
        self._lock = self._folder / "lock"
        self._kept: dict[str, tuple[object, Tombstone]] = {}

    def find(self, user_id: str) -> Tombstone | None:
        """The tombstone of a user; None when nothing was ever forgotten."""
        owner = user_hash(user_id)
        grown = _mark(self._file(owner))
        if grown is None:
            return None
        mark = (grown, _mark(self._open_file(owner)))
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
        with locked(self._lock):
            before = self._present(wish)
            self._write_open(
                before.owner, (*(other for other in before.open if other != wish), wish), before.emptied - {wish}
            )
        return self._grow(wish, identities, always=True)

    def extend(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Add identities found while forgetting."""
        return self._grow(wish, identities, always=False)

    def note_emptied(self, wish: Wish) -> None:
        """The inbox has fulfilled this open wish; the documents have not yet."""
        with locked(self._lock):
            before = self._present(wish)
            if wish in before.open:
                self._write_open(before.owner, before.open, before.emptied | {wish})

    def close(self, wish: Wish) -> None:
        """The wish is fulfilled."""
        with locked(self._lock):
            before = self._present(wish)
            self._write_open(before.owner, tuple(other for other in before.open if other != wish), before.emptied)

    def unfinished(self) -> list[Wish]:
        """The wishes of all users that are not yet fulfilled."""
        owners = [file.stem for file in self._glob("*.open")]
        return [wish for owner in owners if (tombstone := self._read(owner)) is not None for wish in tombstone.open]

    def owners(self) -> list[str]:
        """The hashes of all users with a tombstone."""
        return [file.stem for file in self._glob("*.json")]

    def of(self, owner: str) -> Tombstone | None:
        """The tombstone of the user with this hash."""
        return self._read(owner)

    def _present(self, wish: Wish) -> Tombstone:
        owner = user_hash(wish.user_id)
        return self._read(owner) or Tombstone(owner, 0, os.urandom(16).hex(), frozenset())

    def _grow(self, wish: Wish, identities: Iterable[str], *, always: bool) -> Tombstone:
        """Write the tombstone with these identities added; `always`: also when it has them already."""
        # The owner's lock first: while it is waited for, other users' tombstones can be written.
        with locked(paths.owner_lock(self._data_dir, user_hash(wish.user_id))), locked(self._lock):
            before = self._present(wish)
            hashes = before.hashes | before.hashed(identities, wish.bucket)
            if hashes == before.hashes and not always:
                return before
            grown = replace(before, hashes=hashes, generation=before.generation + 1)
            fields = {
                "version": VERSION,
                "owner": grown.owner,
                "generation": grown.generation,
                "salt": grown.salt,
                "hashes": sorted(grown.hashes),
            }
            _replace(self._file(grown.owner), fields)
            return grown

    def _write_open(self, owner: str, wishes: tuple[Wish, ...], emptied: Set[Wish]) -> None:
        """Open wishes have a file of their own, so that a worker that starts need not read all tombstones."""
        file = self._open_file(owner)
        if wishes:
            done = [wish for wish in wishes if wish in emptied]
            _replace(file, {"open": list(map(_fields, wishes)), "emptied": list(map(_fields, done))})
            return
        try:
            file.unlink(missing_ok=True)
            files.sync_folder(self._folder)
        except OSError as error:
            raise files.unavailable(error) from None

    def _file(self, owner: str) -> Path:
        return self._folder / f"{owner}.json"

    def _open_file(self, owner: str) -> Path:
        return self._folder / f"{owner}.open"

    def _glob(self, pattern: str) -> list[Path]:
        try:
            return sorted(self._folder.glob(pattern))
        except OSError as error:
            raise files.unavailable(error) from None

    def _read(self, owner: str) -> Tombstone | None:
        data, opened = files.read(self._file(owner)), files.read(self._open_file(owner))
        if data is None:  # killed before the tombstone was written: nothing was removed yet
            return None if opened is None else Tombstone(owner, 0, os.urandom(16).hex(), frozenset(), _wishes(opened))
        return replace(_parsed(data, _wishes(opened)), emptied=frozenset(_wishes(opened, "emptied")))


def _replace(file: Path, fields: dict[str, Any]) -> None:
    files.replace(file, orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE), file.with_suffix(".tmp"))


def _mark(file: Path) -> object:
    try:
        present = os.lstat(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.unavailable(error) from None
    return present.st_ino, present.st_mtime_ns, present.st_size


def _fields(wish: Wish) -> list[str | None]:
    return [wish.user_id, wish.agent_name]


def _wishes(data: bytes | None, field: str = "open") -> tuple[Wish, ...]:
    """The wishes in a field; older versions do not write `emptied`."""
    try:
        fields = {"emptied": [], **orjson.loads(data)} if data else {field: []}
        return tuple(Wish(user, agent) for user, agent in fields[field])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise DocumentDamaged(DAMAGED) from None


def _parsed(data: bytes, wishes: tuple[Wish, ...]) -> Tombstone:
    try:
        fields: dict[str, Any] = orjson.loads(data)
        if fields["version"] != VERSION:
            raise DocumentDamaged("E_TOMBSTONE_VERSION: a tombstone was written by a newer version; upgrade memd")
        hashes = frozenset(map(str, fields["hashes"]))
        return Tombstone(str(fields["owner"]), int(fields["generation"]), str(fields["salt"]), hashes, wishes)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise DocumentDamaged(DAMAGED) from None
