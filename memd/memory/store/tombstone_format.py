"""The two texts of a tombstone: the forgotten hashes (a file `.json`), and the open wishes (`.open`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from memd.disk import files
from memd.errors import DocumentDamaged
from memd.memory.store.protocol import Cut, Salted, Tombstone, Wish, Wished

VERSION = 1

DAMAGED = "E_TOMBSTONE: a tombstone cannot be read; restore it from a backup, or remove it by hand"


def write(file: Path, tombstone: Tombstone) -> None:
    """Write the hashes, durably. The caller holds the lock."""
    files.replace(file, hashes_of(tombstone), file.with_suffix(".tmp"))


def write_open(file: Path, tombstone: Tombstone) -> None:
    """Write the open wishes with their cuts and what is done of them, durably. The caller holds the lock."""
    files.replace(file, wishes_of(tombstone), file.with_suffix(".tmp"))


def hashes_of(tombstone: Tombstone) -> bytes:
    """The bytes of the hashes."""
    fields: dict[str, Any] = {
        "version": VERSION,
        "owner": tombstone.owner,
        "generation": tombstone.generation,
        "salt": tombstone.salt,
        "hashes": sorted(tombstone.hashes),
    }
    if tombstone.older:
        fields["older"] = [[salt, sorted(hashes)] for salt, hashes in tombstone.older]
    if tombstone.wished:
        fields["wished"] = [list(wished) for wished in tombstone.wished]
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def wishes_of(tombstone: Tombstone) -> bytes:
    """The bytes of the open wishes, with their cuts and what is done of them."""
    wishes = tombstone.open
    fields: dict[str, Any] = {"open": list(map(_fields, wishes))}
    fields["cuts"] = [wish.cut and list(wish.cut) for wish in wishes]
    for name, done in (("emptied", tombstone.emptied), ("erased", tombstone.erased)):
        fields[name] = [_fields(wish) for wish in wishes if wish in done]
    return orjson.dumps(fields, option=orjson.OPT_APPEND_NEWLINE)


def parsed(data: bytes) -> Tombstone:
    """The tombstone in these bytes. Raises DocumentDamaged."""
    try:
        fields: dict[str, Any] = orjson.loads(data)
        if fields["version"] != VERSION:
            raise DocumentDamaged("E_TOMBSTONE_VERSION: a tombstone was written by a newer version; upgrade memd")
        hashes = frozenset(map(str, fields["hashes"]))
        older = tuple(Salted(str(salt), frozenset(map(str, those))) for salt, those in fields.get("older", ()))
        wished = wished_of(fields.get("wished", ()))
        generation = int(fields["generation"])
        return Tombstone(str(fields["owner"]), generation, str(fields["salt"]), hashes, older=older, wished=wished)
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise DocumentDamaged(DAMAGED) from None


def wished_of(rows: Iterable[Sequence[Any]]) -> tuple[Wished, ...]:
    """The wishes so far, from their rows. Raises ValueError, TypeError."""
    return tuple(Wished(str(scope), int(at_ms), int(generation)) for scope, at_ms, generation in rows)


def with_open(tombstone: Tombstone, data: bytes | None) -> Tombstone:
    """The tombstone with the open wishes in these bytes; older versions write neither cuts nor what is done.

    Raises DocumentDamaged.
    """
    if not data:
        return tombstone
    try:
        fields: dict[str, Any] = orjson.loads(data)
        cuts = fields.get("cuts", [None] * len(fields["open"]))
        wishes = tuple(
            Wish(user, agent, Cut(int(cut[0]), cut[1]) if cut else None)
            for (user, agent), cut in zip(fields["open"], cuts, strict=True)
        )
        emptied, erased = (list(map(list, fields.get(name, []))) for name in ("emptied", "erased"))
    except (orjson.JSONDecodeError, AttributeError, KeyError, TypeError, ValueError):
        raise DocumentDamaged(DAMAGED) from None
    return replace(
        tombstone,
        open=wishes,
        emptied=frozenset(wish for wish in wishes if _fields(wish) in emptied),
        erased=frozenset(wish for wish in wishes if _fields(wish) in erased),
    )


def _fields(wish: Wish) -> list[str | None]:
    return [wish.user_id, wish.agent_name]
