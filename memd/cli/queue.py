"""Looking after what is under way: flush, receipts, status."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memd.cli.common import DIED, TIMED_OUT, Json, echo, echo_json, settings, warn
from memd.printable import printable

if TYPE_CHECKING:
    from memd.inbox.flush import FlushProgress

STEP = 0.1
"""Without a terminal, progress is a line for each tenth."""


def flush(
    user: Annotated[str | None, typer.Option("--user", help="Only this user's keys.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Only this agent's keys.")] = None,
    thread: Annotated[str | None, typer.Option("--thread", help="Only this thread's keys.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until what was accepted before has ended.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", min=0, help="Seconds to wait at most.")] = 60.0,
    as_json: Json = False,
) -> None:
    """Make pending keys due now.

    With --wait the exit code is 0 when all was stored or skipped, 3 when something died, 4 when the time was over.

    Example: memd flush --user ana --wait
    """
    from memd.client import Memd  # noqa: PLC0415

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
        warn(f"{result.rationed} keys wait for a budget, which no flush overrides, until {when(result.rationed_until)}")
    if result.timed_out:
        raise typer.Exit(TIMED_OUT)
    if result.counts.get("dead"):
        raise typer.Exit(DIED)


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[FlushProgress], None] | None]:
    """Progress on stderr: a bar on a terminal, else a line for each tenth."""
    if not shown:
        yield None
    elif sys.stderr.isatty():
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import Progress  # noqa: PLC0415

        with Progress(console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("remembering", total=None)
            yield lambda at: bar.update(task, total=at.total, completed=at.ended)
    else:
        yield _Lines()


def when(moment: datetime | None) -> str:
    """A moment for people."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if moment else "-"


class _Lines:
    """Prints a line whenever another tenth is done."""

    def __init__(self) -> None:
        self._said = 0.0

    def __call__(self, at: FlushProgress) -> None:
        share = at.ended / at.total if at.total else 0.0
        if share - self._said >= STEP:
            self._said = share
            warn(f"{at.ended} of {at.total} keys have ended")


def receipt(
    receipt_id: Annotated[str, typer.Argument(metavar="ID", help="What a push answered.")], as_json: Json = False
) -> None:
    """What became of a push: pending, claimed, stored (with the facts), skipped or dead (with the reason).

    Example: memd receipt 0a1b….5f6e7d8c.3
    """
    from memd.client import Memd  # noqa: PLC0415

    with Memd(settings()) as memd:
        outcome = memd.receipt(receipt_id)
    if as_json:
        echo_json(asdict(outcome))
        return
    detail = outcome.reason or ", ".join(outcome.fact_ids)
    if outcome.due_at:
        due = f"due {outcome.due_at:%H:%M:%S}"
        detail = f"waits for a budget until {when(outcome.due_at)}" if outcome.reason == "budget" else due
    refused = ", ".join(f"{count} {reason}" for reason, count in outcome.refused.items())
    echo(outcome.state + (f": {detail}" if detail else "") + (f"; refused: {refused}" if refused else ""))


def status(
    cost: Annotated[
        bool, typer.Option("--cost", help="Tokens and money by model instead, today and in total.")
    ] = False,
    as_json: Json = False,
) -> None:
    """The inbox, the workers and the server in figures; with --cost what the model's calls have used.

    Example: memd status --json
    """
    from memd.inbox.connection import connect  # noqa: PLC0415
    from memd.inbox.status import read_status  # noqa: PLC0415

    if cost:
        _cost(as_json)
        return
    found_settings = settings()
    with connect(found_settings) as client:
        found = read_status(client, found_settings).as_dict()
    if as_json:
        echo_json(found)
        return
    for name, value in _rows(found):
        echo(f"{name:<18}{value}")


def _cost(as_json: bool) -> None:
    from memd.cli.cost import cost_lines  # noqa: PLC0415
    from memd.client import Memd  # noqa: PLC0415

    with Memd(settings()) as memd:
        found = memd.cost()
    if as_json:
        echo_json(found.as_dict())
        return
    for line in cost_lines(found):
        echo(line)


def _rows(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    server = found["server"]
    yield "server", f"{server['version']}, {server['durability']}"
    for problem in server["unfit"]:
        yield "  unfit", problem
    yield "workers", _workers(found["workers"])
    for pause in found["paused"]:
        yield "paused", f"{pause['code']} for {pause['open_s']:.0f} s; next try in {pause['next_try_s']:.0f} s"
    yield "pending", f"{found['pending']} keys ({found['due']} due, {found['parked']} parked)"
    if found["rationed"]:
        yield "  rationed", f"{found['rationed']} keys wait for a budget until {when(found['rationed_until'])}"
    if found["batched"] or found["batches"]:
        yield "  batched", f"{found['batched']} keys wait for an answer, {found['batches']} batches are out"
    oldest = found["oldest_waiting_s"]
    yield "oldest waiting", "-" if oldest is None else f"{oldest:.1f} s"
    yield "claimed", f"{found['claimed']} keys"
    yield "raw", ", ".join(f"{name} {count}" for name, count in found["raw"].items())
    if found["unread"]:
        yield "  unread", f"{', '.join(map(printable, found['unread']))}: name the apps in client.apps"
    yield "stored", f"{found['stored']} of {found['pushes']} pushes"
    yield "skipped", str(found["skipped"])
    yield "dead", f"{found['dead']} ({found['dead_so_far']} so far)"
    for title, key in (
        ("reasons", "by_reason"),
        ("dropped turns", "dropped"),
        ("refused facts", "refused"),
        ("redacted", "redacted"),
    ):
        if found[key]:
            yield title, ", ".join(f"{reason} {count}" for reason, count in found[key].items())
    yield "facts", ", ".join(f"{count} {name}" for name, count in found["facts"].items())
    usage = found["usage"]
    yield "model", f"{usage['model_calls']} calls, {usage['input_tokens']} tokens in, {usage['output_tokens']} out"


def _workers(workers: tuple[dict[str, str], ...]) -> str:
    states = [worker["state"] for worker in workers]
    return ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))) or "none"


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (flush, receipt, status):
        app.command()(command)
