"""Drain: due contexts are claimed, extracted, stored and acked by the same workers as in `memd up`.

Offline with two workers; then one worker against an HTTP model that replies at once, after 0.2 s and after 2 s,
compared with the bare SDK loop. Each context has its own user and document, so each is a durable write.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import orjson
from msgspec import structs

from benchmarks.figures import Figure, Measurement, at_least, at_most
from benchmarks.ground import Ground, Process, daemon, environment, ground, model, plain_client, process
from benchmarks.load import conversation, full_document
from benchmarks.peers.checked import FAILED_JOBS, check_succeeded, figures_of, run
from benchmarks.sizes import SHORT, Size
from benchmarks.timing import Peak, interleaved, median, server_cpu, spread, tree_cpu, wait_until
from memd.client import Memd
from memd.config import Secret, Settings
from memd.context import Bucket
from memd.disk import files
from memd.inbox import verbs
from memd.inbox.connection import Flight, inbox_url
from memd.push.filtering import to_context
from memd.push.validation import check_push

AREA = "drain"
CONCURRENCY = 256
BOUNDS = {0.0: 0.8, 0.2: 0.9, 2.0: 0.95}
"""By the seconds that the model takes, the least share of the bare loop's rate."""

TIMEOUT_S = 600


@dataclass(frozen=True, slots=True)
class Drained:
    """One drain: contexts a second, CPU milliseconds a context of memd and of the server, peak memory of a worker."""

    rate: float
    cpu_ms: float
    server_ms: float
    memory_mb: float = 0.0


def measure(size: Size) -> Iterator[Measurement]:
    """Drains without a model and with a model, then those of the peers."""
    yield from figures_of(AREA, "memd, offline", _offline(size))
    for delay_s, count in ((0.0, size.contexts // 4), (0.2, size.contexts // 2), (2.0, size.slow_calls)):
        yield from figures_of(AREA, f"memd, HTTP model, {delay_s:g} s", _with_model(size, delay_s, count))
    yield from figures_of(AREA, "RQ alone", _rq(size))
    yield from figures_of(AREA, "pydocket", _pydocket(size))
    yield from figures_of(AREA, "langmem's ReflectionExecutor", _langmem(size))


def push_all(place: Ground, count: int, start: int = 0, chars: int = 512, users: int | None = None) -> None:
    """Push contexts through the trusted door, many in a pipeline: each of another user, or of these users in turn."""
    numbers = range(start, start + count)
    said = (conversation(number, chars) for number in numbers)
    if users:
        said = ({**one, "user_id": f"user-{number % users}"} for number, one in zip(numbers, said, strict=True))
    push_said(place, said)


def push_said(place: Ground, conversations: Iterable[dict[str, Any]]) -> None:
    """Push these conversations through the trusted door, 200 in a pipeline."""
    left = iter(conversations)
    while some := list(islice(left, 200)):
        pushes = (check_push(one, place.settings.client) for one in some)
        for answer in Flight(place.client, [verbs.push(to_context(push)) for push in pushes]).land():
            if isinstance(answer, Exception):
                raise answer


def drained(place: Ground, parts: list[Process], count: int, start: int = 0) -> Drained:
    """Push, make all keys due at once, and wait for the last ack."""
    push_all(place, count, start)
    done, before = _ended(place), _counted(place)
    cpu, served = sum(tree_cpu(part.pid) for part in parts), server_cpu(place.client)
    peak = Peak()
    started = time.perf_counter()
    with Memd(place.settings) as memd:
        memd.flush()

    def over() -> bool:
        peak.look(parts[1].pid)
        return place.ended(done + count)

    wait_until(over, f"{count} contexts drained", TIMEOUT_S, 0.02)
    wall = time.perf_counter() - started
    used = sum(tree_cpu(part.pid) for part in parts) - cpu
    served = server_cpu(place.client) - served
    now = _counted(place) - before
    check_succeeded("memd's drain", now.pop("stored", 0), count, ", ".join(f"{name}: {n}" for name, n in now.items()))
    return Drained(count / wall, used / count * 1e3, served / count * 1e3, peak.mb)


def _counted(place: Ground) -> Counter[str]:
    """How contexts ended, with the reasons of those that were not stored."""
    stats: dict[Any, Any] = place.client.hgetall(f"{verbs.P}:stats")
    counts = {name.decode(): int(count) for name, count in stats.items()}
    ends = ("stored", "skipped:", "dead:")
    return Counter({name: n for name, n in counts.items() if name == ends[0] or name.startswith(ends[1:])})


def _ended(place: Ground) -> int:
    stats = place.client.hmget(f"{verbs.P}:stats", ["stored", "skipped", "dead"])
    return sum(int(value or 0) for value in stats)


def _offline(size: Size) -> Iterator[Measurement]:
    with ground(scheduler__quiet_s=300) as place, daemon(place, workers=2) as parts:
        drained(place, parts, min(50, size.contexts), 50_000_000)  # both workers have been woken once
        turns = interleaved(
            size.rounds,
            {
                "memd": partial(_next_drain, place, parts, size.contexts, iter(range(0, 10**9, size.contexts))),
                "writes": partial(_writes, place, size.contexts),
            },
        )
    runs = [one for one in turns["memd"] if isinstance(one, Drained)]
    floor = median([one for one in turns["writes"] if isinstance(one, float)])
    rates = [one.rate for one in runs]
    yield Figure(
        AREA, "offline extractor, two workers, durable", median(rates), "/s",
        peer="durable writes alone, 4 threads", peer_value=floor,
        target=at_least(0.4, of="ratio"), spread=spread(rates),
        note=f"{median([one.cpu_ms for one in runs]):.2f} ms CPU of memd and "
             f"{median([one.server_ms for one in runs]):.2f} ms of the server each",
    )  # fmt: skip


def _next_drain(place: Ground, parts: list[Process], count: int, starts: Iterator[int]) -> Drained | float:
    return drained(place, parts, count, next(starts))


def _writes(place: Ground, count: int) -> Drained | float:
    """Durable writes of documents with one fact, a second, by four threads of one process: no drain can be faster."""
    data = orjson.dumps(full_document(Bucket("user"), 1), option=orjson.OPT_INDENT_2)
    folder = place.settings.data_dir / "writes"
    folder.mkdir(exist_ok=True)

    def write(number: int) -> None:
        files.replace(folder / f"{number}.json", data, folder / f"{number}.tmp")

    started = time.perf_counter()
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(count)))
    return count / (time.perf_counter() - started)


