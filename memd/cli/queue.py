"""Pending keys: flush them, and look up receipts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated

import typer

from memd.cli.bars import bar
from memd.cli.common import DIED, TIMED_OUT, Json, OnlyUser, echo, echo_json, settings, warn, when
from memd.client import Memd
from memd.inbox.flush import FlushProgress
from memd.inbox.receipt import Outcome
from memd.printable import counted, noun

STEP = 0.1
"""Without a terminal, progress is a line for each tenth."""


def flush(
    user: OnlyUser = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent's keys.")] = None,
    thread: Annotated[str | None, typer.Option("--thread", help="Only this thread's keys.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until everything accepted before has ended.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait at most.")] = 60.0,
    as_json: Json = False,
) -> None:
    """Make pending keys due now.

    With --wait the exit code is 0 when all was stored or skipped, 3 when something died, 4 when the time was up.

    Example: memd flush --user ana --wait
    """
    with Memd(settings()) as memd, _progress(shown=wait) as progress:
        result = memd.flush(
            user_id=user, agent_name=agent, thread_id=thread, wait=wait, timeout_s=timeout, progress=progress
        )
    if as_json:
        echo_json(asdict(result))
    else:
        counts = ", ".join(f"{count} {state}" for state, count in result.counts.items() if count)
        echo(counts or "nothing was pending")
    if result.rationed:
        keys = f"{counted(result.rationed, 'key')} {noun(result.rationed, 'waits', 'wait')}"
        warn(f"{keys} for a budget, which no flush overrides, until {when(result.rationed_until)}")
    if result.timed_out:
        raise typer.Exit(TIMED_OUT)
    if result.counts.get("dead"):
        raise typer.Exit(DIED)


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[FlushProgress], None] | None]:
    """Show progress on stderr: a bar on a terminal, else a line for each tenth."""
    if not shown:
        yield None
        return
    if not sys.stderr.isatty():
        yield _Lines()
        return
    with bar("remembering") as show:
        yield lambda at: show(at.ended, at.total)


class _Lines:
    """Prints a line whenever another tenth has ended."""

    def __init__(self) -> None:
        self._printed = 0.0

    def __call__(self, at: FlushProgress) -> None:
        share = at.ended / at.total if at.total else 0.0
        if share - self._printed >= STEP:
            self._printed = share
            warn(f"{at.ended} of {counted(at.total, 'key')} {noun(at.ended, 'has', 'have')} ended")


def receipt(
    receipt_id: Annotated[str, typer.Argument(metavar="ID", help="The receipt id that a push returned.")],
    as_json: Json = False,
) -> None:
    """Show the state of a push, or its outcome.

    The states: pending, claimed, stored (with the ids of the facts), skipped or dead (with the reason).

    Example: memd receipt 0a1b….5f6e7d8c.3
    """
    with Memd(settings()) as memd:
        outcome = memd.receipt(receipt_id)
    if as_json:
        echo_json(asdict(outcome))
        return
    refused = ", ".join(f"{count} {reason}" for reason, count in outcome.refused.items())
    not_kept = ", ".join(f"{count} {reason}" for reason, count in outcome.not_kept.items())
    told = (f"; refused: {refused}" if refused else "", f"; not kept: {not_kept}" if not_kept else "")
    echo(_outcome(outcome) + "".join(told))


def _outcome(outcome: Outcome) -> str:
    if outcome.state == "stored" and not outcome.fact_ids:
        return "read, 0 facts"
    detail = outcome.reason or ", ".join(outcome.fact_ids)
    if outcome.due_at:
        due = f"due {outcome.due_at:%H:%M:%S}"
        detail = f"waits for a budget until {when(outcome.due_at)}" if outcome.reason == "budget" else due
    return outcome.state + (f": {detail}" if detail else "")
