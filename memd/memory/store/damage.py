"""Damaged documents: renamed with the time, and replaced by the last good version."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from memd.disk import files
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.memory.store import paths

Check = Callable[[bytes], object]
"""Raises DocumentDamaged when the bytes are not a good version."""


def mend(file: Path, check: Check) -> bool:
    """Rename a damaged file of any kind to `memory.json.corrupt-<time>`; whether the previous one replaced it.

    The caller holds the lock. Raises StoreUnavailable.
    """
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    aside = file.with_name(f"{paths.ASIDE}{moment}")
    good = _previous(file, check)
    try:
        if good is None:
            file.rename(aside)
            files.sync_folder(file.parent)
        else:
            _exchange(file, good, aside)
    except OSError as error:
        raise files.unavailable(error) from None
    return good is not None


def _previous(file: Path, check: Check) -> bytes | None:
    try:
        data = files.read(file.with_name(paths.PREVIOUS), sibling=file)
        if data is not None:
            check(data)
    except DocumentDamaged:  # damaged as well; it stays until the next commit replaces it
        return None
    return data


def _exchange(file: Path, good: bytes, aside: Path) -> None:
    """Put the good version in place in one step, so that a crash never leaves the bucket empty."""
    try:
        os.link(file, aside, follow_symlinks=False)
    except OSError:  # a folder, or a file system without links: for a moment there is no document
        file.rename(aside)
    try:
        files.replace(file, good, file.with_name(paths.TEMP))
    except StoreUnavailable:
        if not os.path.lexists(file):  # a bucket without a document would count as new
            aside.rename(file)
        elif os.path.samestat(file.lstat(), aside.lstat()):  # still in place, so it needs no second name
            aside.unlink()
        raise
