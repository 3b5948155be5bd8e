"""The tables and their versions: `memd store init` makes them, or brings them up to this version of memd."""

from __future__ import annotations

import os
from importlib import resources
from typing import Any, NamedTuple

import psycopg

from memd.errors import ConfigError
from memd.memory.store.postgres import pgvector
from memd.memory.store.postgres.connecting import HAS_TABLES, Bounded, check_server, conninfo_of, unavailable

VERSION = 3
"""Of the tables that this memd needs, and of its writes: `min_writer` of a store is compared with it."""

MIN_WRITERS = {1: 1, 2: 2, 3: 3}
"""By version of the tables, the lowest version of memd that may write beside it."""

LOCK = "SELECT pg_advisory_xact_lock(7230101)"
"""One init at a time."""

PRESENT = "SELECT version FROM memd.store"
FIRST = "INSERT INTO memd.store (id, key, version, min_writer) VALUES (%s, %s, 0, 1)"
RAISED = "UPDATE memd.store SET version = %s, min_writer = greatest(min_writer, %s)"


class Migrated(NamedTuple):
    """Versions of the tables: 0 for none. `pgvector`: the version of the extension that has the vectors, if any."""

    before: int
    after: int
    pgvector: str


def migrate(url: str) -> Migrated:
    """Bring the tables to this version. Each step is one transaction; a lock is waited for 2 s at most.

    Raises ConfigError for tables that are newer, StoreUnavailable.
    """
    try:
        with Bounded.connect(conninfo_of(url), autocommit=True) as connection:
            check_server(connection)
            connection.execute("SET lock_timeout = '2s'")
            before = _version(connection)
            for version in range(before + 1, VERSION + 1):
                with connection.transaction():
                    connection.execute(LOCK)
                    if _version(connection) < version:
                        _step(connection, version)
            with connection.transaction():
                connection.execute(LOCK)
                return Migrated(before, _version(connection), pgvector.adopt(connection))
    except psycopg.Error as error:
        raise unavailable(error) from None


def _version(connection: Bounded) -> int:
    """The version of the tables. Raises ConfigError for one that this memd does not know."""
    found = _first(connection, PRESENT) if _first(connection, HAS_TABLES) else 0
    if found > VERSION:
        raise ConfigError(
            f"E_STORE_TOO_NEW: the tables have version {found}, this memd knows {VERSION}; nothing was changed, "
            "upgrade memd"
        )
    return int(found)


def _step(connection: Bounded, version: int) -> None:
    if version == 1:
        connection.execute("CREATE SCHEMA IF NOT EXISTS memd")
    connection.execute(resources.files(__package__).joinpath(f"schema_{version}.sql").read_bytes())
    if version == 1:
        connection.execute(FIRST, [os.urandom(16).hex(), os.urandom(32)])
    connection.execute(RAISED, [version, MIN_WRITERS[version]])


def _first(connection: Bounded, statement: str) -> Any:
    row = connection.execute(statement).fetchone()
    return row[0] if row else 0
