"""The application: its global options, and the table of its commands."""

from __future__ import annotations

from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from memd import __version__
from memd.cli.common import Globals, has_password, warn

GROUPS = {
    "Run": {
        "up": ("daemon", "Run all of memd here: server, scheduler, workers."),
        "server": ("daemon", "Run only the embedded server."),
        "scheduler": ("daemon", "Run only a scheduler."),
        "worker": ("daemon", "Run only one worker."),
        "serve": ("daemon", "Serve memd over HTTP."),
        "console": ("console", "Print a link that opens the console in a browser, once."),
        "mcp": ("daemon", "Serve one user's memory to an MCP host: tools and a resource."),
        "demo": ("setup", "Run memd on shipped conversations and show the memory."),
    },
    "Feed": {
        "push": ("push", "Push conversations from a file or standard input."),
        "flush": ("queue", "Make pending keys due now."),
        "receipt": ("queue", "Show the state of a push, or its outcome."),
        "import": ("transfer", "Import an export of memd or of another system into a user's memory."),
    },
    "Look": {
        "status": ("status", "Show the figures of the inbox, the workers and the server."),
        "watch": ("watch", "Watch the figures of the inbox live; q or Ctrl-C ends it."),
        "users": ("look", "List the users that have a memory: agents, facts, pending keys, last change."),
        "pending": ("look", "List the keys that have not ended: user, state, size, due time, worker."),
        "show": ("memory", "Show a user's memory."),
        "inject": ("memory", "Print the <memory> block for the next prompt."),
        "search": ("search", "Search a user's facts, best first."),
        "why": ("memory", "Show where a fact comes from, or which facts were refused."),
        "export": ("transfer", "Export a user's memories as JSON, or those of all users as JSON Lines."),
        "where": ("where", "Show where memd keeps and finds things: files, folders, the server's address."),
    },
    "Edit": {
        "facts": ("facts", "List, add, edit or remove facts by hand."),
        "profile": ("profile", "Show, set, unset or edit a profile."),
        "project": ("project", "Make and list projects, their members, facts and decisions."),
        "session": ("session", "List, show, compact, export or remove sessions."),
        "forget": ("forget", "Forget a user, for good."),
        "dead": ("dead", "List, show, retry or drop dead letters."),
    },
    "Operate": {
        "doctor": ("checks", "Check everything memd depends on, and say what to do."),
        "audit": ("checks", "Find what should not be in a memory."),
        "try": ("trying", "Try one conversation: see what is dropped, proposed, stored and refused."),
        "reextract": ("reextract", "Show what today's prompt or model would make of what was said."),
        "eval": ("evaluate", "Measure memories on labelled conversations, with your model or saved replies."),
        "config": ("setup", "Show every setting in force, and its origin."),
        "acl": ("access", "Print the accounts for your own server."),
        "token": ("access", "Add, list or revoke tokens for `memd serve`."),
        "backup": ("backup", "Back up inbox, memories, projects, sessions, tasks and tombstones."),
        "restore": ("backup", "Restore a backup into the store and the inbox of the settings."),
        "store": ("store", "Set up the database of a store in PostgreSQL; copy a store to another one."),
        "vectors": ("vectors", "Count the vectors of search by meaning, or make those that are missing."),
    },
}
"""The help page: each command by its group, with the module of this package that has it, and its line there."""

COMMANDS = {name: row for commands in GROUPS.values() for name, row in commands.items()}


class LazyGroup(TyperGroup):
    """The commands: listed from their table, imported when called. Importing all takes longer than most calls."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (_, line) in COMMANDS.items():
            self.add_command(TyperCommand(name, help=line))

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands in their groups. Without rich: to import it takes longer than the rest of the page."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(typer.style(title, bold=True)):
                formatter.write_dl([(name.ljust(width), line) for name, (_, line) in commands.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the line of the help page by the command itself, when it is called."""
        if args and args[0] in COMMANDS:
            self.add_command(load(args[0]))
        return super().resolve_command(ctx, args)


def load(name: str) -> Any:
    """Import a command or a group of commands. A function whose name is a Python keyword ends in `_`."""
    command = getattr(import_module(f"memd.cli.{COMMANDS[name][0]}"), f"{name}_" if iskeyword(name) else name)
    part = typer.Typer(rich_markup_mode=None)
    if isinstance(command, typer.Typer):
        part.add_typer(command, name=name)
    else:
        part.command(name)(command)
    return get_group(part).commands[name]


app = typer.Typer(
    cls=LazyGroup,
    help="The memory daemon for LLM agents: conversations in, one small durable memory per user out.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

EPILOG = "Settings: config.yaml, MEMD_* environment, flags; see `memd config`. Start with `memd demo`, or `memd up`."


def _version(chosen: bool) -> None:
    if chosen:
        typer.echo(f"memd {__version__}")
        raise typer.Exit


@app.callback(epilog=EPILOG)
def options(
    config: Annotated[
        Path | None,
        typer.Option("--config", help="The config file (default: config.yaml here, if memd's)."),
    ] = None,
    data_dir: Annotated[str | None, typer.Option("--data-dir", metavar="PATH", help="The data folder.")] = None,
    redis_url: Annotated[
        str | None, typer.Option("--redis-url", help="Your own server; its password belongs in the environment.")
    ] = None,
    log_level: Annotated[str | None, typer.Option("--log-level", help="debug, info, warning or error.")] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Handle the options of every command, which come before its name."""
    if redis_url and has_password(redis_url):
        warn("warning: --redis-url has a password, which every user of this machine can see in the process list; "
             "set MEMD_REDIS_URL instead")  # fmt: skip
    Globals.file = config
    Globals.flags = {
        "data_dir": data_dir,
        "redis_url": redis_url,
        "log.level": log_level,
    }
