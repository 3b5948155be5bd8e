"""Start times: commands from a shell, and `memd up` until it is ready."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from os import wait4

import orjson
from msgspec import structs

from benchmarks.figures import Figure, Measurement, at_most
from benchmarks.ground import Ground, daemon, environment, ground
from benchmarks.load import conversation
from benchmarks.sizes import Size
from benchmarks.timing import interleaved, median, spread, tree_cpu, wait_until
from memd.ops import server

AREA = "starts"
COMMANDS: dict[str, tuple[list[str], float | None]] = {
    "python -c pass": (["-c", "pass"], None),
    "python, importing typer and pydantic": (["-c", "import typer, pydantic"], None),
    "memd --version": (["-m", "memd", "--version"], None),
    "memd push": (["-m", "memd", "push"], 0.25),
    "memd status": (["-m", "memd", "status"], 0.25),
    "an app that imports redis": (["-c", "import redis"], None),
    "an app that imports Memd": (["-c", "from memd import Memd"], 0.12),
}


@dataclass(frozen=True, slots=True)
class Start:
    """Wall and CPU seconds of one command."""

    wall_s: float
    cpu_s: float


def measure(size: Size) -> Iterator[Measurement]:
    """Commands in turns, then `memd up`."""
    with ground() as place:
        env = environment(place.settings)
        given = orjson.dumps(conversation(1))
        taken = interleaved(
            size.starts + 1,
            {name: partial(_run, words, env, given) for name, (words, _) in COMMANDS.items()},
        )
        floor = median([one.wall_s for one in taken["python -c pass"][1:]])
        for name, (_, bound) in COMMANDS.items():
            walls = [one.wall_s for one in taken[name][1:]]  # the first run may have compiled
            own = name == "python -c pass"
            yield Figure(
                AREA, name, median(walls), "s", peer="" if own else "python -c pass",
                peer_value=None if own else floor, target=at_most(bound) if bound else None, spread=spread(walls),
                note=f"{median([one.cpu_s for one in taken[name][1:]]):.2f} s CPU",
            )  # fmt: skip
        ups = [_up(place) for _ in range(max(1, size.rounds))]
        yield Figure(AREA, "memd up, until ready", median(ups), "s", target=at_most(1.0), spread=spread(ups))
        yield from _worker(place, max(1, size.rounds))
        ready = [_server(place) for _ in range(max(1, size.rounds))]
        yield Figure(AREA, "the embedded server, until it responds", median(ready), "s", spread=spread(ready))


def _run(words: list[str], env: dict[str, str], given: bytes) -> Start:
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *words], env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(given if "push" in words else b"")
    process.stdin.close()
    _, status, usage = wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = status
    assert process.stderr is not None
    said = process.stderr.read()
    process.stderr.close()
    assert status == 0, said.decode(errors="replace")
    return Start(wall, usage.ru_utime + usage.ru_stime)


def _up(place: Ground) -> float:
    """Seconds from the command to the line "ready", with two workers, on a new folder."""
    folder = place.settings.data_dir / f"up-{time.monotonic_ns()}"
    env = environment(place.settings) | {
        "MEMD_DATA_DIR": str(folder),
        "MEMD_LOG__LEVEL": "info",
        "MEMD_LOG__FORMAT": "json",
    }
    started = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "memd", "up"], env=env, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if json.loads(line).get("event") == "up_ready":
                return time.perf_counter() - started
    finally:
        process.terminate()
        process.stderr.read()
        process.wait()
    raise RuntimeError("memd up ended before it was ready")


def _worker(place: Ground, rounds: int) -> Iterator[Figure]:
    """CPU seconds of a worker until it listens, and until it waits for its first bell, with its patterns compiled."""
    listening, waiting = [], []
    for _ in range(rounds):
        place.clear()
        with daemon(place) as (_, worker):
            listening.append(tree_cpu(worker.pid))
            wait_until(partial(_is_idle, place), "the worker waits for a bell", 60)
            waiting.append(tree_cpu(worker.pid))
    what = "a worker, CPU until it listens"
    yield Figure(AREA, what, median(listening), "s", target=at_most(0.5), spread=spread(listening))
    what = "a worker, CPU until it waits for its first bell, with all patterns compiled"
    yield Figure(AREA, what, median(waiting), "s", spread=spread(waiting))


def _is_idle(place: Ground) -> bool:
    workers = place.client.smembers("rq:workers")
    return any(place.client.hget(worker, "state") == b"idle" for worker in workers)


def _server(place: Ground) -> float:
    settings = structs.replace(place.settings, data_dir=place.settings.data_dir / f"s-{time.monotonic_ns()}")
    started = time.perf_counter()
    process = server.start(settings)
    wall = time.perf_counter() - started
    server.stop(process)
    return wall
