"""The database of a store in PostgreSQL: its tables, and the roles that use them."""

from __future__ import annotations

import os

import typer

from memd.cli.common import echo, settings, warn
from memd.config import dotted
from memd.errors import ConfigError

store = typer.Typer(help="Set up the database of a store in PostgreSQL.", no_args_is_help=True)

PACKAGE = "memd.memory.store.postgres"
"""Loaded by name: it needs an extra."""

NO_PGVECTOR = (
    "vectors: kept as bytes, and compared by memd; pgvector is not on this server, or this role may not create it "
    "(CREATE EXTENSION vector, then `memd store init` again)"
)


@store.command()
def init() -> None:
    """Make the tables in the database of store.url, or bring them up to this version.

    Run it once, and after an upgrade, as a role that may create a schema. Tables of a newer version are refused, and
    nothing is changed. A password belongs in the environment (PGPASSWORD, PGPASSFILE).

    Example: MEMD_STORE__URL=postgresql://owner@db.internal/memd memd store init
    """
    url = settings().store.url
    if url is None:
        raise ConfigError("setting store.url is missing: the address of the database, postgresql://user@host/name")
    before, after, pgvector = dotted.load("store.class", f"{PACKAGE}.migrations.migrate")(url.reveal())
    if before == after:
        echo(f"the tables have version {after}: nothing to do")
    elif before:
        echo(f"the tables have version {after} now, from {before}")
    else:
        echo(f"made the tables, version {after}; `memd store roles` prints roles with the least rights")
    echo(f"vectors: kept and compared by pgvector {pgvector}" if pgvector else NO_PGVECTOR)


@store.command()
def roles() -> None:
    """Print SQL that makes the roles memd_writer and memd_reader, with the least rights.

    Passwords come from STORE_PASSWORD_MEMD_WRITER and STORE_PASSWORD_MEMD_READER in the environment; only verifiers
    are printed. Without a password a role can log in only as pg_hba.conf allows it otherwise.

    Example: memd store roles | psql -d memd
    """
    for line in dotted.load("store.class", f"{PACKAGE}.roles.statements")(os.environ):
        echo(line)
    for role in dotted.load("store.class", f"{PACKAGE}.roles.ROLES"):
        if not os.environ.get(role.variable):
            warn(f"{role.name}: no password is set; {role.variable} sets one")
