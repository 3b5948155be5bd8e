"""What the commands share: the settings in force, and how things are printed."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from memd import config
from memd.config import Loaded, Settings

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
User = Annotated[str, typer.Argument(help="The user's id.")]
Agent = Annotated[str, typer.Option("--agent", help="The agent's own memory of the user.")]
Pending = Annotated[
    bool, typer.Option("--include-pending", help="Also what was said and not looked at yet; asks the server.")
]

DIED, TIMED_OUT = 3, 4


class Globals:
    """The options before the command; set once by the app's callback."""

    file: Path | None = None
    flags: dict[str, Any] = {}  # noqa: RUF012  (replaced as a whole, never changed)


def loaded(**flags: Any) -> Loaded:
    """The settings, with the global flags and a command's own (`scheduler__quiet_s=…`). Raises ConfigError."""
    own = {name.replace("__", "."): value for name, value in flags.items()}
    return config.load(Globals.file, flags={**Globals.flags, **own})


def settings(**flags: Any) -> Settings:
    """The settings in force."""
    return loaded(**flags).settings


def daemon_settings(**flags: Any) -> Settings:
    """The settings of a part that runs on, with logging set up as they say."""
    from memd import events  # noqa: PLC0415  (one-shot commands do not log)

    os.umask(0o077)  # whatever the daemon writes is nobody else's business
    found = settings(**flags)
    events.setup(found.log.level, found.log.format)
    return found


def echo(text: str = "") -> None:
    """Print a line."""
    typer.echo(text)


def echo_json(value: Any) -> None:
    """Print a value as JSON."""
    import orjson  # noqa: PLC0415  (not every command prints JSON)

    sys.stdout.buffer.write(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z) + b"\n")


def warn(text: str) -> None:
    """Print a line for people, on stderr."""
    typer.echo(text, err=True)
