"""Shared by the commands: the settings in force, common options, printing."""

from __future__ import annotations

import os
import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

import orjson
import typer

from memd import config, events
from memd.config import LoadedSettings, Settings
from memd.ops import descriptors

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]


def completes(kind: str) -> Any:
    """The shell completion of an argument. `kind`: user, fact or category. Its module is imported when a shell asks."""

    def propose(ctx: typer.Context, incomplete: str) -> list[Any]:
        found: list[Any] = import_module("memd.cli.completion").propose(kind, ctx, incomplete)
        return found

    return propose


OnlyUser = Annotated[
    str | None, typer.Option("--user", help="Only this user's keys.", autocompletion=completes("user"))
]
User = Annotated[str, typer.Argument(help="The user's id.", autocompletion=completes("user"))]
SomeUser = Annotated[
    str | None,
    typer.Argument(metavar="[USER]", help="Whose memories; or --all.", autocompletion=completes("user")),
]
FactId = Annotated[
    str,
    typer.Argument(metavar="FACT_ID", help="The id, as `memd facts list` prints it.", autocompletion=completes("fact")),
]
OneFact = Annotated[
    str | None,
    typer.Argument(metavar="FACT_ID", help="The id, as `memd facts list` prints it.", autocompletion=completes("fact")),
]
Agent = Annotated[str, typer.Option("--agent", help="The memory that this agent has of the user.")]
Pending = Annotated[
    bool, typer.Option("--include-pending", help="Include messages that are not extracted yet; asks the server.")
]
ThreadOption = Annotated[
    str | None, typer.Option("--thread", help="The conversation that asks: its own facts are among the others.")
]
ProjectOption = Annotated[
    str | None, typer.Option("--project", help="Also what the members of this project share, if the user is one.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only print what would change.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

DIED, TIMED_OUT = 3, 4
"""Exit codes of `memd flush --wait`."""


class Globals:
    """The options before the command; set once by the app's callback."""

    file: Path | None = None
    flags: dict[str, Any] = {}  # noqa: RUF012  (replaced as a whole, never changed)


def loaded(**flags: Any) -> LoadedSettings:
    """The settings, with the global flags and a command's own (`scheduler__quiet_s=…`). Raises ConfigError."""
    own = {name.replace("__", "."): value for name, value in flags.items()}
    return config.load(Globals.file, flags={**Globals.flags, **own})


def settings(**flags: Any) -> Settings:
    """The settings in force."""
    return loaded(**flags).settings


def daemon_settings(**flags: Any) -> Settings:
    """The settings of a process that keeps running; also sets up logging. Raises ConfigError."""
    return daemon_loaded(**flags).settings


def daemon_loaded(**flags: Any) -> LoadedSettings:
    """The same with the origin of each setting. Raises ConfigError."""
    os.umask(0o077)  # the files of the daemon are private
    found = loaded(**flags)
    chosen = found.settings
    descriptors.require(chosen)
    events.setup(chosen.log.level, chosen.log.format)
    if found.file and found.file.unread:
        events.logger().warning(events.Event.CONFIG_NOT_READ, reason=found.file.unread)
    return found


def echo(text: str = "") -> None:
    """Print a line."""
    typer.echo(text)


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z) + b"\n")


def warn(text: str) -> None:
    """Print a line for people, on stderr."""
    typer.echo(text, err=True)


def warn_of_words_only(why: str) -> None:
    """Say on stderr why a search that should have gone by vectors too went by words alone, if it did."""
    if why:
        warn(f"searched by words only: {why}")


def read_file(file: str, most: int = -1) -> bytes:
    """The bytes of a file (`-`: of standard input), at most so many. Raises typer.BadParameter."""
    if file == "-":
        return sys.stdin.buffer.read(most)
    try:
        with Path(file).open("rb") as opened:
            return opened.read(most)
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read ({error.strerror})") from None


def nothing(found: str) -> None:
    """Say that nothing was found, and name the folder: another folder has other memories."""
    warn(f"{found} in {settings().data_dir.absolute()}")


def has_password(url: str) -> bool:
    """Whether a URL of a server holds a password."""
    try:
        parts = urlsplit(url)
    except ValueError:  # not a URL; the settings report it
        return False
    return bool(parts.password) or "password" in parse_qs(parts.query)


def check_one_or_all(named: str | None, *, every: bool, what: str = "a user", hint: str = "USER") -> None:
    """Raise BadParameter unless a command names either one of these or --all."""
    if named is None and not every:
        raise typer.BadParameter(f"name {what}, or pass --all", param_hint=hint)
    if named is not None and every:
        raise typer.BadParameter(f"{what} and --all do not go together", param_hint=hint)


def confirm(question: str) -> None:
    """Ask on a terminal; a script has to pass --yes."""
    if not sys.stdin.isatty():
        warn(f"{question} Nothing is done without an answer; in a script, pass --yes")
        raise typer.Exit(2)
    typer.confirm(question, abort=True, err=True)


def when(moment: datetime | None) -> str:
    """A moment for people."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "-"
