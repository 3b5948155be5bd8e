"""Erasing: a user's folder, or one document's files in it, taken away in one step under the locks of its buckets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson

from memd.errors import DocumentDamaged, StoreUnavailable
from memd.memory.store import files
from memd.memory.store.lock import locked
from memd.memory.store.protocol import Erased

AGENTS = "agents"


def look(folder: Path, *, whole: bool) -> Erased:
    """What stands in a bucket's folder; with `whole` also in those below it. Raises StoreUnavailable."""
    found = list(_files(folder, whole=whole))
    identities: set[str] = set()
    for file in found:
        identities |= _ledger(file)
    documents = sum(file.name == "memory.json" for file in found)
    return Erased(documents, len(found), frozenset(identities))


def erase(folder: Path, trash: Path, lock_files: Iterable[Path], *, whole: bool) -> Erased:
    """Remove it, so that no writer and no crash in between leaves a part: it is renamed away first.

    `trash`: a name on the same file system that does not exist. Raises StoreUnavailable.
    """
    with ExitStack() as locks:
        for lock_file in sorted(set(lock_files)):  # one order for all who hold more than one
            locks.enter_context(locked(lock_file))
        erased = look(folder, whole=whole)
        try:
            files.make_folder(trash)
            if whole:
                if folder.exists():
                    folder.rename(trash / "all")
            else:
                for number, file in enumerate(_files(folder, whole=False)):
                    file.rename(trash / str(number))
            if folder.parent.exists():
                files.sync_folder(folder.parent)
        except OSError as error:
            raise files.unavailable(error) from None
        shutil.rmtree(trash, ignore_errors=True)  # a worker that starts now sweeps the same folder
        if trash.exists():
            raise StoreUnavailable("E_STORE_ERASE: what was taken out of reach cannot be removed from the disk")
    return erased


def _files(folder: Path, *, whole: bool) -> Iterator[Path]:
    """The files of a bucket, links and other odd things included; not those of the agents below, unless `whole`."""
    try:
        for place, folders, names in os.walk(folder):
            if not whole:
                folders.clear()
            yield from (Path(place) / name for name in sorted(names))
    except OSError as error:
        raise files.unavailable(error) from None


def _ledger(file: Path) -> set[str]:
    """The identities in a document or an old version of one; none in what cannot be read."""
    if not file.name.startswith("memory."):
        return set()
    try:
        ledger = orjson.loads(files.read(file, sibling=file) or b"{}").get("ledger")
        return {one for thread in ledger.values() for one in thread if isinstance(one, str)}
    except (DocumentDamaged, orjson.JSONDecodeError, AttributeError, TypeError):
        return set()
