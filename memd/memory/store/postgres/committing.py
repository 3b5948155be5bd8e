"""Transactions: under advisory locks, at READ COMMITTED, with one answer where the end of a COMMIT is not known.

Advisory locks also lock what is not there yet, which no row lock does. They end with the transaction.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar
from uuid import uuid4

import psycopg
from psycopg import errors

from memd.errors import StoreUnavailable
from memd.memory.store.postgres.connecting import ROUNDS, Bounded, Postgres, is_lost, unavailable

T = TypeVar("T")

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
DURABLE = "set_config('synchronous_commit', 'on', true)"
UNBOUND = "SET LOCAL statement_timeout = 0"
"""COMMIT is never cancelled: while it waits for a standby that would end the wait, and not the commit."""

UNSEALED = "memd.refuse_sealed()"

TOUCH = "INSERT INTO memd.probes (id) VALUES (%s)"
CLEAN = "DELETE FROM memd.probes WHERE id = %s"

UNKNOWN_END = "E_STORE_UNKNOWN: the connection was lost in a commit, and its end cannot be found out now"


class Lock(NamedTuple):
    """An advisory lock. They are taken in this order: store, owners, buckets, tombstones, and then by key."""

    rank: int
    key: int
    shared: bool = False


def store_lock(*, shared: bool = False) -> Lock:
    """The lock of the seal: every write shares it, and whoever seals the store waits for all of them."""
    return Lock(-1, _key("store", ""), shared)


def owner_lock(owner: str, *, shared: bool = False) -> Lock:
    """The lock of a user or a project, given its hash."""
    return Lock(0, _key("owner", owner), shared)


def bucket_lock(bucket: str) -> Lock:
    """The lock of a document and its sessions, given the bucket's hash."""
    return Lock(1, _key("bucket", bucket))


def tombstone_lock(owner: str) -> Lock:
    """The lock of the row of a tombstone."""
    return Lock(2, _key("tombstone", owner))


def _key(kind: str, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"memd {kind} {name}".encode()).digest()[:8], signed=True)


@dataclass(frozen=True, slots=True)
class _Unknown(Generic[T]):
    """The transaction may have been committed; if so, this is its result."""

    result: T


class Transactions:
    """Runs writes."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres

    def run(
        self,
        locks: Iterable[Lock],
        work: Callable[[Bounded], T],
        landed: Callable[[Bounded], bool] = lambda _: False,
        before: Callable[[], None] = lambda: None,
        *,
        although_sealed: bool = False,
    ) -> T:
        """Run `work` in a transaction under these locks, and commit it durably.

        `before`: called right before each try, without any lock. `landed`: whether a try whose end is not known was
        committed, asked under the same locks, when that try has ended for sure; without it, work that was done twice
        must be as good as once. What `work` raises rolls back. Raises StoreUnavailable, StoreSealed.
        """
        ordered = sorted(set(locks) if although_sealed else {store_lock(shared=True), *locks})
        for left in range(ROUNDS, 0, -1):
            before()
            try:
                done = self._try(ordered, work, although_sealed=although_sealed)
            except psycopg.Error as error:
                again = is_lost(error) or isinstance(error, errors.DeadlockDetected | errors.SerializationFailure)
                if left == 1 or not again:
                    raise unavailable(error) from None
                continue
            if not isinstance(done, _Unknown):
                return done
            if self._has_landed(ordered, landed):
                return done.result
        raise StoreUnavailable(UNKNOWN_END)

    def touch(self) -> None:
        """Write something durably, and leave nothing. Raises StoreUnavailable."""
        self.run((), _touch)

    def _try(self, locks: Sequence[Lock], work: Callable[[Bounded], T], *, although_sealed: bool) -> T | _Unknown[T]:
        """One try. Raises psycopg.Error where nothing was committed."""
        with self._postgres.borrowed() as connection:
            with connection.pipeline():
                _begin(connection, locks, () if although_sealed else (UNSEALED,))
                try:
                    with self._postgres.within(connection):
                        result = work(connection)
                    connection.execute(UNBOUND)
                except psycopg.Error:
                    raise
                except BaseException:
                    connection.execute("ROLLBACK")
                    raise
            return result if _commit(connection) else _Unknown(result)

    def _has_landed(self, locks: Sequence[Lock], landed: Callable[[Bounded], bool]) -> bool:
        """Ask on a new connection, under the locks that the lost one may still hold. Raises StoreUnavailable.

        The question ends in a durable write of its own: what it has seen is then as durable.
        """
        try:
            with self._postgres.new() as connection:
                _begin(connection, locks)
                found = landed(connection)
                _touch(connection)
                connection.execute(UNBOUND)
                if _commit(connection):
                    return found
        except psycopg.Error:
            pass
        raise StoreUnavailable(UNKNOWN_END)


def _begin(connection: Bounded, locks: Sequence[Lock], checks: Sequence[str] = ()) -> None:
    """Begin, and take the locks in their order; then run the checks, functions that see what was committed before.

    In one statement, which is the same for all owners and buckets: the server parses it once.
    """
    connection.execute(BEGIN)
    calls = (f"pg_advisory_xact_lock{'_shared' if lock.shared else ''}(%s)" for lock in locks)
    connection.execute(f"SELECT {', '.join((DURABLE, *calls, *checks))}", [lock.key for lock in locks])


def _commit(connection: Bounded) -> bool:
    """Commit; False when its end is not known. Raises psycopg.Error when the transaction was rolled back."""
    connection.warned = False
    try:
        ended = connection.execute("COMMIT")
    except psycopg.Error:
        connection.close()
        return False
    if ended.statusmessage != "COMMIT":
        raise errors.InFailedSqlTransaction
    return not connection.warned


def _touch(connection: Bounded) -> None:
    name = uuid4()
    connection.execute(TOUCH, [name])
    connection.execute(CLEAN, [name])
