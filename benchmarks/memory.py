"""Memory of a worker, its listening parent and its draining child, by concurrency, with a 2 s model."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.drain import asking, drained
from benchmarks.figures import Figure, Measurement, at_most
from benchmarks.ground import Ground, daemon, ground, model
from benchmarks.sizes import Size
from benchmarks.timing import memory_mb

AREA = "memory"


def measure(size: Size) -> Iterator[Measurement]:
    """Drain as many contexts as concurrent calls; the peak of parent and child, with shared memory counted once."""
    for concurrency in size.concurrencies:
        with ground(scheduler__quiet_s=300) as idle, model(idle.settings.data_dir, 2.0) as (address, _):
            place = Ground(asking(idle, address, concurrency), idle.client, idle.server)
            place.clear()
            with daemon(place) as parts:
                listening, _ = memory_mb(parts[1].pid)
                found = drained(place, parts, concurrency)
        if concurrency == size.concurrencies[0]:
            yield Figure(AREA, "a listening worker", listening, "MB")
        yield Figure(
            AREA, f"a worker and its child, {concurrency} calls in flight", found.memory_mb, "MB",
            target=at_most(150) if concurrency == 256 else None,
        )  # fmt: skip
