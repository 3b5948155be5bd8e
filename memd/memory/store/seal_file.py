"""The seal of a data folder: the file `store.sealed`. Every write looks for it under the locks that it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from memd.disk import files
from memd.disk.lock import locked
from memd.errors import StoreSealed, StoreUnavailable
from memd.memory.store import paths
from memd.memory.store.moving import Seal

SEALED = (
    "E_STORE_SEALED: this store takes no writes while it is copied to another one or restored (`memd store copy`, "
    "`memd restore`), and none after a switch; contexts wait in the inbox"
)


def refuse_sealed(data_dir: Path) -> None:
    """Raise StoreSealed for a sealed folder. The caller holds the locks of what it is about to write."""
    if files.mark(data_dir / paths.SEAL) is not None:
        raise StoreSealed(SEALED)


def read_seal(data_dir: Path) -> Seal | None:
    """The seal of a folder. Raises StoreUnavailable, also for a file that is none: only a person knows what to do."""
    data = files.read(data_dir / paths.SEAL)
    if data is None:
        return None
    try:
        fields: dict[str, Any] = orjson.loads(data)
        return Seal(fields["role"], fields["other"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise StoreUnavailable("E_STORE_SEAL: store.sealed is not what memd writes; copy anew, or remove it") from None


def write_seal(data_dir: Path, seal: Seal | None) -> None:
    """Seal a folder, or take the seal off, durably; then wait for every write that may not have seen it."""
    file = data_dir / paths.SEAL
    with locked(paths.id_lock(data_dir)):
        if seal is None:
            try:
                file.unlink(missing_ok=True)
                files.sync_folder(data_dir)
            except OSError as error:
                raise files.unavailable(error) from None
            return
        files.replace(file, orjson.dumps(seal._asdict(), option=orjson.OPT_APPEND_NEWLINE), file.with_suffix(".tmp"))
    for lock in (paths.tombstone_lock(data_dir / paths.FORGOTTEN), *paths.every_lock(data_dir)):
        with locked(lock):
            pass
