"""Status and cost: the figures of the inbox, the workers, the server and the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from memd.cli.common import Json, echo, echo_json, settings, when
from memd.cli.tables import table
from memd.client import Memd
from memd.config import Settings
from memd.inbox.breaker import UNFIT, UNFIT_HELP
from memd.inbox.cost import MOST_DAYS, Cost, DayCost, ModelCost
from memd.inbox.hours import Hour
from memd.memory.store.said_reader import keeps_said
from memd.printable import counted, noun, printable

WIDE = ("input", "output", "cache read", "cache write", "USD")
HOUR_HEAD = ("hour (UTC)", "pushes", "stored", "skipped", "dead", "facts", "calls", "tokens", "pending", "most")
DAY_HEAD = ("day (UTC)", "model", "calls", "batched", "tokens", "USD", "facts", "USD a fact")
HEAD = f"{'model':<28}{'calls':>9}{'batched':>9}" + "".join(f"{name:>12}" for name in WIDE)


def status(
    cost: Annotated[
        bool, typer.Option("--cost", help="Instead: tokens and money by model, today and in total.")
    ] = False,
    days: Annotated[
        int, typer.Option("--days", min=0, max=MOST_DAYS, help="With --cost: also each of the last days.")
    ] = 0,
    hours: Annotated[bool, typer.Option("--hours", help="Instead: the counters of the last 48 hours.")] = False,
    as_json: Json = False,
) -> None:
    """Show the figures of the inbox, the workers and the server.

    With --cost: the tokens that the model's calls have used, and their price; --days adds each of the last days. With
    --hours: what each of the last 48 hours counted, oldest first.

    Example: memd status --json
    """
    if cost and hours:
        raise typer.BadParameter("use --cost or --hours, not both", param_hint="--hours")
    if days and not cost:
        raise typer.BadParameter("days are of costs: add --cost", param_hint="--days")
    with Memd(settings()) as memd:
        if hours:
            _show_hours(memd.hours(), as_json=as_json)
            return
        figures = memd.cost(days=days) if cost else memd.status()
    if as_json:
        echo_json(figures.as_dict())
    elif isinstance(figures, Cost):
        for line in _cost_lines(figures):
            echo(line)
        if figures.days:
            echo()
            table(DAY_HEAD, _day_rows(figures.days), DAY_HEAD[2:])
    else:
        for name, value in (*rows(figures.as_dict()), ("what was said", kept_line(memd.settings))):
            echo(f"{name:<18}{value}")


def _show_hours(rows: tuple[Hour, ...], *, as_json: bool) -> None:
    if as_json:
        echo_json([row.as_dict() for row in rows])
    elif rows:
        table(HOUR_HEAD, map(_hour_row, rows), HOUR_HEAD[1:])
    else:
        echo("no hours yet: the scheduler begins to count them when it starts")


def _hour_row(row: Hour) -> tuple[object, ...]:
    keys = ("-" if keys is None else f"{keys:,}" for keys in (row.pending, row.most_pending))
    counts = (row.pushes, row.stored, row.skipped, row.dead, row.facts, row.model_calls, row.tokens)
    return (f"{row.start:%Y-%m-%d %H}:00", *(f"{count:,}" for count in counts), *keys)


def kept_line(settings: Settings) -> str:
    """One line on whether messages are kept, how long, and how to stop it."""
    if not keeps_said(settings):
        return "messages are not kept"
    return f"messages are kept for {counted(settings.said.days, 'day')}, redacted; said.enabled: false stops it"


def rows(figures: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The figures as names and texts, for people."""
    server = figures["server"]
    yield "server", f"{server['version']}, {server['durability']}"
    yield from _servers(server)
    yield "wire", str(figures["wire"])
    for problem in server["unfit"]:
        yield "  unfit", problem
    yield "workers", _workers(figures["workers"])
    if figures["waiting_parts"]:
        yield "  cannot start", f"{', '.join(map(printable, figures['waiting_parts']))}: see the log of memd up there"
    for pause in figures["paused"]:
        yield from _paused(pause)
    yield "pending", f"{counted(figures['pending'], 'key')} ({figures['due']} due, {figures['parked']} parked)"
    if figures["rationed"]:
        yield "  rationed", f"{_waiting(figures['rationed'])} for a budget until {when(figures['rationed_until'])}"
    if figures["batched"] or figures["batches"]:
        batches = counted(figures["batches"], "open batch", "open batches")
        yield "  batched", f"{_waiting(figures['batched'])} for an answer, {batches}"
    oldest = figures["oldest_waiting_s"]
    yield "oldest waiting", "-" if oldest is None else f"{oldest:.1f} s"
    yield "claimed", counted(figures["claimed"], "key")
    yield "raw", ", ".join(f"{name} {count}" for name, count in figures["raw"].items())
    if figures["unread"]:
        yield (
            "  unread",
            f"{', '.join(map(printable, figures['unread']))}: add them to client.apps, or the pushes stay there",
        )
    yield "stored", f"{figures['stored']} of {counted(figures['pushes'], 'push', 'pushes')}"
    yield "skipped", str(figures["skipped"])
    yield "dead", f"{figures['dead']} ({figures['dead_so_far']} so far)"
    if figures["discarded"]:
        lists = ", ".join(f"{name} {count}" for name, count in figures["discarded"].items())
        yield "  discarded", f"letters of raw pushes, by dead.raw_cap, raw_cap_mb or raw_ttl_s: {lists}"
    for title, key in (
        ("reasons", "by_reason"),
        ("dropped turns", "dropped"),
        ("cut blocks", "cut"),
        ("refused facts", "refused"),
        ("redacted", "redacted"),
        ("not kept", "not_kept"),
        ("mended replies", "mended"),
    ):
        if figures[key]:
            yield title, ", ".join(f"{reason} {count}" for reason, count in figures[key].items())
    yield "facts", ", ".join(f"{count} {name}" for name, count in figures["facts"].items())
    usage = figures["usage"]
    tokens = f"{counted(usage['input_tokens'], 'token')} in, {usage['output_tokens']:,} out"
    calls = counted(usage["model_calls"], "call")
    is_asked = usage["input_tokens"] or not usage["model_calls"]  # the rules use no tokens
    yield "model", f"{calls}, {tokens}" if is_asked else f"none asked: {calls} of the rules"


