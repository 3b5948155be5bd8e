"""What a memory costs by its size: python -m benchmarks.full_memory prints the table of docs/moving.md.

Distinct facts come in by an import; then an update with one fact (what a worker does besides waiting for the model:
load, apply, write), a search, and a block, each as the median of ten, in processor time. No server
is asked.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from memd import config
from memd.client import Memd
from memd.context import Bucket, Message
from memd.extraction.update import Evidence, NewFact, Update
from memd.memory.apply import Origin, apply
from memd.memory.store.json_store import open_store

SIZES = (300, 1_000, 5_000)
ROUNDS = 10

_DO = (
    "repairs",
    "collects",
    "paints",
    "sells",
    "describes",
    "photographs",
    "restores",
    "designs",
    "teaches",
    "reviews",
)
_WHAT = ("clocks", "boats", "maps", "violins", "bridges", "kites", "gardens", "radios", "statues", "lamps")
_WHERE = ("Porto", "Lisbon", "Braga", "Coimbra", "Faro", "Evora", "Sintra", "Aveiro", "Viseu", "Leiria")


def sentence(number: int) -> str:
    """One of many sentences, none like another in all its words."""
    first, second, third = number % 10, number // 10 % 10, number // 100 % 10
    return f"In {1950 + number // 1000}, house {number} of {_WHERE[third]}: {_DO[first]} {_WHAT[second]}"


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as folder:  # what is read and compiled once
        settings = config.load(None, flags={"data_dir": folder}).settings
        Memd(settings).import_memory("ana", {"version": "1.0", "facts": [{"content": sentence(0)}]})
    print("| facts | import | file | an update | search | inject |\n|---|---|---|---|---|---|")
    for size in SIZES:
        measure(size)


def measure(size: int) -> None:
    """Print the row of one size."""
    with tempfile.TemporaryDirectory() as folder:
        settings = config.load(None, flags={"data_dir": folder, "apply.max_facts": 5_000}).settings
        memd = Memd(settings)
        facts = [{"content": sentence(number), "confidence": 0.9} for number in range(size - ROUNDS)]
        began = time.process_time()
        memd.import_memory("ana", {"version": "1.0", "facts": facts})
        took = time.process_time() - began
        update = _median(lambda number: _update(memd, f"I own the boat number {number} of {size}"))
        search = _median(lambda number: memd.search("ana", f"{_WHAT[number]} in {_WHERE[number]}"))
        inject = _median(lambda number: memd.inject("ana", query=_WHAT[number]))
        bytes_ = Path(folder, "users", "ana", "memory.json").stat().st_size
        print(f"| {size:,} | {took:.1f} s | {bytes_ / 1e6:.1f} MB | {update} | {search} | {inject} |")


def _update(memd: Memd, said: str) -> None:
    """What a worker does with a reply that has one new fact."""
    store, bucket = open_store(memd.settings), Bucket("ana")
    loaded = store.load(bucket)
    sent = [Message("user", said, identity=f"i{abs(hash(said)):036x}")]
    fact = NewFact(f"The user: {said}", "context", 0.9, "user", "durable", "descriptive", (Evidence(0, said),))
    origin = Origin("thread", datetime.now(UTC), "none", "1")
    applied = apply(loaded.document, Update(new_facts=(fact,)), sent, sent, origin, memd.settings.apply)
    assert len(applied.added) == 1
    store.commit(bucket, loaded, applied.document, lambda: True)


def _median(work: Callable[[int], object]) -> str:
    times = []
    for number in range(ROUNDS):
        began = time.process_time()
        work(number)
        times.append(time.process_time() - began)
    return f"{statistics.median(times) * 1_000:,.0f} ms"


if __name__ == "__main__":
    main()
