"""Uniting tombstones of one user: what either of them holds is forgotten. Pure."""

from __future__ import annotations

from dataclasses import replace

from memd.memory.store.protocol import Salted, Tombstone


def united(present: Tombstone, other: Tombstone) -> Tombstone:
    """`present` with the hashes and wishes of another tombstone; itself where the other one adds nothing.

    Hashes keep the salt they were made with. Open wishes stay those of `present`.
    """
    if not present.generation:
        return replace(other, open=present.open, emptied=present.emptied, erased=present.erased)
    by_salt: dict[str, frozenset[str]] = {}
    for salt, hashes in (*_parts(present), *_parts(other)):
        by_salt[salt] = by_salt.get(salt, frozenset()) | hashes
    hashes = by_salt.pop(present.salt)
    before = {part.salt: part.hashes for part in present.older}
    wished = tuple(dict.fromkeys((*present.wished, *other.wished)))
    if (hashes, by_salt, wished) == (present.hashes, before, present.wished):
        return present
    older = tuple(Salted(salt, hashes) for salt, hashes in by_salt.items())
    generation = max(present.generation, other.generation) + 1
    return replace(present, hashes=hashes, older=older, wished=wished, generation=generation)


def _parts(tombstone: Tombstone) -> tuple[Salted, ...]:
    own = Salted(tombstone.salt, tombstone.hashes)
    return (own, *tombstone.older) if own.hashes or own.salt else tombstone.older
