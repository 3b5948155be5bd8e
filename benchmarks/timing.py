"""Clocks: turns of contestants taken one after the other, medians, CPU time of threads, processes and the server."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import redis

T = TypeVar("T")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a contestant: operations, wall and CPU seconds of this process, latencies in seconds."""

    count: int
    wall_s: float
    cpu_s: float
    latencies: tuple[float, ...] = ()

    @property
    def rate(self) -> float:
        """Operations a second."""
        return self.count / self.wall_s


def turn(count: int, step: Callable[[int], object]) -> Turn:
    """Call `step` with 0, 1, … and time each call."""
    latencies = []
    started, cpu = time.perf_counter(), time.process_time()
    last = started
    for number in range(count):
        step(number)
        now = time.perf_counter()
        latencies.append(now - last)
        last = now
    return Turn(count, last - started, time.process_time() - cpu, tuple(latencies))


def interleaved(rounds: int, contestants: Mapping[str, Callable[[], T]]) -> dict[str, list[T]]:
    """Every contestant's turns: in each round all take one turn, and each round begins with another contestant.

    So other load on the machine affects all of them alike.
    """
    taken: dict[str, list[T]] = {name: [] for name in contestants}
    names = list(contestants)
    for number in range(rounds):
        for place in range(len(names)):
            name = names[(place + number) % len(names)]
            taken[name].append(contestants[name]())
    return taken


def median(values: Sequence[float]) -> float:
    """The median."""
    return statistics.median(values)


def spread(values: Sequence[float]) -> tuple[float, float]:
    """The minimum and the maximum."""
    return min(values), max(values)


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed, without interpolation."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def server_cpu(client: redis.Redis) -> float:
    """Seconds of CPU of the server's command thread so far."""
    found = client.info("cpu")
    return float(found["used_cpu_user_main_thread"]) + float(found["used_cpu_sys_main_thread"])


def tree_cpu(pid: int) -> float:
    """Seconds of CPU of a process, its threads and all its children, ended or living; in ticks of 10 ms."""
    own = _stat_cpu(pid)
    return own + sum(tree_cpu(child) for child in children(pid))


def thread_cpu(pid: int) -> float:
    """Seconds of CPU of the threads of a process, to the nanosecond."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def children(pid: int) -> list[int]:
    """The living children of a process."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        return [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):  # it has just ended
        return []


def _stat_cpu(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # it has just ended, and is counted with its parent
        return 0.0
    return sum(map(int, fields[11:15])) * TICK_S


def memory_mb(pid: int) -> tuple[float, float]:
    """Resident and proportional memory of a process in MB; the second divides shared pages among the processes."""
    found: dict[str, float] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        found[name] = int(value) / 1000
    return found["Rss:"], found["Pss:"]


def tree_mb(pid: int) -> float:
    """Proportional memory of a process and its children in MB; that of one which has just ended counts no more."""
    try:
        own = memory_mb(pid)[1]
    except (FileNotFoundError, ProcessLookupError, KeyError):  # it has just ended
        own = 0.0
    return own + sum(map(tree_mb, children(pid)))


@dataclass
class Peak:
    """The peak of the memory of processes with their children, looked at every 0.2 s at most.

    Many processes take longer to look at: then ten times as long passes until the next look, so that it costs little.
    """

    mb: float = 0.0
    _next: float = 0.0

    def look(self, *pids: int) -> None:
        """Look at the memory of these processes, if it is time to."""
        started = time.monotonic()
        if started < self._next:
            return
        self.mb = max(self.mb, sum(map(tree_mb, pids)))
        self._next = time.monotonic() + max(0.2, 10 * (time.monotonic() - started))


def wait_until(condition: Callable[[], bool], what: str, timeout_s: float, pause_s: float = 0.005) -> float:
    """Wait for a condition; returns the seconds it took. Raises TimeoutError with `what`."""
    started = time.monotonic()
    while not condition():
        if time.monotonic() - started > timeout_s:
            raise TimeoutError(f"not within {timeout_s:g} s: {what}")
        time.sleep(pause_s)
    return time.monotonic() - started
