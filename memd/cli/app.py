"""The application: its global options, and the list of commands. A command's module is imported when it is called."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from memd import __version__
from memd.cli.common import Globals

COMMANDS = {
    "daemon": ("up", "server", "scheduler", "worker", "serve"),
    "push": ("push",),
    "queue": ("flush", "receipt", "status"),
    "dead": ("dead",),
    "memory": ("show", "why", "inject"),
    "search": ("search",),
    "facts": ("facts",),
    "transfer": ("export", "import"),
    "audit": ("audit",),
    "forget": ("forget",),
    "doctor": ("doctor",),
    "acl": ("acl",),
    "token": ("token",),
    "mcp": ("mcp",),
    "setup": ("config", "demo"),
}
"""Modules of this package, and the commands that each one registers; in the order of the help page."""


class Lazy(TyperGroup):
    """The commands, each built when it is asked for: to import and build all of them takes longer than most run."""

    def list_commands(self, ctx: Any) -> list[str]:
        """All names."""
        return [name for names in COMMANDS.values() for name in names]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """One command; None when there is none of this name, and then all are there, to suggest one from."""
        if cmd_name not in self.commands:
            for module in [module for module, names in COMMANDS.items() if cmd_name in names] or COMMANDS:
                part = typer.Typer(rich_markup_mode=None)
                import_module(f"memd.cli.{module}").register(part)
                self.commands.update(get_group(part).commands)
        return self.commands.get(cmd_name)


app = typer.Typer(
    cls=Lazy,
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
