"""Overload: producers at twice the drain rate, then a server near its memory limit.

Nothing must be lost; keys must wait in the inbox and merge, not in RQ's queue; the cost of a push must not grow. Near
the limit pushes are refused with InboxFull, and the backlog drains.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.drain import asking
from benchmarks.figures import Figure, Measurement, Plot, at_least, at_most
from benchmarks.ground import Ground, daemon, ground, model, tcp_ground
from benchmarks.load import statement, text
from benchmarks.sizes import Size
from benchmarks.timing import median, percentile, wait_until
from memd.client import Memd
from memd.errors import InboxFull
from memd.inbox.status import Status
from memd.inbox.verbs import BELLS

AREA = "overload"
USERS = 200
CONCURRENCY = 8
MODEL_S = 0.5
DRAIN_RATE = CONCURRENCY / MODEL_S
"""The most keys a second of one worker; on a slower machine the overload is larger."""

SECONDS = {"tiny": 4.0, "short": 120.0, "full": 300.0}
FACTOR = 2
LIMIT_MB = 40


@dataclass(frozen=True, slots=True)
class Look:
    """One second: its time, waiting keys, RQ's queue, push latencies in µs, messages and model calls so far."""

    at_s: float
    pending: int
    bells: int
    push_us: float
    messages: int
    calls: int


def measure(size: Size) -> Iterator[Measurement]:
    """Both parts."""
    yield from _twice(size)
    yield from _near_the_limit(size)


@contextmanager
def _overloaded(*options: str) -> Iterator[Ground]:
    """One worker with few concurrent calls and a slow model."""
    changes = {"scheduler__quiet_s": 0.5, "scheduler__max_wait_s": 3}
    grounds = tcp_ground("127.0.0.1", *options, **changes) if options else ground(**changes)
    with grounds as idle, model(idle.settings.data_dir, MODEL_S) as (address, _):
        place = Ground(asking(idle, address, CONCURRENCY), idle.client, idle.server)
        place.clear()
        with daemon(place):
            yield place


def _twice(size: Size) -> Iterator[Measurement]:
    with _overloaded() as place, Memd(place.settings) as memd:
        looks, pushed = _push_steadily(memd, place, SECONDS[size.name])
        backlog = memd.status().pending
        took = wait_until(lambda: place.ended(pushed), "the backlog has drained", 900, 0.1)
        status = memd.status()
    quarter = max(1, len(looks) // 4)
    early, late = median([x.push_us for x in looks[:quarter]]), median([x.push_us for x in looks[-quarter:]])
    yield Figure(
        AREA, f"contexts lost of {pushed:,}, at {FACTOR} × the drain rate", _lost(status, pushed), "",
        target=at_most(0), note=f"{status.stored:,} stored, {status.skipped:,} skipped, {status.dead_so_far:,} dead",
    )  # fmt: skip
    first, last = _merging(looks[:quarter]), _merging(looks[-quarter:])
    yield Figure(
        AREA, "messages a model call, last quarter of the time", last, "", peer="first quarter", peer_value=first,
        target=at_least(1.0, of="ratio"),
    )  # fmt: skip
    yield Figure(AREA, "RQ's queue, maximum", max(x.bells for x in looks), "bells", target=at_most(1))
    yield Figure(
        AREA, "push p50, last quarter of the time", late, "µs", peer="first quarter", peer_value=early,
        target=at_most(1.2, of="ratio"),
    )  # fmt: skip
    yield Figure(AREA, f"until the backlog of {backlog} keys had drained", took, "s")
    yield Plot(
        "overload", "Producers at twice the drain rate", "seconds", "keys pending",
        {"keys pending": [(max(0.5, x.at_s), x.pending) for x in looks]},
    )  # fmt: skip


def _push_steadily(memd: Memd, place: Ground, seconds: float) -> tuple[list[Look], int]:
    """Push at the rate for this long; returns a sample a second, and the count of pushes."""
    rate = DRAIN_RATE * FACTOR
    looks: list[Look] = []
    taken: list[float] = []
    _push(memd, 0)  # the patterns are compiled, the connection is open; pushed again it changes nothing
    started = time.monotonic()
    number = 0
    while (now := time.monotonic() - started) < seconds:
        before = time.perf_counter()
        _push(memd, number)
        taken.append(time.perf_counter() - before)
        number += 1
        if now >= len(looks):
            looks.append(_look(memd, place, now, taken))
            taken = []
        time.sleep(max(0.0, started + number / rate - time.monotonic()))
    return looks, number


def _push(memd: Memd, number: int) -> None:
    user, turn = number % USERS, number // USERS
    said = [
        {"role": "user", "content": statement(turn, 200), "id": f"u{turn}"},
        {"role": "assistant", "content": text(200, turn), "id": f"a{turn}"},
    ]
    memd.push(said, thread_id="thread", user_id=f"user-{user}")


def _look(memd: Memd, place: Ground, now: float, taken: list[float]) -> Look:
    status = memd.status()
    bells = int(place.client.llen(f"rq:queue:{BELLS}"))
    stats = place.client.hget("{memd}:stats", "messages_stored")
    p50 = percentile(taken, 0.5) * 1e6
    return Look(now, status.pending, bells, p50, int(stats or 0), status.usage["model_calls"])


def _merging(looks: list[Look]) -> float:
    """Messages a model call between the first and the last sample."""
    calls = looks[-1].calls - looks[0].calls
    return (looks[-1].messages - looks[0].messages) / calls if calls else 0.0


def _lost(status: Status, pushed: int) -> int:
    return pushed - status.stored - status.skipped - status.dead_so_far


def _near_the_limit(size: Size) -> Iterator[Measurement]:
    """Fill a small server until it refuses, then let it drain."""
    limit = 8 if size.name == "tiny" else LIMIT_MB
    with (
        _overloaded("--maxmemory", f"{limit}mb", "--maxmemory-policy", "noeviction") as place,
        Memd(place.settings) as memd,
    ):
        refused, number, words = 0, 0, ""
        while not refused:
            try:
                memd.push(
                    [{"role": "user", "content": text(20_000, number), "id": f"u{number}"}],
                    thread_id="thread", user_id=f"large-{number}",
                )  # fmt: skip
                number += 1
            except InboxFull as error:
                refused, words = refused + 1, str(error)
        used = float(place.client.info("memory")["used_memory"]) / limit / 2**20
        wait_until(lambda: place.ended(number), "the backlog has drained", 900, 0.1)
        lost = _lost(memd.status(), number)
        opened = wait_until(lambda: _accepted(memd), "pushes are accepted again", 60, 0.1)
    yield Figure(AREA, f"contexts lost of {number:,}, near the memory limit", lost, "", target=at_most(0), note=words)
    yield Figure(AREA, "memory used when pushes were first refused", used * 100, "%", target=at_most(100))
    yield Figure(AREA, "until pushes are accepted again, after the backlog", opened, "s")


def _accepted(memd: Memd) -> bool:
    try:
        _push(memd, 1)
    except InboxFull:  # refused: push again until the deadline
        return False
    return True
