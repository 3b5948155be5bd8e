"""Stores: the tables of one in PostgreSQL, the roles that use them, and copies from one store to another."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from memd.cli.bars import Bars
from memd.cli.common import Json, echo, echo_json, has_password, settings, warn
from memd.config import Settings, dotted
from memd.errors import ConfigError
from memd.inbox.connection import connect
from memd.memory.store.copying import KINDS, Piece, StoreCopy
from memd.ops import switching
from memd.ops.switching import Switched
from memd.printable import counted, printable

store = typer.Typer(
    help="Set up the database of a store in PostgreSQL; copy a store to another one.", no_args_is_help=True
)

DIFFERS = 1
"""Exit code when the two stores differ, or something cannot be read."""

SERVER_STAYS = (
    "the embedded server is still in the old data folder, with all that waits: stop memd and move the folder `server`"
    " (tasks and tokens, too, if there are any) into the new one before you start memd there"
)

MOST_LISTED = 100

NAMES = {
    "memory": ("memory", "memories"),
    "project": ("project", "projects"),
    "session": ("session", "sessions"),
    "tombstone": ("tombstone", "tombstones"),
}

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


Place = Annotated[
    str | None, typer.Option("--from", metavar="STORE", help="A data folder or postgresql://…; default: the settings'.")
]


@store.command()
def copy(
    source: Place = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="STORE", help="A data folder or postgresql://user@host/name.")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Compare all that both hold.")] = False,
    switch: Annotated[bool, typer.Option("--switch", help="Go over to the target when both are equal.")] = False,
    unseal: Annotated[bool, typer.Option("--unseal", help="Let the store of --from take writes again.")] = False,
    as_json: Json = False,
) -> None:
    """Copy all that one store holds into another one.

    The target must be empty, or that of an earlier copy from the same store; it is sealed until --switch. The command
    may be repeated: what is equal is not written again. With --switch memd goes over to the target while it runs: the
    source is sealed, the rest is copied, both are compared, and the inbox is given to the target; then start memd with
    the settings of the target. Where anything differs the exit code is 1 and memd stays with the source.

    Example: memd store copy --to postgresql://owner@db.internal/memd --switch
    """
    if unseal == (target is not None) or (unseal and (switch or verify)):
        raise typer.BadParameter("give either --to, or --unseal with nothing but --from")
    for name in (source, target):
        if name and has_password(name):
            raise typer.BadParameter("a password is seen by every user of this machine; use PGPASSWORD or PGPASSFILE")
    chosen = settings()
    if unseal:
        found = switching.unseal(switching.store_at(source, chosen), connect(chosen))
        echo("the store takes writes again" if found else "the store was not sealed")
        return
    copying = StoreCopy(switching.store_at(source, chosen), switching.store_at(target, chosen))
    with Bars() as bars:
        done = (
            switching.switch(copying, connect(chosen), bars.step)
            if switch
            else switching.copy(copying, bars.step, verify=verify)
        )
    if as_json:
        echo_json(_as_json(done))
    else:
        _print(done)
    if done.switched and leaves_server(target, chosen):
        warn(SERVER_STAYS)
    if not done.is_whole:
        raise typer.Exit(DIFFERS)


def leaves_server(target: str | None, settings: Settings) -> bool:
    """Whether the target is another data folder than the one with the embedded server: its pushes would wait unseen."""
    if target is None or "://" in target or settings.redis_url is not None:
        return False
    return Path(target).resolve() != settings.data_dir.resolve()


def _as_json(done: Switched) -> dict[str, Any]:
    passes = [{"copied": _counts(one.copied), "removed": _counts(one.removed)} for one in done.passes]
    found: dict[str, Any] = {"passes": passes, "switched": done.switched, "whole": done.is_whole}
    if done.passes:
        found["unreadable"] = [{**_named(piece), "code": code} for piece, code in done.passes[-1].unreadable]
    if done.compared is not None:
        found["compared"] = _counts(done.compared.seen)
        found["differing"] = [_named(piece) for piece in done.compared.differing]
    return found


def _counts(counts: Counter[str]) -> dict[str, int]:
    return {kind: counts[kind] for kind in KINDS}


def _named(piece: Piece) -> dict[str, str]:
    """A piece as people know it; a tombstone has only its user's hash."""
    fields: dict[str, str] = {"kind": piece.kind}
    if piece.bucket is not None:
        fields |= {"user": piece.bucket.user_id, "agent": piece.bucket.agent_name, "project": piece.bucket.project_id}
    fields |= {"thread": piece.thread_id, "user_hash": piece.owner}
    return {name: value for name, value in fields.items() if value}


def _print(done: Switched) -> None:
    for one in done.passes:
        for kind in KINDS:
            copied, removed = one.copied[kind], one.removed[kind]
            if copied or removed:
                echo(f"  {copied:>8}  {NAMES[kind][copied != 1]} copied" + (f", {removed} removed" if removed else ""))
    if done.passes and not any(one.copied or one.removed for one in done.passes):
        echo("nothing to copy: the target has it all")
    if done.compared is not None:
        seen = ", ".join(counted(done.compared.seen[kind], *NAMES[kind]) for kind in KINDS)
        echo(f"compared: {seen}; {len(done.compared.differing)} differ")
        _list(done.compared.differing, "differs")
    unreadable = dict((done.compared or done.passes[-1]).unreadable) if done.passes else {}
    _list(list(unreadable), "cannot be read, so it is in no copy")
    if done.switched:
        echo("the inbox belongs to the target now: start memd with its settings; the other store stays sealed")


def _list(pieces: Sequence[Piece], what: str) -> None:
    for piece in pieces[:MOST_LISTED]:
        echo("  " + " ".join(printable(f"{name} {value}") for name, value in _named(piece).items()) + f": {what}")
    if len(pieces) > MOST_LISTED:
        echo(f"  … and {len(pieces) - MOST_LISTED} more")
