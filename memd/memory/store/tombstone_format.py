"""The two files of a tombstone: the forgotten hashes (`.json`), and the open wishes (`.open`)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from memd.errors import DocumentDamaged
from memd.memory.store import files
from memd.memory.store.protocol import Salted, Tombstone, Wish

VERSION = 1

DAMAGED = "E_TOMBSTONE: a tombstone cannot be read; restore it from a backup, or remove it by hand"


def write(file: Path, tombstone: Tombstone) -> None:
    """Write the hashes, durably. The caller holds the lock."""
    fields: dict[str, Any] = {
        "version": VERSION,
        "owner": tombstone.owner,
        "generation": tombstone.generation,
        "salt": tombstone.salt,
        "hashes": sorted(tombstone.hashes),
    }
    if tombstone.older:
        fields["older"] = [[salt, sorted(hashes)] for salt, hashes in tombstone.older]
    _replace(file, fields)


def write_open(file: Path, wishes: Iterable[Wish], emptied: Iterable[Wish]) -> None:
    """Write the open wishes, durably. The caller holds the lock."""
    _replace(file, {"open": list(map(_fields, wishes)), "emptied": list(map(_fields, emptied))})


def parsed(data: bytes, wishes: tuple[Wish, ...] = ()) -> Tombstone:
    """The tombstone in these bytes. Raises DocumentDamaged."""
    try:
        fields: dict[str, Any] = orjson.loads(data)
        if fields["version"] != VERSION:
            raise DocumentDamaged("E_TOMBSTONE_VERSION: a tombstone was written by a newer version; upgrade memd")
        hashes = frozenset(map(str, fields["hashes"]))
        older = tuple(Salted(str(salt), frozenset(map(str, those))) for salt, those in fields.get("older", ()))
        generation = int(fields["generation"])
        return Tombstone(str(fields["owner"]), generation, str(fields["salt"]), hashes, wishes, older=older)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise DocumentDamaged(DAMAGED) from None


def wishes_in(data: bytes | None, field: str = "open") -> tuple[Wish, ...]:
    """The wishes in a field; older versions do not write `emptied`. Raises DocumentDamaged."""
    try:
        fields = {"emptied": [], **orjson.loads(data)} if data else {field: []}
        return tuple(Wish(user, agent) for user, agent in fields[field])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        raise DocumentDamaged(DAMAGED) from None


def _fields(wish: Wish) -> list[str | None]:
    return [wish.user_id, wish.agent_name]


def _replace(file: Path, fields: dict[str, Any]) -> None:
    files.replace(file, orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE), file.with_suffix(".tmp"))
