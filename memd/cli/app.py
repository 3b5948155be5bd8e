"""The application: its global options, and the list of commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memd import __version__
from memd.cli import (
    acl,
    audit,
    daemon,
    dead,
    doctor,
    facts,
    forget,
    mcp,
    memory,
    push,
    queue,
    search,
    setup,
    token,
    transfer,
)
from memd.cli.common import Globals

app = typer.Typer(
    help="The memory daemon for LLM agents: conversations in, one small durable memory per user out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

EPILOG = "Settings: config.yaml, MEMD_* environment, flags; see `memd config`."


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"memd {__version__}")
        raise typer.Exit


@app.callback(epilog=EPILOG)
def options(
    config: Annotated[
        Path | None, typer.Option("--config", help="The config file (default: config.yaml here).")
    ] = None,
    data_dir: Annotated[Path | None, typer.Option("--data-dir", help="The data folder.")] = None,
    redis_url: Annotated[str | None, typer.Option("--redis-url", help="Your own server; no passwords here.")] = None,
    log_level: Annotated[str | None, typer.Option("--log-level", help="debug, info, warning or error.")] = None,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Options for every command; they stand before it."""
    Globals.file = config
    Globals.flags = {
        "data_dir": str(data_dir) if data_dir else None,
        "redis_url": redis_url,
        "log.level": log_level,
    }


GROUPS = (daemon, push, queue, dead, memory, search, facts, transfer, audit, forget, doctor, acl, token, mcp, setup)
for group in GROUPS:
    group.register(app)
