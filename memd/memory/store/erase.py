"""Erasing: removes a user's folder, or one document's files in it, in one step under the locks of its buckets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

import orjson

from memd.disk import files
from memd.disk.lock import locked
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.memory.document import SAID_FILE
from memd.memory.said.turns import decode
from memd.memory.store import paths, session_files
from memd.memory.store.protocol import Erased


def look(folder: Path, *, whole: bool) -> Erased:
    """What a bucket's folder holds; with `whole` the folders below it as well. Raises StoreUnavailable."""
    present = list(_files(folder, whole=whole))
    identities: set[str] = set()
    for file in present:
        identities |= session_files.identities(file.parent) if file.name == session_files.FILE else _ledger(file)
    documents = sum(file.name == paths.FILE for file in present)
    return Erased(documents, len(present), frozenset(identities))


def erase(folder: Path, trash: Path, lock_files: Iterable[Path], *, whole: bool) -> Erased:
    """Remove it. It is renamed first, so that neither a writer nor a crash leaves a part of it.

    `trash`: a name on the same file system that does not exist. Raises StoreUnavailable.
    """
    with ExitStack() as locks:
        for lock_file in sorted(set(lock_files)):  # everybody who takes several locks takes them in this order
            locks.enter_context(locked(lock_file))
        erased = look(folder, whole=whole)
        try:
            files.make_folder(trash)
            if whole:
                if folder.exists():
                    folder.rename(trash / "all")
            else:
                for number, place in enumerate(sorted(folder.iterdir()) if folder.exists() else ()):
                    if place.name == paths.SESSIONS or not place.is_dir():
                        place.rename(trash / str(number))
            if folder.parent.exists():
                files.sync_folder(folder.parent)
        except OSError as error:
            raise files.unavailable(error) from None
        shutil.rmtree(trash, ignore_errors=True)  # a worker that is starting may sweep the same folder
        if trash.exists():
            raise StoreUnavailable("E_STORE_ERASE: the files are out of reach but cannot be removed from the disk")
    return erased


def _files(folder: Path, *, whole: bool) -> Iterator[Path]:
    """The files of a bucket, links and devices included; with `whole` those of the agents below it as well."""
    try:
        for place, folders, names in os.walk(folder):
            if not whole and Path(place) == folder:
                folders[:] = [name for name in folders if name == paths.SESSIONS]
            yield from (Path(place) / name for name in sorted(names))
    except OSError as error:
        raise files.unavailable(error) from None


def _ledger(file: Path) -> set[str]:
    """The identities in a ledger (of a document or an old version) or a said file; none when it cannot be read."""
    if SAID_FILE.fullmatch(file.name):
        return _said(file)
    if not file.name.startswith("memory."):
        return set()
    try:
        ledger = orjson.loads(files.read(file, sibling=file) or b"{}").get("ledger")
        return {name for thread in ledger.values() for name in thread if isinstance(name, str)}
    except (DocumentDamaged, orjson.JSONDecodeError, AttributeError, TypeError):
        return set()


def _said(file: Path) -> set[str]:
    try:
        return {turn.id for turn in decode(files.read(file) or b"").turns}
    except DocumentDamaged:
        return set()
