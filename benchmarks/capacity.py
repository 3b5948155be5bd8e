"""What a context, a read and a user cost with the memories in PostgreSQL: the figures that docs/scale.md counts with.

    .venv/bin/python -m benchmarks capacity --out benchmarks/capacity

All parts are on this machine: one server, one PostgreSQL, one scheduler, one worker, one `memd serve`. Each user has
100 facts and takes in contexts of two messages, 1 KB together. CPU time is measured, not speed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from statistics import mean

from benchmarks.cost import fill
from benchmarks.database import Missing
from benchmarks.figures import Figure, Measurement, Skip
from benchmarks.fleet import Fleet, fleet
from benchmarks.ground import ROOT
from benchmarks.hosts import this_machine
from benchmarks.load import conversation
from benchmarks.needs import (
    CACHED_TOKENS,
    COLD_MS,
    ENDED_BYTES,
    LEDGER_BYTES,
    LOG_BYTES,
    PENDING_BYTES,
    PLAIN_TOKENS,
    POSTGRES_MS,
    READ_POSTGRES_COLD_MS,
    READ_POSTGRES_MS,
    REPLY_TOKENS,
    SAID_BYTES,
    SCHEDULER_MS,
    SERVER_MS,
    USER_BYTES,
    WARM_MS,
    WORKER_MS,
)
from benchmarks.sizes import Size
from benchmarks.tokens import of_request
from memd.context import Message, estimate_tokens
from memd.evaluation.saved_replies import read_replies

AREA = "capacity"
CONCURRENCY, MODEL_S = 64, 0.2
LINGER_S = 50
"""A worker that has something to do keeps its child; a new one takes a second of CPU."""

REPLIES = ROOT / "evaluation" / "replies"


def measure(size: Size) -> Iterator[Measurement]:
    """The figures above."""
    yield from _tokens()
    count = max(16, size.contexts // 2)
    try:
        with this_machine() as there, fleet(there, CONCURRENCY, MODEL_S, drain__linger_s=LINGER_S) as found:
            found.employ(1)
            fill(found.place, count)
            yield from _contexts(found, count)
            yield from _reads(found, [f"user-{number}" for number in range(count)])
    except Missing as error:
        yield Skip(AREA, "with PostgreSQL", str(error))


def _tokens() -> Iterator[Measurement]:
    """By memd's own estimate; the replies are those that `memd eval` replays."""
    said = tuple(Message(one["role"], one["content"]) for one in conversation(1)["messages"])
    prompt, prefix = of_request(said)
    replies = [estimate_tokens(json.dumps(one.reply)) for one in read_replies([REPLIES]).values() if one.reply]
    yield Figure(AREA, PLAIN_TOKENS, prompt, "tokens")
    yield Figure(AREA, CACHED_TOKENS, prefix, "tokens")
    yield Figure(
        AREA,
        REPLY_TOKENS,
        mean(replies),
        "tokens",
        note=f"mean of {len(replies)} in evaluation/replies, more than a context of two messages needs",
    )


def _contexts(found: Fleet, users: int) -> Iterator[Measurement]:
    """One context of each user, after one that warms everything and gives each document its second version."""
    found.push(users, users)
    _drain(found)
    tables, log, used, cpu = found.database.tables(), found.database.log_bytes(), found.memory(), found.cpu()
    found.push(users, users)
    pending = found.memory() - used
    _drain(found)
    spent, after = found.cpu().since(cpu, users), found.database.tables()
    grown = {name: after[name][1] - tables[name][1] for name in ("ledger", "said")}
    yield Figure(AREA, WORKER_MS, spent.workers, "ms", note="of which the call of the model some 2 ms")
    yield Figure(AREA, SERVER_MS, spent.server, "ms")
    yield Figure(AREA, SCHEDULER_MS, spent.scheduler, "ms")
    yield Figure(AREA, POSTGRES_MS, spent.postgres, "ms")
    yield Figure(AREA, LOG_BYTES, (found.database.log_bytes() - log) / users, "B")
    yield Figure(AREA, PENDING_BYTES, pending / users, "B")
    yield Figure(AREA, ENDED_BYTES, (found.memory() - used) / users, "B")
    rows, size = after["ledger"]
    yield Figure(AREA, LEDGER_BYTES, size / rows, "B", note=f"{rows:,} rows; these grew it by {grown['ledger']:,} B")
    rows, size = after["said"]
    yield Figure(AREA, SAID_BYTES, size / rows, "B", note=f"{rows:,} rows; these grew it by {grown['said']:,} B")
    rows, size = after["documents"]
    yield Figure(AREA, USER_BYTES, size / rows, "B", note=f"{rows:,} rows")


def _drain(found: Fleet) -> None:
    found.flush()
    found.finish()


def _reads(found: Fleet, users: list[str]) -> Iterator[Measurement]:
    """Each user's block once, and once more."""
    host = found.hosts[0]
    before = found.cpu()
    found.inject(host, users)
    between = found.cpu()
    found.inject(host, users)
    cold, warm = between.since(before, len(users)), found.cpu().since(between, len(users))
    yield Figure(AREA, COLD_MS, cold.readers, "ms")
    yield Figure(AREA, WARM_MS, warm.readers, "ms")
    yield Figure(AREA, READ_POSTGRES_COLD_MS, cold.postgres, "ms")
    yield Figure(AREA, READ_POSTGRES_MS, warm.postgres, "ms")
