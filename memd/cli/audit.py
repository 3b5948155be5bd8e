"""The audit of memories."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from memd.cli.common import Json, echo, echo_json, settings
from memd.printable import printable

if TYPE_CHECKING:
    from memd.ops.audit import Audited, Report

OVER = 1
"""Exit code when there are more findings than the limit."""

SHOWN = 200
"""Findings that the table shows; the counts are of all."""

TEXT_CHARS = 80


def audit(
    user: Annotated[str | None, typer.Argument(metavar="[USER]", help="Whose memories; or --all.")] = None,
    every: Annotated[bool, typer.Option("--all", help="The memories of all users.")] = False,
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent's memory.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Findings that are still fine.")] = 0,
    as_json: Json = False,
) -> None:
    """Find what should not be in a memory: junk, duplicates, echoes, secrets, stale and unproven facts, orders, markup.

    Secrets are shown cut out. The exit code is 1 with more findings than --limit. It changes nothing.

    Example: memd audit ana
    """
    from memd.memory.hand.by_hand import bucket_of  # noqa: PLC0415
    from memd.ops.audit import inspect  # noqa: PLC0415  (each command imports what it needs)

    if (user is None) != every:
        raise typer.BadParameter("name a user, or say --all", param_hint="USER")
    users = None if user is None else [bucket_of(user, agent or "").user_id]
    report = inspect(settings(), users, agent)
    if as_json:
        _json(report, limit)
    else:
        _table(report)
    if len(report.found) > limit:
        raise typer.Exit(OVER)


def _json(report: Report, limit: int) -> None:
    echo_json(
        {
            "memories": report.memories,
            "facts": report.facts,
            "limit": limit,
            "counts": report.counts,
            "findings": [
                {"user_id": one.user_id, "agent_name": one.agent_name, **asdict(one.finding)} for one in report.found
            ],
        }
    )


def _table(report: Report) -> None:
    rows = [_row(one) for one in report.found[:SHOWN]]
    if rows:
        head = ("whose", "rule", "where", "why", "text")
        widths = [max(len(row[column]) for row in [head, *rows]) for column in range(4)]
        for row in [head, *rows]:
            cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
            echo("  ".join([*cells, row[4]]).rstrip())
    if len(report.found) > SHOWN:
        echo(f"… and {len(report.found) - SHOWN} more; --json has all")
    counts = ", ".join(f"{count} {rule}" for rule, count in report.counts.items())
    echo(f"{report.facts} facts in {report.memories} memories: {counts or 'nothing found'}")


def _row(one: Audited) -> tuple[str, str, str, str, str]:
    found = one.finding
    whose = printable(one.user_id) + (f" ({printable(one.agent_name)})" if one.agent_name else "")
    text = printable(found.text)
    cut = text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"
    return whose, found.rule, printable(found.fact_id or found.place), printable(found.detail), cut


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(audit)
