"""Settings, and the demo."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from memd.cli.common import Globals, Json, echo, echo_json, loaded, warn
from memd.config import by_name


def config(as_json: Json = False) -> None:
    """Show every setting in force, and its origin. Secrets are masked.

    Example: MEMD_SCHEDULER__QUIET_S=10 memd config
    """
    found = loaded()
    if found.file and found.file.unread:
        warn(f"not read: {found.file.unread}; if it is memd's, name it with --config")
    rows = [(name, value, found.origins[name]) for name, value in by_name(found.settings).items()]
    if as_json:
        echo_json({name: {"value": value, "origin": origin} for name, value, origin in rows})
        return
    width = max(len(name) for name, _, _ in rows)
    for name, value, origin in rows:
        text = "" if value is None else ", ".join(value) if isinstance(value, list) else str(value)
        echo(f"{name:<{width}}  {text}" + ("" if origin == "default" else f"    ({origin})"))


def demo(
    keep: Annotated[Path | None, typer.Option("--keep", help="Keep the data, in this new folder.")] = None,
) -> None:
    """Run memd on shipped conversations and show the memory.

    It uses the embedded server and needs no settings. With ANTHROPIC_API_KEY a
    model reads the conversations, else offline patterns.

    Example: memd demo --keep ./demo-data
    """
    # The demo builds on the command line, so it is named by text, as the parts of `memd up` are.
    raise typer.Exit(import_module("memd.demo.run").run(keep, Globals.flags.get("log.level")))
