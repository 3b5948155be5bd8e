"""One document's file: its bytes, their hash, and its durable replacement, with or without the older copies."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import orjson

from memd.disk import files
from memd.errors import DocumentDamaged
from memd.memory.document import Document, tombstones_of
from memd.memory.store import paths


def serialised(document: Document) -> bytes:
    """The bytes of a document. Raises DocumentDamaged for a document that JSON cannot express."""
    try:
        return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        # Only a file edited by hand can be nested deeper than the 254 levels that orjson writes.
        raise DocumentDamaged("E_DOCUMENT_UNWRITABLE: a memory document holds what JSON cannot express") from None


def hash_of(data: bytes) -> str:
    """The hash by which a commit knows the version it has loaded."""
    return hashlib.sha256(data).hexdigest()


def hash_on_disk(file: Path) -> str | None:
    """The hash of the present file; for a damaged one a text that equals no hash."""
    try:
        data = files.read(file, sibling=file.with_name(paths.PREVIOUS))
    except DocumentDamaged:  # the next load sets it aside
        return "damaged"
    return None if data is None else hash_of(data)


def replace(file: Path, before: Document, after: Document, data: bytes) -> None:
    """Write the bytes of `after` durably; the old version is kept, unless facts of it were removed."""
    if removes(before, after):
        _replace_all(file, data)
    else:
        files.replace(file, data, file.with_name(paths.TEMP), file.with_name(paths.PREVIOUS))


def removes(before: Document, after: Document) -> bool:
    """Whether facts were removed, so that no copy of them may stay."""
    known = tombstones_of(before)
    return any(tombstone not in known for tombstone in tombstones_of(after))


def _replace_all(file: Path, data: bytes) -> None:
    """Replace the file and every older copy of it.

    The document goes last: killed or refused before, it is the old one, and the previous version may be the new one.
    Once the removal is acknowledged, no copy has the removed facts.
    """
    files.replace(file.with_name(paths.PREVIOUS), data, file.with_name(paths.TEMP))
    try:
        for aside in file.parent.glob(f"{paths.ASIDE}*"):
            shutil.rmtree(aside) if aside.is_dir() and not aside.is_symlink() else aside.unlink()
    except OSError as error:
        raise files.unavailable(error) from None
    files.replace(file, data, file.with_name(paths.TEMP))