def _servers(server: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if server["primary"]:
        yield "  primary", server["primary"]
    for replica in server["replicas"]:
        yield "  replica", f"{replica['address']} {replica['state']}, {replica['lag_s']} s since it said how far it is"


def _paused(pause: dict[str, Any]) -> Iterator[tuple[str, str]]:
    where = f" on {pause['host']} only" if pause["host"] else ""
    yield "paused", f"{pause['code']}{where} for {pause['open_s']:.0f} s; next try in {pause['next_try_s']:.0f} s"
    if pause["code"] == UNFIT:
        yield "  what to do", UNFIT_HELP


def _waiting(keys: int) -> str:
    return f"{counted(keys, 'key')} {noun(keys, 'waits', 'wait')}"


def _workers(workers: tuple[dict[str, str], ...]) -> str:
    states = [worker["state"] for worker in workers]
    return ", ".join(f"{states.count(state)} {state}" for state in sorted(set(states))) or "none"


def _cost_lines(cost: Cost) -> Iterator[str]:
    """Tokens and money by model, today and in total, with the budgets, and a note on models without a price."""
    for title, rows in ((f"today ({cost.day}, UTC)", cost.today), ("in total", cost.total)):
        yield title
        if not rows:
            yield "  no tokens"
            continue
        yield HEAD
        yield from (_cost_row(row) for row in rows)
        if len(rows) > 1:
            known = [row.usd for row in rows if row.usd is not None]
            yield f"{'all':<28}{sum(row.calls for row in rows):>9,}{'':>57}{sum(known):>12.4f}"
    for name, budget in cost.budgets.items():
        used = "each" if budget.used is None else f"{budget.used:,} used"
        yield f"budget of tokens a day, {name}: {budget.tokens_per_day:,} ({used})"
    unknown = sorted({printable(row.model) for row in (*cost.today, *cost.total) if row.usd is None})
    if unknown:
        yield f"no price for {', '.join(unknown)}: tokens only, left out of the sums; set prices in extraction.prices"


def _day_rows(days: tuple[DayCost, ...]) -> Iterator[tuple[object, ...]]:
    """A row for each day and model; the figures of the whole day are in its first row."""
    for day in days:
        whole = (f"{day.facts:,}", _dollars(day.usd_per_fact))
        for row in day.models:
            tokens = row.input_tokens + row.output_tokens + row.cache_read_tokens + row.cache_write_tokens
            used = (f"{row.calls:,}", f"{row.batch_calls:,}", f"{tokens:,}", _dollars(row.usd))
            yield (day.day, row.model, *used, *whole)
            whole = ("", "")
        if not day.models:
            yield (day.day, "-", "0", "0", "0", "-", *whole)


def _dollars(usd: float | None) -> str:
    return "-" if usd is None else f"{usd:.4f}"


def _cost_row(row: ModelCost) -> str:
    return (
        f"{printable(row.model):<28}{row.calls:>9,}{row.batch_calls:>9,}{row.input_tokens:>12,}{row.output_tokens:>12,}"
        f"{row.cache_read_tokens:>12,}{row.cache_write_tokens:>12,}{_dollars(row.usd):>12}"
    )
