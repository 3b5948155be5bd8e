"""Forgetting from the shell."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from memd.cli.bars import bar
from memd.cli.common import DryRun, Json, User, Yes, confirm, echo, echo_json, settings, warn
from memd.client import Memd
from memd.forget import Forgotten
from memd.inbox.connection import server_address
from memd.printable import counted, noun, printable

UNKNOWN_USER = 1
"""Exit code when there was nothing to forget."""

UNFINISHED = 75
"""Exit code when the server was out of reach: a worker does the rest when it is back."""


def forget(
    user: User,
    agent: Annotated[
        str | None, typer.Option("--agent", help="Only the memory that this agent has of the user.")
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Forget a user, for good. It asks first; a script passes --yes.

    It removes the memory with its old versions, pending messages and dead letters; nothing in flight brings them back.
    The exit code is 1 when nothing is known of the user, and 75 when the server was out of reach: then the documents
    are gone, and a worker does the rest.

    Example: memd forget ana --dry-run
    """
    if not (dry_run or yes):
        confirm(f"forget {printable(user)} for good?")
    with Memd(settings()) as memd, bar("forgetting"):
        found = memd.forget(user, agent_name=agent, dry_run=dry_run)
    if as_json:
        echo_json({"dry_run": dry_run, **asdict(found)})
    elif found.known:
        _print(found, dry_run)
    if not found.known:
        places = f"{settings().data_dir.absolute()} and in the inbox at {server_address(settings())}"
        warn(f"nothing is known of this user in {places}: check the id and the folder")
        raise typer.Exit(UNKNOWN_USER)
    if not found.complete:
        warn(f"the server at {server_address(settings())} is out of reach: a worker does the rest when it is back")
        raise typer.Exit(UNFINISHED)


def _print(found: Forgotten, dry_run: bool) -> None:
    echo("would be removed:" if dry_run else "removed:")
    for count, name in (
        (found.documents, f"memory {noun(found.documents, 'document')} ({counted(found.files, 'file')})"),
        (found.pushes, f"pending {noun(found.pushes, 'push', 'pushes')}"),
        (found.dead, f"dead {noun(found.dead, 'letter')}"),
    ):
        echo(f"  {count:>6}  {name}")
    kept = f"{counted(found.messages, 'message')} {'is' if found.messages == 1 else 'are'} kept as salted hashes"
    echo(kept + ("" if dry_run else ", so that they cannot come back"))
    echo("not removed: " + "; ".join(found.unreachable))
