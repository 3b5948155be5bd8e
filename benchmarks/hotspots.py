"""`python -m benchmarks.hotspots [COUNT]`: the CPU of a context by function.

Three profiles: a push in the app, the steps of a claim by hand (`cost.py`), and a real drain in this process with the
offline extractor, whose threads are profiled separately and summed.
"""

from __future__ import annotations

import asyncio
import cProfile
import pstats
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO

from benchmarks.cost import Steps, fill
from benchmarks.drain import push_all
from benchmarks.ground import ground
from benchmarks.load import conversation
from memd.client import Memd
from memd.events import setup
from memd.workers.drain import Drain, prepare

LINES = 22


@contextmanager
def profiled() -> Iterator[list[cProfile.Profile]]:
    """Profiles of this thread and of all threads started during the block, by CPU time."""
    found: list[cProfile.Profile] = []

    def begin(*_: object) -> None:
        profile = cProfile.Profile(time.thread_time)
        found.append(profile)
        profile.enable()

    threading.setprofile(begin)
    begin()
    try:
        yield found
    finally:
        found[0].disable()
        threading.setprofile(None)


def show(title: str, profiles: list[cProfile.Profile], count: int) -> None:
    """The most expensive functions, in microseconds of CPU a context."""
    out = StringIO()
    stats = pstats.Stats(profiles[0], stream=out)
    for other in profiles[1:]:
        stats.add(other)
    rows = sorted(stats.stats.items(), key=lambda row: -row[1][2])  # type: ignore[attr-defined]  # typeshed's gap
    total = sum(row[1][2] for row in rows)
    print(f"\n{title}: {total / count * 1e6:,.0f} µs a context under the profiler\n")
    print("   own µs   with callees    calls   function")
    for (file, line, name), (_, calls, own, cumulated, _) in rows[:LINES]:
        place = f"{'/'.join(file.split('/')[-2:])}:{line} {name}" if line else name
        print(f"{own / count * 1e6:9.1f} {cumulated / count * 1e6:12.1f} {calls / count:11.2f}   {place}")


def main() -> None:
    """Print the three profiles."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 320
    setup("warning", "json")
    prepare()  # as a worker does: compiling the patterns is no part of a context
    with ground(scheduler__quiet_s=300) as place, Memd(place.settings) as memd:
        pushes = [conversation(number) for number in range(count)]
        memd.push(**pushes[0])
        with profiled() as profiles:
            for push in pushes:
                memd.push(**push)
        show("push", profiles, count)
        memd.flush()
        fill(place, count)
        with profiled() as profiles:
            Steps(place).run(count)
        show("the steps of a claim, 100 facts", profiles, count)
        push_all(place, count, count)
        fill(place, count, count)
        memd.flush()
        cpu = _drain(Drain(place.settings, "benchmark"))
        print(f"\na drain without the profiler: {cpu / count * 1e3:.2f} ms CPU a context")
        push_all(place, count, 2 * count)
        fill(place, count, 2 * count)
        memd.flush()
        with profiled() as profiles:
            _drain(Drain(place.settings, "benchmark"))
        show("a drain, offline extractor, 100 facts", profiles, count)


def _drain(drain: Drain, clock: Callable[[], float] = time.process_time) -> float:
    before = clock()
    asyncio.run(drain.run())
    return clock() - before


if __name__ == "__main__":
    main()
