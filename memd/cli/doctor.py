"""The doctor."""

from __future__ import annotations

from dataclasses import asdict

import typer

from memd.cli.common import Json, echo, echo_json, settings

COLOURS = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW, "bad": typer.colors.RED}


def doctor(as_json: Json = False) -> None:
    """Look at all that memd stands on: server, accounts, inbox, workers, data folder, model; say what to do.

    The exit code is 0 when nothing is bad, else 1. No tokens are spent, nothing is changed.

    Example: memd doctor --json
    """
    from memd.ops.doctor import examine  # noqa: PLC0415  (heavy for other commands)

    found = examine(settings())
    if as_json:
        echo_json([asdict(finding) for finding in found])
    else:
        width = max(len(finding.check) for finding in found)
        for finding in found:
            state = typer.style(f"{finding.state:<4}", fg=COLOURS[finding.state])  # echo takes it off for a file
            echo(f"{state}  {finding.check:<{width}}  {finding.said}")
    if any(finding.state == "bad" for finding in found):
        raise typer.Exit(1)


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(doctor)
