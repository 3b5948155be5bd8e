"""Debounce: the time from a key's due time to its claim, with real processes, and the CPU of idle processes.

A key's due time is the one in its receipt; the claim's moment is when the server renames the key's hash.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import IO

from benchmarks.figures import Figure, Measurement, Target, at_most
from benchmarks.ground import Ground, daemon, environment, ground, plain_client, process
from benchmarks.load import conversation
from benchmarks.peers.checked import FAILED_JOBS, check_succeeded, figures_of, run
from benchmarks.sizes import Size
from benchmarks.timing import percentile, thread_cpu, tree_cpu, wait_until
from memd.context import Context, Key, Message, identify
from memd.inbox import verbs
from memd.inbox.connection import Call, Flight, inbox_url
from memd.inbox.verbs import Merged
from memd.push.filtering import to_context
from memd.push.validation import check_push

AREA = "debounce"
QUIET_S = 1.0
STEP_S = 0.02
"""Seconds of pushes that are sent in one bundle."""

PEER_RATE = 5
"""Tasks a second of the peers, for twice as long: few enough to overload no peer."""


def measure(size: Size) -> Iterator[Measurement]:
    """Under load, out of idle, doing nothing; then the peers."""
    with ground(scheduler__quiet_s=QUIET_S, drain__linger_s=0.5) as place, daemon(place, workers=2) as parts:
        yield from _lateness("500 due keys/s, nothing to extract", place, _light(place, 500, size.due_s), at_most(50))
        yield from _lateness("50 due keys/s, extracted and stored", place, _whole(place, 50, size.due_s), at_most(50))
        yield from _lateness("out of full idle", place, _shots(place, size.idle_shots), at_most(150))
        yield from _idle(parts[0].pid, parts[1].pid, size.idle_s)
    yield from figures_of(AREA, "RQ's scheduler", _rq(size))
    yield from figures_of(AREA, "pydocket", _pydocket(size))
    yield from figures_of(AREA, "langmem's ReflectionExecutor", _langmem(size))


def _lateness(what: str, place: Ground, late_ms: list[float], target: Target) -> Iterator[Measurement]:
    yield Figure(AREA, f"{what}, p50", percentile(late_ms, 0.5), "ms")
    yield Figure(
        AREA, f"{what}, p99", percentile(late_ms, 0.99), "ms", target=target,
        spread=(min(late_ms), max(late_ms)), note=f"{len(late_ms)} keys",
    )  # fmt: skip


@contextmanager
def _claims(place: Ground) -> Iterator[dict[str, float]]:
    """Key → moment of its claim, for all claims during the block; filled at the end."""
    found: dict[str, float] = {}
    listening = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.listener"],
        env=environment(place.settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    _pipe(listening.stdout).readline()
    try:
        yield found
    finally:
        found.update(json.loads(listening.communicate(timeout=30)[0]))


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def _light(place: Ground, per_second: int, seconds: float) -> list[float]:
    """Keys whose claims end as skipped: this measures the scheduler and the claim without the extraction."""

    def push(number: int) -> Call[Merged]:
        key = Key(f"light-{number}", f"user-{number}")
        return verbs.push(Context(key, identify(key.thread_id, [Message("assistant", "Here you are.", id="a")])))

    return _steady(place, [push(number) for number in range(int(per_second * seconds))], per_second)


def _whole(place: Ground, per_second: int, seconds: float) -> list[float]:
    """Keys whose claims end as stored."""
    pushes = [check_push(conversation(n), place.settings.client) for n in range(int(per_second * seconds))]
    return _steady(place, [verbs.push(to_context(push)) for push in pushes], per_second)


def _steady(place: Ground, calls: list[Call[Merged]], per_second: int) -> list[float]:
    """Push at a steady rate; returns the milliseconds from due to claimed."""
    bundle = max(1, int(per_second * STEP_S))
    due: dict[str, int] = {}
    with _claims(place) as claimed:
        started = time.monotonic()
        for first in range(0, len(calls), bundle):
            for answer in Flight(place.client, calls[first : first + bundle]).land():
                assert isinstance(answer, Merged)
                due[answer.key] = answer.due_ms
            time.sleep(max(0.0, started + (first + bundle) / per_second - time.monotonic()))
        _wait_for_empty(place)
    return _late_ms(due, claimed)


def _shots(place: Ground, count: int) -> list[float]:
    """Single keys, each pushed when the drain before it has ended and every process sleeps."""
    due: dict[str, int] = {}
    with _claims(place) as claimed:
        for number in range(count):
            time.sleep(place.settings.drain.linger_s + 0.5)
            call = verbs.push(to_context(check_push(conversation(10_000_000 + number), place.settings.client)))
            (answer,) = Flight(place.client, [call]).land()
            assert isinstance(answer, Merged)
            due[answer.key] = answer.due_ms
            _wait_for_empty(place)
    return _late_ms(due, claimed)


def _wait_for_empty(place: Ground) -> None:
    def empty() -> bool:
        return place.client.zcard(f"{verbs.P}:due") == place.client.zcard(f"{verbs.P}:claimed") == 0

    wait_until(empty, "all keys have ended", 120)


def _late_ms(due: Mapping[str, int], claimed: Mapping[str, float]) -> list[float]:
    return [claimed[key] * 1000 - moment for key, moment in due.items() if key in claimed]


def _idle(scheduler: int, worker: int, seconds: float) -> Iterator[Measurement]:
    time.sleep(1)
    before, ticks = thread_cpu(scheduler), tree_cpu(worker)
    time.sleep(seconds)
    share = (thread_cpu(scheduler) - before) / seconds * 100
    yield Figure(AREA, "idle scheduler, share of a core", share, "%", target=at_most(0.5))
    yield Figure(AREA, "idle worker, share of a core", (tree_cpu(worker) - ticks) / seconds * 100, "%")


def _rq(size: Size) -> Iterator[Measurement]:
    """`rq worker --with-scheduler`, with jobs delayed by a second."""
    from rq import Queue

    from benchmarks.peers.rq_jobs import LATENESS, note

    with ground() as place:
        url = inbox_url(place.settings)
        env = environment(place.settings) | {"BENCH_URL": url}
        words = ["-m", "rq.cli", "worker", "--with-scheduler", "-w", "rq.SimpleWorker", "-u", url, "bench"]
        with process(words, env, place.settings.data_dir / "rq.log"):
            wait_until(lambda: place.client.scard("rq:workers") > 0, "RQ's worker listens", 60)
            queue = Queue("bench", connection=plain_client(place.settings))
            count = int(PEER_RATE * 2 * size.due_s)
            for _ in range(count):
                queue.enqueue_in(timedelta(seconds=QUIET_S), note, time.time() + QUIET_S)
                time.sleep(1 / PEER_RATE)
            client = place.client
            wait_until(lambda: client.llen(LATENESS) + client.zcard(FAILED_JOBS) >= count, "RQ's jobs have ended", 60)
            check_succeeded("RQ's jobs", place.client.llen(LATENESS), count)
            late = [float(value) * 1000 for value in place.client.lrange(LATENESS, 0, -1)]
    yield from _peer(f"RQ's scheduler, {PEER_RATE} due jobs/s", late)


def _pydocket(size: Size) -> Iterator[Measurement]:
    with ground() as place:
        found = run("pydocket", "lateness", PEER_RATE, 2 * size.due_s, env={"BENCH_URL": inbox_url(place.settings)})
    for name in ("scheduled", "debounced"):
        check_succeeded(f"pydocket's {name} tasks", len(found[name]), int(PEER_RATE * 2 * size.due_s))
        yield from _peer(f"pydocket, {name}, {PEER_RATE}/s", [value * 1000 for value in found[name]])


def _langmem(size: Size) -> Iterator[Measurement]:
    count = max(5, int(size.due_s * 5))
    found = run("langmem", count, 0, QUIET_S)
    check_succeeded("langmem's reflections", found["succeeded"], count)
    yield from _peer("langmem's executor, no model", [value * 1000 for value in found["lateness"]])


def _peer(what: str, late_ms: list[float]) -> Iterator[Measurement]:
    yield Figure(AREA, f"{what}, p50", percentile(late_ms, 0.5), "ms")
    yield Figure(AREA, f"{what}, p99", percentile(late_ms, 0.99), "ms", spread=(min(late_ms), max(late_ms)))