def _with_model(size: Size, delay_s: float, count: int) -> Iterator[Measurement]:
    """One worker and the bare loop in turn, with the same concurrency and the same model."""
    rounds = (1 if delay_s > 1 else 2) if size is SHORT else size.rounds
    with ground(scheduler__quiet_s=300) as idle, model(idle.settings.data_dir, delay_s) as (address, _):
        place = Ground(asking(idle, address), idle.client, idle.server)
        place.clear()
        with daemon(place) as parts:
            drained(place, parts, min(16, count), 50_000_000)
            turns: dict[str, list[Any]] = interleaved(
                rounds,
                {
                    "memd": partial(_next_drain, place, parts, count, iter(range(0, 10**9, count))),
                    "bare": partial(bare, place, address, count),
                },
            )
    runs: list[Drained] = turns["memd"]
    loops: list[dict[str, float]] = turns["bare"]
    rates = [one.rate for one in runs]
    calls_ms = median([one["cpu_s"] / count * 1e3 for one in loops])
    own_ms = median([one.cpu_ms for one in runs]) - calls_ms
    slow = delay_s > 1
    name = f"HTTP model, {delay_s:g} s, one worker"
    yield Figure(
        AREA, name, median(rates), "/s", peer=f"the bare SDK loop, {CONCURRENCY} at once",
        peer_value=median([count / one["wall_s"] for one in loops]),
        target=at_least(BOUNDS[delay_s], of="ratio"), spread=spread(rates),
        note=f"a call of the SDK costs {calls_ms:.2f} ms CPU",
    )  # fmt: skip
    yield Figure(
        AREA, f"{name}: own CPU of a context, the SDK's call not counted", own_ms, "ms",
        target=at_most(1.5) if delay_s == 0 else None,
    )  # fmt: skip
    yield Figure(
        AREA, f"{name}: memory of the worker, peak", max(one.memory_mb for one in runs), "MB",
        peer="the bare loop's process", peer_value=max(one["rss_mb"] for one in loops),
        target=at_most(150) if slow else None,
    )  # fmt: skip


