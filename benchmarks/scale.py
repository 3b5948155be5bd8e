"""Scale-out: one, two and three workers on separate hosts, one server, one model with a limit.

A worker has 32 concurrent calls and the model takes a second, so one worker can do 32 contexts a second; the model
serves 80 requests at once, so three workers reach its limit. The hosts share only the data folder and the server.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

from benchmarks.drain import asking, push_all
from benchmarks.figures import Figure, Measurement, Plot, at_least
from benchmarks.ground import Ground, environment, model, process, tcp_ground
from benchmarks.hosts import Hosts, hosts
from benchmarks.sizes import Size
from benchmarks.timing import median, spread, wait_until
from memd.client import Memd
from memd.inbox.figures import workers_listening

AREA = "scale"
WORKERS = (1, 2, 3)
CONCURRENCY = 32
MODEL_S = 1.0
MODEL_LIMIT = 80
WAVES = 5


def measure(size: Size) -> Iterator[Measurement]:
    """Contexts a second for each number of workers, compared with the maximum that the concurrent calls allow."""
    line: list[tuple[float, float]] = []
    bound: list[tuple[float, float]] = []
    with hosts(len(WORKERS)) as there:
        for workers in WORKERS:
            rates = [_rate(there, workers, 1 if size.name == "tiny" else WAVES) for _ in range(min(3, size.rounds))]
            most = min(workers * CONCURRENCY, MODEL_LIMIT) / MODEL_S
            line.append((workers, median(rates)))
            bound.append((workers, most))
            yield Figure(
                AREA, f"{workers} workers, {CONCURRENCY} calls each, model {MODEL_S:g} s, {MODEL_LIMIT} at once",
                median(rates), "/s", peer="what the calls allow", peer_value=most,
                target=at_least(0.8, of="ratio"), spread=spread(rates), note=there.kind,
            )  # fmt: skip
    lines = {"memd": line, "what the calls allow": bound}
    yield Plot("scaling", "Contexts a second by workers on separate hosts", "workers", "contexts/s", lines)


def _rate(there: Hosts, workers: int, waves: int) -> float:
    """Contexts a second of this many workers, each on its host, from the flush to the last ack."""
    count = workers * CONCURRENCY * waves
    with tcp_ground(there.address, scheduler__quiet_s=300) as idle, ExitStack() as stack:
        folder = idle.settings.data_dir
        address, _ = stack.enter_context(model(folder, MODEL_S, there.address, MODEL_LIMIT))
        place = Ground(asking(idle, address, CONCURRENCY), idle.client, idle.server)
        place.clear()
        env = environment(place.settings)
        stack.enter_context(process(["-m", "memd", "scheduler"], env, folder / "scheduler.log"))
        for number in range(workers):
            log = folder / f"worker{number}.log"
            stack.enter_context(process(["-m", "memd", "worker"], env, log, prefix=there.prefixes[number]))
        wait_until(lambda: workers_listening(place.client) >= workers, "the workers listen", 90)
        push_all(place, count)
        started = time.perf_counter()
        with Memd(place.settings) as memd:
            memd.flush()
        wait_until(lambda: place.ended(count), "all contexts are stored", 600, 0.02)
        return count / (time.perf_counter() - started)
