"""The names of tombstone files: keyed hashes of their owners, so that a listing says of nobody that they were here.

Older versions used the plain hash, and a store that lost its key has names of the lost one. Both are renamed, by the
owner that the name or the content says; two tombstones of one owner become one that holds what either held.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path

from memd.context import user_hash
from memd.disk import files
from memd.disk.lock import locked
from memd.errors import DocumentDamaged
from memd.memory.store import paths
from memd.memory.store import tombstone_format as form
from memd.memory.store.protocol import Tombstone
from memd.memory.store.secret import StoreKey, keyed
from memd.memory.store.uniting import united

_PLAIN = re.compile("[0-9a-f]{32}")
_SUFFIXES = (".json", ".open")

NONE = Tombstone("", 0, "", frozenset())
"""Nothing forgotten yet, to read open wishes into."""


def store_key(data_dir: Path) -> StoreKey:
    """The key of a data folder. A new one renames its tombstones."""
    return StoreKey(data_dir, partial(rename_all, data_dir / paths.FORGOTTEN))


def name(key: bytes, owner: str) -> str:
    """The name, without a suffix, of the files of the owner with this hash (`user_hash`)."""
    return keyed(key, "tombstone", owner)


def owner_of(file: Path) -> str:
    """The hash of the user whose tombstone this is. Raises DocumentDamaged."""
    if _PLAIN.fullmatch(file.stem):
        return file.stem
    data = files.read(file)
    if data is None:
        raise DocumentDamaged(form.DAMAGED)
    if file.suffix == ".json":
        return form.parsed(data).owner
    wishes = form.with_open(NONE, data).open
    if not wishes:
        raise DocumentDamaged(form.DAMAGED)
    return user_hash(wishes[0].user_id)


def rename_all(folder: Path, key: bytes) -> None:
    """Give every file the name of this key. Raises StoreUnavailable, DocumentDamaged: then nothing is lost."""
    if not folder.is_dir():
        return
    with locked(paths.tombstone_lock(folder)):
        for suffix in _SUFFIXES:
            for file in sorted(folder.glob(f"*{suffix}")):
                move(file, file.with_name(name(key, owner_of(file)) + suffix))


def rename_plain(folder: Path, key: bytes, owner: str) -> None:
    """Rename the files that an older version named, if there are any. The caller holds the lock."""
    for suffix in _SUFFIXES:
        move(folder / f"{owner}{suffix}", folder / f"{name(key, owner)}{suffix}")


def move(old: Path, new: Path) -> None:
    """Rename a file, or unite it with the one that has the new name already. The caller holds the lock."""
    try:
        if old == new or not old.exists():
            return
        if not new.exists():
            old.rename(new)
        else:
            (_unite_tombstones if old.suffix == ".json" else _unite_wishes)(old, new)
            old.unlink()
        files.sync_folder(old.parent)
    except OSError as error:
        raise files.unavailable(error) from None


def _unite_tombstones(old: Path, new: Path) -> None:
    """The hashes of the old one keep their salt. United twice, after a crash, the result is the same."""
    before, present = form.parsed(files.read(old) or b""), form.parsed(files.read(new) or b"")
    both = united(present, before)
    if both is not present:
        form.write(new, both)


def _unite_wishes(old: Path, new: Path) -> None:
    """A part of a wish is done only where each wish about the same says so: the younger may be a second forgetting."""
    parts = [form.with_open(NONE, files.read(file)) for file in (old, new)]
    wishes = tuple(dict.fromkeys(wish for part in parts for wish in part.open))
    unemptied = [wish for part in parts for wish in part.open if wish not in part.emptied]
    unerased = [wish for part in parts for wish in part.open if wish not in part.erased]
    emptied = frozenset(wish for wish in wishes if not any(map(wish.is_about, unemptied)))
    erased = frozenset(wish for wish in wishes if not any(map(wish.is_about, unerased)))
    form.write_open(new, replace(NONE, open=wishes, emptied=emptied, erased=erased))