def asking(place: Ground, address: str, concurrency: int = CONCURRENCY) -> Settings:
    """The settings with the model at this address."""
    found = place.settings
    asked = {"extractor": "anthropic", "base_url": address, "api_key": Secret("bench")}
    return structs.replace(
        found,
        extraction=structs.replace(found.extraction, **asked),
        drain=structs.replace(found.drain, concurrency=concurrency),
    )


def bare(place: Ground, address: str, count: int) -> dict[str, float]:
    """The bare loop in a separate process."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bare", address, str(count), str(min(CONCURRENCY, count))],
        env=environment(place.settings), capture_output=True, text=True, check=True, timeout=TIMEOUT_S,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout)
    check_succeeded("the bare SDK loop", int(found["succeeded"]), count)
    return found


def _rq(size: Size) -> Iterator[Measurement]:
    """RQ alone: empty jobs, by one worker of each kind. With a model: `benchmarks.contest`."""
    from rq import Queue

    from benchmarks.peers.rq_jobs import nothing

    for kind in ("rq.Worker", "rq.SimpleWorker"):
        with ground() as place:
            queue = Queue("bench", connection=plain_client(place.settings))
            count = max(8, size.contexts // 6)
            for _ in range(count):
                queue.enqueue(nothing, "", result_ttl=0)
            rate = rq_drained(place, ["-m", "rq.cli", "worker", "-w", kind], count)
        yield Figure(AREA, f"RQ alone, empty jobs, one {kind.removeprefix('rq.')}", rate, "/s")


def rq_drained(place: Ground, words: list[str], count: int) -> float:
    """Jobs a second of one worker, from the first finished job to the last.

    Raises PeerFailed unless all jobs succeeded.
    """
    from benchmarks.peers.rq_jobs import succeeded

    url = inbox_url(place.settings)
    env = environment(place.settings) | {"BENCH_URL": url}
    left, connection = "rq:queue:bench", plain_client(place.settings)
    with process([*words, "-u", url, "bench"], env, place.settings.data_dir / "rq.log"):
        wait_until(lambda: place.client.llen(left) < count, "RQ's first job is taken", 60)
        begin, started = int(place.client.llen(left)), time.perf_counter()

        def over() -> bool:
            if place.client.llen(left) or place.client.zcard("rq:wip:bench"):
                return False
            return succeeded(connection) + place.client.zcard(FAILED_JOBS) >= count  # a job may be between the two

        wait_until(over, "RQ's jobs are done", TIMEOUT_S)
        wall = time.perf_counter() - started
        check_succeeded("RQ's jobs", succeeded(connection), count, f"{place.client.zcard(FAILED_JOBS)} failed")
        return max(1, begin) / wall


def _pydocket(size: Size) -> Iterator[Measurement]:
    count = max(20, size.contexts // 4)
    for concurrency in (10, 64):
        with ground() as place:
            found = run("pydocket", "drain", count, concurrency, 0, env={"BENCH_URL": inbox_url(place.settings)})
        check_succeeded("pydocket's tasks", found["succeeded"], count)
        yield Figure(
            AREA, f"pydocket, empty tasks,  concurrency {concurrency}", found["per_s"], "/s",
            note=f"adds {found['adds_per_s']:.0f}/s",
        )  # fmt: skip


def _langmem(size: Size) -> Iterator[Measurement]:
    count = 5 if size.name == "tiny" else 20
    found = run("langmem", count, 0.2, 0)
    check_succeeded("langmem's reflections", found["succeeded"], count)
    yield Figure(AREA, "langmem's executor, model 0.2 s", found["per_s"], "/s")
