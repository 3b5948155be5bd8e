"""What memd needs for a number of users a day: the tables of docs/scale.md, from the figures of `benchmarks capacity`.

    .venv/bin/python -m benchmarks.needs                                    # 1 K, 100 K, 10 M users
    .venv/bin/python -m benchmarks.needs 25000 --contexts 12 --reads 60     # your own

It only counts; nothing is measured. The figures are those in benchmarks/capacity/results.json.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil
from pathlib import Path
from typing import Any

from memd.config.settings import ExtractionSettings, SaidSettings, SchedulerSettings
from memd.inbox.cost import BATCH_SHARE

WORKER_MS = "a context: CPU of the worker"
SERVER_MS = "a context: CPU of the server, from push to ack"
SCHEDULER_MS = "a context: CPU of the scheduler"
POSTGRES_MS = "a context: CPU of PostgreSQL"
LOG_BYTES = "a context: bytes of PostgreSQL's log"
PENDING_BYTES = "a context that waits: bytes of the server's memory"
ENDED_BYTES = "a context that has ended: bytes of the server's memory, for a day (its receipt)"
LEDGER_BYTES = "a message taken in: bytes in the table ledger, for good"
SAID_BYTES = "a context: bytes in the table said, for 180 days"
USER_BYTES = "a user with 100 facts: bytes in the table documents, both versions"
WARM_MS = "a read over HTTP that finds its cache warm: CPU of memd serve"
COLD_MS = "a first read over HTTP: CPU of memd serve"
READ_POSTGRES_MS = "a read over HTTP: CPU of PostgreSQL"
READ_POSTGRES_COLD_MS = "a first read over HTTP: CPU of PostgreSQL"
PLAIN_TOKENS = "a request with 100 facts and such a context: tokens at the full price"
CACHED_TOKENS = "a request: tokens from the provider's cache"
REPLY_TOKENS = "a reply, most to whole sessions: tokens"
MEASURED = (
    WORKER_MS,
    SERVER_MS,
    SCHEDULER_MS,
    POSTGRES_MS,
    LOG_BYTES,
    PENDING_BYTES,
    ENDED_BYTES,
    LEDGER_BYTES,
    SAID_BYTES,
    USER_BYTES,
    COLD_MS,
    READ_POSTGRES_COLD_MS,
    WARM_MS,
    READ_POSTGRES_MS,
    PLAIN_TOKENS,
    CACHED_TOKENS,
    REPLY_TOKENS,
)

FIRST = "| measured | |"
FIGURES = Path(__file__).parent / "capacity" / "results.json"
USERS = (1_000, 100_000, 10_000_000)
DAY_S, HOUR_S, YEAR_DAYS = 86_400, 3_600, 365
CALLS = 256
"""Calls in flight of a worker: above, another worker is cheaper (docs/operations.md)."""

POOL = 8
"""Connections of a process to PostgreSQL, by default."""


@dataclass(frozen=True, slots=True)
class Use:
    """What a user does in a day, the model, and the machines. The defaults are the page's."""

    contexts: float = 5
    reads: float = 20
    messages: float = 2
    peak: float = 3
    call_s: float = 4
    outage_h: float = 4
    inbox_gb: float = 32
    database_cores: float = 16
    database_tb: float = 4
    share: float = 0.5


MEANINGS = {
    "contexts": "contexts a user a day",
    "reads": "reads a user a day, over HTTP",
    "messages": "messages of a context",
    "peak": "the busiest hour, in means of the day",
    "call_s": "seconds of a model call",
    "outage_h": "hours without a model, at the peak, that the inbox must hold",
    "inbox_gb": "GB of memory of one inbox's server",
    "database_cores": "cores of one PostgreSQL",
    "database_tb": "TB of disk of one PostgreSQL",
    "share": "of a core or a machine that is planned for at the peak",
}


class Costs:
    """The measured figures by name, and the prices of the default model."""

    def __init__(self, figures: Mapping[str, Mapping[str, Any]]) -> None:
        self._figures = figures

    def __getitem__(self, name: str) -> float:
        return float(self._figures[name]["value"])

    def text(self, name: str) -> str:
        """A figure with its unit, for a reader."""
        figure = self._figures[name]
        return f"{_digits(figure['value'])} {figure['unit']}"

    @property
    def core_s(self) -> dict[str, float]:
        """Seconds of a core: of a context by part, of a read by part; a read as if it always were the first."""
        return {
            "worker": self[WORKER_MS] / 1e3,
            "server": self[SERVER_MS] / 1e3,
            "scheduler": self[SCHEDULER_MS] / 1e3,
            "postgres": self[POSTGRES_MS] / 1e3,
            "serve": self[COLD_MS] / 1e3,
            "postgres_read": self[READ_POSTGRES_COLD_MS] / 1e3,
        }

    @property
    def tokens(self) -> float:
        """Tokens of a context."""
        return self[PLAIN_TOKENS] + self[CACHED_TOKENS] + self[REPLY_TOKENS]

    @property
    def usd(self) -> float:
        """US dollars of a context."""
        price = ExtractionSettings().prices[ExtractionSettings().model]
        return (
            self[PLAIN_TOKENS] * price.input
            + self[CACHED_TOKENS] * price.cache_read
            + self[REPLY_TOKENS] * price.output
        ) / 1e6


