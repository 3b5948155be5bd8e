"""Reading: the block for the next prompt, and search, in process. `recall.py` and `retrieval.py` have the details.

The memory with excerpts has 500 facts and 4,000 turns, half of which have an excerpt.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from itertools import cycle

from benchmarks import layered
from benchmarks.figures import Figure, Measurement, at_most
from benchmarks.ground import Ground, ground
from benchmarks.load import full_document
from benchmarks.sizes import Size
from benchmarks.timing import Turn, percentile, turn
from memd.client import Memd
from memd.context import Bucket
from memd.memory.store.json_store import open_store

AREA = "reading"
QUERY = "which note was kept on the redis server before lunch"


def measure(size: Size) -> Iterator[Measurement]:
    """Warm: the document is in the reader's cache; cold: it is read from its file."""
    with ground() as place:
        for facts in (100, 500):
            bucket = Bucket(f"user-{facts}")
            _store(place, bucket, facts)
            with Memd(place.settings) as memd:
                memd.inject(bucket.user_id)
                memd.search(bucket.user_id, QUERY)
                found = turn(size.pushes, lambda _, user=bucket.user_id, app=memd: app.search(user, QUERY))  # type: ignore[misc]  # bound now
                warm = turn(size.pushes, lambda _, user=bucket.user_id, app=memd: app.inject(user))  # type: ignore[misc]  # bound now
            yield Figure(
                AREA, f"inject, {facts} facts, warm, p50", percentile(warm.latencies, 0.5) * 1e3, "ms",
                target=at_most(1.0) if facts == 100 else None,
                note=f"p99 {percentile(warm.latencies, 0.99) * 1e3:.2g} ms, CPU {warm.cpu_s / warm.count * 1e3:.2g} ms",
            )  # fmt: skip
            yield Figure(
                AREA, f"search, {facts} facts, warm, p50", percentile(found.latencies, 0.5) * 1e3, "ms",
                target=at_most(5.0) if facts == 500 else None,
                note=f"p99 {percentile(found.latencies, 0.99) * 1e3:.2g} ms",
            )  # fmt: skip
            cold = turn(max(5, size.pushes // 20), lambda _, user=bucket.user_id: Memd(place.settings).inject(user))  # type: ignore[misc]  # bound now
            yield Figure(AREA, f"inject, {facts} facts, cold, p50", percentile(cold.latencies, 0.5) * 1e3, "ms")
        yield from _with_excerpts(place, size)


def _with_excerpts(place: Ground, size: Size) -> Iterator[Measurement]:
    """Search and inject with a query, of 500 facts, without and with 2,000 turns that have an excerpt."""
    for excerpts, cold_ms in ((0, 60.0), (2_000, 150.0)):
        user, label = f"said-{excerpts}", "500 facts" + (f" and {excerpts:,} turns with excerpts" if excerpts else "")
        layered.write(place.settings, Bucket(user), 500, excerpts)
        for name, taken, most in _read(place, user, size, cold_ms):
            yield Figure(
                AREA, f"{name}, {label}, p50", percentile(taken.latencies, 0.5) * 1e3, "ms",
                target=at_most(most), note=f"CPU {taken.cpu_s / taken.count * 1e3:.2g} ms",
            )  # fmt: skip
        with Memd(place.settings) as memd:
            before = _looked_at()
            memd.inject(user, query=QUERY)
            yield Figure(AREA, f"kept for the garbage collector, {label}", _looked_at() - before, "objects")


def _read(place: Ground, user: str, size: Size, cold_ms: float) -> Iterator[tuple[str, Turn, float]]:
    """Each way of reading a memory, with its turn and the most milliseconds that it may take."""
    questions = cycle(layered.queries())
    cold = turn(max(5, size.pushes // 20), lambda _: Memd(place.settings).search(user, QUERY))
    yield "search, cold", cold, cold_ms
    with Memd(place.settings) as memd:
        memd.inject(user, query=QUERY)
        yield "search, warm, a labelled question", turn(size.pushes, lambda _: memd.search(user, next(questions))), 5.0
        yield "inject, warm, with a query", turn(size.pushes, lambda _: memd.inject(user, query=next(questions))), 6.0


def _looked_at() -> int:
    """How many objects the collector looks at. What holds only texts and numbers it leaves alone after some rounds."""
    for _ in range(3):
        gc.collect()
    return len(gc.get_objects())


def _store(place: Ground, bucket: Bucket, facts: int) -> None:
    store = open_store(place.settings)
    loaded = store.load(bucket)
    store.commit(bucket, loaded, {**full_document(bucket, facts), "revision": 1}, lambda: True)
