"""Tombstones in rows: the two texts that their files have. One that was read is kept until its row changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Literal

from psycopg import Cursor

from memd.context import user_hash
from memd.errors import DocumentDamaged
from memd.memory.store import tombstone_format as form
from memd.memory.store.postgres.committing import Lock, Transactions, owner_lock, tombstone_lock
from memd.memory.store.postgres.connecting import Bounded, Postgres
from memd.memory.store.protocol import Tombstone, Wish

MAX_KEPT = 100
"""Tombstones kept in memory; few users have one."""

CHANGES = "SELECT changes FROM memd.tombstones WHERE owner = %s"
READ = "SELECT changes, hashes, wishes FROM memd.tombstones WHERE owner = %s"
WRITE = """
INSERT INTO memd.tombstones (owner, generation, changes, hashes, wishes) VALUES (%s, %s, 1, %s, %s)
ON CONFLICT (owner) DO UPDATE
SET generation = excluded.generation, changes = tombstones.changes + 1, hashes = excluded.hashes,
  wishes = excluded.wishes
"""
OPEN = "SELECT hashes, wishes FROM memd.tombstones WHERE wishes IS NOT NULL ORDER BY owner"
OWNERS = "SELECT encode(owner, 'hex') FROM memd.tombstones WHERE hashes IS NOT NULL ORDER BY owner"


class TombstoneRows:
    """The tombstones of a database (see `protocol.Tombstones`)."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._transactions = Transactions(postgres)
        self._kept: dict[str, tuple[int, Tombstone]] = {}

    def find(self, user_id: str) -> Tombstone | None:
        """The tombstone of a user; None when nothing was ever forgotten."""
        return self.of(user_hash(user_id))

    def of(self, owner: str) -> Tombstone | None:
        """The tombstone of the user with this hash."""

        def look(connection: Bounded) -> Tombstone | None:
            row = self.asked(connection, owner).fetchone()
            if row is None:
                return None
            return self.kept(owner, row[0]) or self.read(connection, owner)

        return self._postgres.run(look)

    def asked(self, connection: Bounded, owner: str) -> Cursor[tuple[Any, ...]]:
        """The question how often the tombstone of an owner was written, for `kept`; no answer: there is none."""
        return connection.execute(CHANGES, [bytes.fromhex(owner)])

    def kept(self, owner: str, changes: int) -> Tombstone | None:
        """The tombstone of an owner that was written so often, if it was read already."""
        kept = self._kept.get(owner)
        return kept[1] if kept and kept[0] == changes else None

    def read(self, connection: Bounded, owner: str) -> Tombstone | None:
        """Read a tombstone, and keep it."""
        found = self._read(connection, owner)
        if found is None:
            return None
        if len(self._kept) >= MAX_KEPT:
            self._kept.clear()
        self._kept[owner] = found
        return found[1]

    def begin(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Write the wish down, then the identities, before anything is removed."""

        def opened(before: Tombstone) -> Tombstone:
            others = tuple(other for other in before.open if not other.is_about(wish))
            return replace(before, open=(*others, wish))

        self._change(wish, opened)
        return self._grow(wish, identities, begins=True)

    def extend(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Add identities found while forgetting."""
        return self._grow(wish, identities, begins=False)

    def note(self, wish: Wish, done: Literal["emptied", "erased"]) -> None:
        """A part of this open wish is done."""

        def noted(before: Tombstone) -> Tombstone:
            if wish not in before.open:
                return before
            if done == "emptied":
                return replace(before, emptied=before.emptied | {wish})
            return replace(before, erased=before.erased | {wish})

        self._change(wish, noted)

    def close(self, wish: Wish) -> None:
        """The wish is fulfilled; a later one about the same stays open."""
        self._change(wish, lambda before: replace(before, open=tuple(other for other in before.open if other != wish)))

    def unfinished(self) -> list[Wish]:
        """The wishes of all users that are not yet fulfilled."""
        rows = self._postgres.run(lambda connection: connection.execute(OPEN).fetchall())
        return [wish for hashes, wishes in rows for wish in _tombstone("", hashes, wishes).open]

    def owners(self) -> list[str]:
        """The hashes of all users with a tombstone."""
        return [owner for (owner,) in self._postgres.run(lambda connection: connection.execute(OWNERS).fetchall())]

    def put(self, owner: str, tombstone: Tombstone | None) -> None:
        """Make this the tombstone of an owner, also in a sealed store; None: nothing was forgotten."""
        whole = tombstone or Tombstone(owner, 0, "", frozenset())
        hashes = form.hashes_of(whole) if whole.generation else None
        wishes = form.wishes_of(whole) if whole.open else None
        values = [bytes.fromhex(owner), whole.generation, hashes, wishes]
        locks = (owner_lock(owner), tombstone_lock(owner))
        self._transactions.run(locks, lambda connection: connection.execute(WRITE, values), although_sealed=True)

    def _grow(self, wish: Wish, identities: Iterable[str], *, begins: bool) -> Tombstone:
        """Write the tombstone with these identities added, and the wish if it `begins`."""
        names = list(identities)

        def grown(before: Tombstone) -> Tombstone:
            return before.grown(wish, names, begins=begins)

        return self._change(wish, grown, owner_lock(user_hash(wish.user_id)))

    def _change(self, wish: Wish, change: Callable[[Tombstone], Tombstone], *locks: Lock) -> Tombstone:
        """Write the tombstone as it is after this change, if that differs."""
        owner = user_hash(wish.user_id)

        def work(connection: Bounded) -> Tombstone:
            found = self._read(connection, owner)
            before = found[1] if found else Tombstone(owner, 0, os.urandom(16).hex(), frozenset())
            after = change(before)
            if after != before:
                hashes = form.hashes_of(after) if after.generation else None
                wishes = form.wishes_of(after) if after.open else None
                connection.execute(WRITE, [bytes.fromhex(owner), after.generation, hashes, wishes])
            return after

        return self._transactions.run((*locks, tombstone_lock(owner)), work)

    def _read(self, connection: Bounded, owner: str) -> tuple[int, Tombstone] | None:
        row = connection.execute(READ, [bytes.fromhex(owner)]).fetchone()
        return None if row is None else (row[0], _tombstone(owner, row[1], row[2]))


def _tombstone(owner: str, hashes: bytes | None, wishes: bytes | None) -> Tombstone:
    """The tombstone in a row. Raises DocumentDamaged."""
    # Without hashes: killed before the tombstone was written, so nothing was removed yet.
    present = form.parsed(hashes) if hashes is not None else Tombstone(owner, 0, os.urandom(16).hex(), frozenset())
    if owner and present.owner != owner:
        raise DocumentDamaged(form.DAMAGED)
    return form.with_open(present, wishes)