def read_costs(file: Path = FIGURES) -> Costs:
    """The figures of a run of `benchmarks capacity`."""
    found = json.loads(file.read_text(encoding="utf-8"))
    return Costs({figure["what"]: figure for figure in found["figures"]})


@dataclass(frozen=True, slots=True)
class Need:
    """One row: what, how it is counted, how much."""

    what: str
    formula: str
    value: float
    unit: str = ""

    @property
    def text(self) -> str:
        """The value for a reader: three digits, and a letter for the power of ten."""
        if self.unit == "$":
            return f"${short(self.value)}"
        return f"{short(self.value)}{self.unit}"


def needs(costs: Costs, use: Use, users: float) -> Iterator[Need]:
    """What this many users a day need."""
    day = users * use.contexts
    rate, reads = day * use.peak / DAY_S, users * use.reads * use.peak / DAY_S
    yield Need("contexts a day", "users × contexts", day)
    yield Need("contexts a second at the peak, **r**", "× peak / 86,400 s", rate)
    yield Need("reads a second at the peak, **q**", "users × reads × peak / 86,400 s", reads)
    yield from _inbox(costs, use, rate, day)
    yield from _processes(costs, use, rate, reads)
    yield from _database(costs, use, users, rate, reads)
    yield Need("Model: tokens a day", f"contexts a day × {costs.tokens:,.0f}", day * costs.tokens)
    yield Need("Model: dollars a day", f"contexts a day × ${costs.usd:.5f}", day * costs.usd, "$")
    yield Need("… in batches", f"× {BATCH_SHARE:g}", day * costs.usd * BATCH_SHARE, "$")


def _inbox(costs: Costs, use: Use, rate: float, day: float) -> Iterator[Need]:
    waits, pending, ended = SchedulerSettings().max_wait_s, costs[PENDING_BYTES], costs[ENDED_BYTES]
    usual = rate * waits * pending + day * ended
    most, cores = usual + rate * use.outage_h * HOUR_S * pending, rate * costs.core_s["server"]
    yield Need("Inbox: memory", f"r × {waits:g} s × {pending:,.0f} B + contexts a day × {ended:,.0f} B", usual, "B")
    yield Need(
        f"… and with the model away for {use.outage_h:g} h", f"+ r × {use.outage_h:g} h × {pending:,.0f} B", most, "B"
    )
    yield Need("… cores of its thread", f"r × {costs[SERVER_MS]:.2f} ms", cores)
    count = max(ceil(cores / use.share), ceil(most / (use.inbox_gb * 1e9)))
    yield Need("**inboxes**", f"a thread at {use.share:.0%}, {use.inbox_gb:g} GB each", count)


def _processes(costs: Costs, use: Use, rate: float, reads: float) -> Iterator[Need]:
    calls, cores = rate * use.call_s, rate * costs.core_s["worker"]
    served = reads * costs.core_s["serve"]
    yield Need("Workers: calls in flight", f"r × {use.call_s:g} s", calls)
    yield Need("… cores", f"r × {costs[WORKER_MS]:.1f} ms", cores)
    yield Need("**workers**", f"a core at {use.share:.0%}, {CALLS} calls each", _workers(costs, use, rate))
    yield Need("`memd serve`: cores", f"q × {costs[COLD_MS]:.1f} ms", served)
    yield Need("**`memd serve`**", f"a core at {use.share:.0%} each", ceil(served / use.share))


def _workers(costs: Costs, use: Use, rate: float) -> int:
    return max(ceil(rate * use.call_s / CALLS), ceil(rate * costs.core_s["worker"] / use.share))


def _database(costs: Costs, use: Use, users: float, rate: float, reads: float) -> Iterator[Need]:
    per_context = costs.core_s["postgres"]
    cores = rate * per_context + reads * costs.core_s["postgres_read"]
    ledger, said = YEAR_DAYS * use.contexts * use.messages, SaidSettings().days * use.contexts
    size = _user_bytes(costs, use) * users
    processes = _workers(costs, use, rate) + ceil(reads * costs.core_s["serve"] / use.share)
    yield Need(
        "PostgreSQL: rows after a year", f"users × (1 + {ledger:,.0f} of the ledger + {said:,.0f} said)",
        users * (1 + ledger + said),
    )  # fmt: skip
    yield Need(
        "… bytes after a year", f"users × ({costs[USER_BYTES]:,.0f} + {ledger:,.0f} × "
        f"{costs[LEDGER_BYTES]:,.0f} + {said:,.0f} × {costs[SAID_BYTES]:,.0f})", size, "B",
    )  # fmt: skip
    written = costs[LOG_BYTES]
    yield Need("… log a second at the peak", f"r × {written:,.0f} B", rate * written, "B")
    yield Need(
        "… cores at the peak",
        f"r × {costs[POSTGRES_MS]:.1f} ms + q × {costs[READ_POSTGRES_COLD_MS]:.1f} ms",
        cores,
    )
    yield Need("… connections", f"processes × {POOL}", processes * POOL)
    count = max(ceil(cores / (use.share * use.database_cores)), ceil(size / (use.database_tb * 1e12)))
    yield Need("**databases**", f"{use.database_cores:g} cores at {use.share:.0%}, {use.database_tb:g} TB each", count)


