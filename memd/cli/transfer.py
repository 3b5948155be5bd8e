"""Memories out of memd and into it."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memd.cli.common import Json, User, echo, echo_json, settings, warn
from memd.printable import printable

if TYPE_CHECKING:
    from memd.memory.hand.transfer import ImportedMemory

OneAgent = Annotated[str | None, typer.Option("--agent", help="Only this agent's memory of the user.")]


def export(
    user: User,
    agent: OneAgent = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A new file, 0600; default: stdout.")] = None,
) -> None:
    """All that is kept of a user, as JSON: every agent's memory, archive and ledger. `memd import` reads it.

    Example: memd export ana -o ana.json
    """
    from memd.client import Memd  # noqa: PLC0415  (each command imports what it needs)

    with Memd(settings()) as memd:
        found = memd.export(user, agent_name=agent)
    if output is None:
        echo_json(found)
        return
    _write(output, found)
    warn(f"{len(found['memories'])} memories written")


def import_(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON file; - reads stdin.")],
    user: Annotated[str, typer.Option("--user", help="Whose memory it is to become.")],
    agent: Annotated[str | None, typer.Option("--agent", help="Into the memory of this agent.")] = None,
    form: Annotated[str, typer.Option("--format", help="auto, memd, deerflow or mem0.")] = "auto",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would come in.")] = False,
    as_json: Json = False,
) -> None:
    """Merge what memd exported, DeerFlow's memory.json (1.0) or mem0's get_all() into a user's memory.

    What is there stays; what says the same is known; the rest passes the gates or is counted as refused. Doing it
    twice is doing it once.

    Example: memd import memory.json --user ana --dry-run
    """
    from memd.client import Memd  # noqa: PLC0415
    from memd.memory.hand.formats import parse_json  # noqa: PLC0415

    value = parse_json(_read(file))
    with Memd(settings()) as memd:
        found = memd.import_memory(user, value, agent_name=agent, format=form, dry_run=dry_run)
    if as_json:
        echo_json({"dry_run": dry_run, **asdict(found)})
        return
    echo(f"read as {found.format}" + (", nothing is written:" if dry_run else ":"))
    for memory in found.memories:
        _tell(memory, dry_run)
    if not found.memories:
        echo("  no memories in it")


def _tell(memory: ImportedMemory, dry_run: bool) -> None:
    if memory.agent_name:
        echo(f"agent {printable(memory.agent_name)}")
    echo(f"  {len(memory.added):>6}  facts {'would be added' if dry_run else 'added'}")
    for content in memory.contents:
        echo(f"          + {printable(content)}")
    for count, name in (
        (memory.known, "facts known already"),
        (memory.summaries, "summaries"),
        (memory.archived, "archived facts"),
    ):
        echo(f"  {count:>6}  {name}")
    for reason, count in sorted(memory.refused.items()):
        echo(f"  {count:>6}  refused: {reason}")


def _read(file: Path) -> bytes:
    from memd.memory.store.files import MAX_BYTES  # noqa: PLC0415

    if str(file) == "-":
        return sys.stdin.buffer.read(MAX_BYTES + 1)
    try:
        with file.open("rb") as opened:
            return opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise typer.BadParameter(f"it cannot be read ({error.strerror})", param_hint="FILE") from None


def _write(file: Path, value: dict[str, Any]) -> None:
    """A new file of our own: an export is as private as the documents, and overwrites nothing."""
    import orjson  # noqa: PLC0415

    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise typer.BadParameter(f"it cannot be made ({error.strerror})", param_hint="--output") from None
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    except OSError as error:
        file.unlink(missing_ok=True)  # half an export looks like one
        raise typer.BadParameter(f"it cannot be written ({error.strerror})", param_hint="--output") from None


def register(app: typer.Typer) -> None:
    """Add these commands."""
    app.command()(export)
    app.command("import")(import_)
