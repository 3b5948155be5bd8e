"""Forgetting from the shell."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from memd.cli.common import DryRun, Json, User, Yes, echo, echo_json, settings
from memd.client import Memd
from memd.printable import printable

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
    """Forget a user, for good.

    It removes the memory with its old versions, pending messages and dead letters; nothing in flight brings them back.
    The exit code is 75 when the server was out of reach: the documents are gone, and a worker does the rest.

    Example: memd forget ana --dry-run
    """
    if not (dry_run or yes) and sys.stdin.isatty():
        typer.confirm(f"forget {printable(user)} for good?", abort=True, err=True)
    with Memd(settings()) as memd:
        found = memd.forget(user, agent_name=agent, dry_run=dry_run)
    if as_json:
        echo_json({"dry_run": dry_run, **asdict(found)})
    else:
        echo("would be removed:" if dry_run else "removed:")
        for count, name in (
            (found.documents, f"memory documents ({found.files} files)"),
            (found.pushes, "pending pushes"),
            (found.dead, "dead letters"),
        ):
            echo(f"  {count:>6}  {name}")
        echo(
            f"{found.messages} messages are kept as salted hashes"
            + ("" if dry_run else ", so that they cannot come back")
        )
        echo("not removed: " + "; ".join(found.unreachable))
    if not found.complete:
        echo("the server is out of reach: a worker does the rest when it is back")
        raise typer.Exit(UNFINISHED)
