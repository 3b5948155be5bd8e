"""Checks that change nothing: the audit of memories, and the doctor."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from memd.cli.bars import bar
from memd.cli.common import Json, SomeUser, check_one_or_all, echo, echo_json, nothing, settings
from memd.cli.tables import table
from memd.memory.hand.by_hand import bucket_of
from memd.ops.audit import Audited, Report, inspect
from memd.ops.doctor import examine
from memd.printable import counted, printable

OVER = 1
"""Exit code of an audit with more findings than its limit."""

SHOWN = 200
"""Findings in the table; the counts are of all findings."""

TEXT_CHARS = 80


def audit(
    user: SomeUser = None,
    every: Annotated[bool, typer.Option("--all", help="The memories of all users.")] = False,
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent's memory.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Exit code 0 up to this many findings.")] = 0,
    as_json: Json = False,
) -> None:
    """Find what should not be in a memory. It changes nothing.

    The rules find junk, duplicates, echoes, secrets, stale and unproven facts, instructions to the model, and markup.
    Secrets are printed redacted. The exit code is 1 with more findings than --limit.

    Example: memd audit ana --limit 3
    """
    check_one_or_all(user, every=every)
    users = None if user is None else [bucket_of(user, agent or "").user_id]
    with bar("auditing") as advance:
        report = inspect(settings(), users, agent, advance)
    if as_json:
        _json(report, limit)
    else:
        _table(report)
    if len(report.findings) > limit:
        raise typer.Exit(OVER)


def _json(report: Report, limit: int) -> None:
    echo_json(
        {
            "memories": report.memories,
            "facts": report.facts,
            "limit": limit,
            "counts": report.counts,
            "findings": [
                {"user_id": row.user_id, "agent_name": row.agent_name, **asdict(row.finding)} for row in report.findings
            ],
        }
    )


def _table(report: Report) -> None:
    if report.findings:
        table(("whose", "rule", "where", "why", "text"), map(_row, report.findings[:SHOWN]))
    if len(report.findings) > SHOWN:
        echo(f"… and {len(report.findings) - SHOWN} more; --json has all")
    facts = counted(report.facts, "fact")
    counts = ", ".join(f"{count} {rule}" for rule, count in report.counts.items())
    echo(f"{facts} in {counted(report.memories, 'memory', 'memories')}: {counts or 'nothing found'}")
    if not report.memories:
        nothing("no memories")


def _row(row: Audited) -> tuple[str, str, str, str, str]:
    finding = row.finding
    whose = printable(row.user_id) + (f" ({printable(row.agent_name)})" if row.agent_name else "")
    text = printable(finding.text)
    cut = text if len(text) <= TEXT_CHARS else text[: TEXT_CHARS - 1] + "…"
    return whose, finding.rule, printable(finding.fact_id or finding.place), printable(finding.detail), cut


COLOURS = {"ok": typer.colors.GREEN, "warn": typer.colors.YELLOW, "bad": typer.colors.RED}


def doctor(
    ask: Annotated[bool, typer.Option("--ask", help="Also make one real call to the model; it costs tokens.")] = False,
    as_json: Json = False,
) -> None:
    """Check everything memd depends on, and say what to do.

    It checks the server, its accounts, the inbox, the workers, the data folder and the model; it changes nothing and
    spends no tokens without --ask. The exit code is 1 when a check is bad, else 0.

    Example: memd doctor --ask
    """
    found = examine(settings(), ask=ask)
    if as_json:
        echo_json([asdict(finding) for finding in found])
    else:
        width = max(len(finding.check) for finding in found)
        for finding in found:
            state = typer.style(
                f"{finding.state:<4}", fg=COLOURS[finding.state]
            )  # echo removes the colour when it writes to a file
            echo(f"{state}  {finding.check:<{width}}  {finding.said}")
    if any(finding.state == "bad" for finding in found):
        raise typer.Exit(1)
