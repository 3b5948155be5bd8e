"""Tombstones: what a user had forgotten must not come back, and nobody may learn from the tombstone what it was.

`<data>/forgotten/<owner>.json` holds salted hashes of the identities that were removed; it outlives the documents, the
inbox and the server. `<owner>.open` stands beside it while a forgetting is not finished, and says what is to be done.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from memd.context import Bucket, is_single, loose, user_hash
from memd.errors import DocumentDamaged
from memd.memory.store import files
from memd.memory.store.lock import locked

VERSION = 1
FOLDER = "forgotten"
MAX_KEPT = 100
"""Tombstones kept in memory; few users have one."""

DAMAGED = "E_TOMBSTONE: a tombstone cannot be read; restore it from a backup, or remove it by hand"


@dataclass(frozen=True, slots=True)
class Wish:
    """A forgetting: of one agent's memory of a user, or of all that is known of them (None)."""

    user_id: str
    agent_name: str | None = None

    @property
    def bucket(self) -> Bucket | None:
        """The one bucket that is meant; None for all."""
        return None if self.agent_name is None else Bucket(self.user_id, self.agent_name)


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What was forgotten of one user. `generation` grows with each change; `open`: what is still to be done."""

    owner: str
    generation: int
    salt: str
    hashes: frozenset[str]
    open: tuple[Wish, ...] = ()

    def holds(self, bucket: Bucket, identity: str) -> bool:
        """Whether this message of the user was forgotten, for this bucket or for all."""
        names = (identity, loose(identity)) if is_single(identity) else (identity,)
        return any(self._hash(scope, name) in self.hashes for scope in ("", bucket.hash) for name in names)

    def hashed(self, identities: Iterable[str], bucket: Bucket | None) -> set[str]:
        """What stands for these identities, of one bucket or of all of the user's (None)."""
        scope = bucket.hash if bucket else ""
        names = {name for one in identities for name in ((one, loose(one)) if one.startswith("n") else (one,))}
        return {self._hash(scope, name) for name in names}

    def _hash(self, scope: str, name: str) -> str:
        # SHA-1, as the server's functions know no other; without the salt there is nothing to compare a guess with.
        return hashlib.sha1(f"{self.salt}:{scope}:{name}".encode(), usedforsecurity=False).hexdigest()


class Tombstones:
    """The tombstones of a data folder. What is read is kept as long as its file is the same; writing is durable.

    Every method raises StoreUnavailable, and DocumentDamaged for a tombstone that cannot be read: it stops its user's
    contexts, it never lets them through.
    """

    def __init__(self, data_dir: Path) -> None:
        self._folder = data_dir / FOLDER
        self._kept: dict[str, tuple[object, Tombstone]] = {}

    def find(self, user_id: str) -> Tombstone | None:
        """The tombstone of a user; None when nothing was ever forgotten."""
        owner = user_hash(user_id)
        mark = (_mark(self._file(owner)), _mark(self._open_file(owner)))
        if mark[0] is None:
            return None
        kept = self._kept.get(owner)
        if kept and kept[0] == mark:
            return kept[1]
        found = self._read(owner)
        if found is not None:
            if len(self._kept) >= MAX_KEPT:
                self._kept.clear()
            self._kept[owner] = (mark, found)
        return found

    def generation(self, user_id: str) -> int:
        """How often the tombstone of a user has grown; 0 without one."""
        found = self.find(user_id)
        return found.generation if found else 0

    def begin(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Write down that this is to be forgotten, before anything is removed."""
        with locked(self._folder / "lock"):
            found = self._found(wish)
            wishes = tuple(dict.fromkeys([*found.open, wish]))
            self._write_open(found.owner, wishes)
            return self._write(replace(found, hashes=found.hashes | found.hashed(identities, wish.bucket), open=wishes))

    def extend(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Add what was found on the way."""
        with locked(self._folder / "lock"):
            found = self._found(wish)
            hashes = found.hashed(identities, wish.bucket)
            return found if hashes <= found.hashes else self._write(replace(found, hashes=found.hashes | hashes))

    def close(self, wish: Wish) -> None:
        """Nothing of this wish is left to do."""
        with locked(self._folder / "lock"):
            found = self._found(wish)
            self._write_open(found.owner, tuple(other for other in found.open if other != wish))

    def unfinished(self) -> list[Wish]:
        """The wishes that are still open."""
        owners = [file.stem for file in self._glob("*.open")]
        return [wish for owner in owners if (found := self._read(owner)) is not None for wish in found.open]

    def owners(self) -> list[str]:
        """The hashes of all users with a tombstone."""
        return [file.stem for file in self._glob("*.json")]

    def of(self, owner: str) -> Tombstone | None:
        """The tombstone of the user with this hash."""
        return self._read(owner)

    def _found(self, wish: Wish) -> Tombstone:
        owner = user_hash(wish.user_id)
        return self._read(owner) or Tombstone(owner, 0, os.urandom(16).hex(), frozenset())

    def _write(self, tombstone: Tombstone) -> Tombstone:
        grown = replace(tombstone, generation=tombstone.generation + 1)
        fields = {
            "version": VERSION,
            "owner": grown.owner,
            "generation": grown.generation,
            "salt": grown.salt,
            "hashes": sorted(grown.hashes),
        }
        _replace(self._file(grown.owner), fields)
        return grown

    def _write_open(self, owner: str, wishes: tuple[Wish, ...]) -> None:
        """What is open stands in a file of its own, so that a worker that starts need not read all tombstones."""
        file = self._open_file(owner)
        if wishes:
            _replace(file, {"open": [[wish.user_id, wish.agent_name] for wish in wishes]})
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
        return _parsed(data, _wishes(opened))


def _replace(file: Path, fields: dict[str, Any]) -> None:
    files.replace(file, orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE), file.with_suffix(".tmp"))


def _mark(file: Path) -> object:
    try:
        found = os.lstat(file)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise files.unavailable(error) from None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _wishes(data: bytes | None) -> tuple[Wish, ...]:
    try:
        return tuple(Wish(user, agent) for user, agent in orjson.loads(data)["open"]) if data else ()
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