def _user_bytes(costs: Costs, use: Use) -> float:
    """Bytes in PostgreSQL of a user after a year."""
    contexts = YEAR_DAYS * use.contexts
    return (
        costs[USER_BYTES]
        + contexts * use.messages * costs[LEDGER_BYTES]
        + SaidSettings().days * use.contexts * costs[SAID_BYTES]
    )


def limits(costs: Costs, use: Use) -> Iterator[tuple[str, str, float]]:
    """Where one of each part is full: the part, how it is counted, and the users a day it is enough for."""
    per_user = use.contexts * use.peak / DAY_S
    held = per_user * (SchedulerSettings().max_wait_s + use.outage_h * HOUR_S) * costs[PENDING_BYTES]
    held += use.contexts * costs[ENDED_BYTES]
    core = costs.core_s
    read = use.reads * use.peak / DAY_S
    yield "a worker, its core", "1 / CPU of a context", 1 / core["worker"] / per_user
    yield "a worker, its calls", f"{CALLS} / seconds of a call", CALLS / use.call_s / per_user
    yield "`memd serve`, its core", "1 / CPU of a read", 1 / core["serve"] / read
    yield "the scheduler, its core", "1 / CPU of a context", 1 / core["scheduler"] / per_user
    yield "the inbox, its thread", "1 / CPU of a context", 1 / core["server"] / per_user
    yield "the inbox, its memory", f"{use.inbox_gb:g} GB, {use.outage_h:g} h without a model", use.inbox_gb * 1e9 / held
    spent = per_user * core["postgres"] + read * core["postgres_read"]
    yield "PostgreSQL, its cores", f"{use.database_cores:g} / CPU of contexts and reads", use.database_cores / spent
    yield (
        "PostgreSQL, its disk", f"{use.database_tb:g} TB, after a year",
        use.database_tb * 1e12 / _user_bytes(costs, use),
    )  # fmt: skip


def short(value: float) -> str:
    """Three digits, and a letter for the power of ten: 26.4 M."""
    for power, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "K")):
        if value >= power * 0.9995:
            return f"{_digits(value / power)} {letter}"
    return _digits(value) if value >= 0.01 or value == 0 else "< 0.01"


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 99.95 or value == int(value) else f"{value:.3g}"


def markdown(costs: Costs, use: Use, users: Sequence[float]) -> str:
    """What was measured, what this many users need, and where one of each part is full."""
    columns = [list(needs(costs, use, each)) for each in users]
    lines = [FIRST, "|---|---:|", *(f"| {name} | {costs.text(name)} |" for name in MEASURED), ""]
    lines += ["| users a day | | " + " | ".join(map(short, users)) + " |", "|---|---|" + "---:|" * len(users)]
    for rows in zip(*columns, strict=True):
        lines.append(f"| {rows[0].what} | {rows[0].formula} | " + " | ".join(row.text for row in rows) + " |")
    lines += ["", "| one of them is full | | at users a day |", "|---|---|---:|"]
    lines += [f"| {part} | {formula} | {short(count)} |" for part, formula, count in limits(costs, use)]
    return "\n".join(lines) + "\n"


def put_into(page: Path, tables: str) -> None:
    """Replace the tables of a page: from the first line of the first one to the next heading."""
    before, _, rest = page.read_text(encoding="utf-8").partition(FIRST)
    after = rest.partition("\n## ")[2]
    page.write_text(f"{before}{tables}\n## {after}", encoding="utf-8")


def main() -> None:
    """Print the tables, or put them into a page."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.needs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("users", nargs="*", type=float, default=USERS)
    for field in fields(Use):
        meaning = f"{MEANINGS[field.name]} ({field.default:g})"
        parser.add_argument(f"--{field.name.replace('_', '-')}", type=float, default=field.default, help=meaning)
    parser.add_argument("--into", type=Path, metavar="PAGE", help="put the tables into a page (docs/scale.md)")
    options = vars(parser.parse_args())
    users, page = options.pop("users"), options.pop("into")
    tables = markdown(read_costs(), Use(**options), users)
    if page:
        put_into(page, tables)
    sys.stdout.write(tables)


if __name__ == "__main__":
    main()
