"""Forgetting from the shell."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Annotated

import typer

from memd.cli.common import Json, User, echo, echo_json, settings
from memd.printable import printable

UNFINISHED = 75
"""Exit code when the server was out of reach: the rest is done by a worker when it is back."""


def forget(
    user: User,
    agent: Annotated[str | None, typer.Option("--agent", help="Only what this agent knows of the user.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be removed.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask on a terminal.")] = False,
    as_json: Json = False,
) -> None:
    """Forget a user: memory, old versions, everything under way and dead. What is on its way cannot bring it back.

    The exit code is 75 when the server was out of reach: the documents are gone, and a worker does the rest.

    Example: memd forget ana --dry-run
    """
    from memd.client import Memd  # noqa: PLC0415

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
            (found.pushes, "pushes under way"),
            (found.dead, "dead letters"),
        ):
            echo(f"  {count:>6}  {name}")
        echo(f"{found.messages} messages are known by a salted hash" + ("" if dry_run else ", and will not come back"))
        echo("out of reach: " + "; ".join(found.unreachable))
    if not found.complete:
        echo("the server is out of reach: a worker does the rest when it is back")
        raise typer.Exit(UNFINISHED)


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(forget)
