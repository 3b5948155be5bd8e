"""Reading: the block for the next prompt, and search, in process. `recall.py` and `retrieval.py` have the details."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.figures import Figure, Measurement, at_most
from benchmarks.ground import Ground, ground
from benchmarks.load import full_document
from benchmarks.sizes import Size
from benchmarks.timing import percentile, turn
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


def _store(place: Ground, bucket: Bucket, facts: int) -> None:
    store = open_store(place.settings)
    loaded = store.load(bucket)
    store.commit(bucket, loaded, {**full_document(bucket, facts), "revision": 1}, lambda: True)
