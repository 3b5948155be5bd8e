"""The cost of reading in one process: inject and search over 500 facts, a worker's change, 1,000 users in turn.

    python -m benchmarks.recall [--users 1000] [--facts 500] [--json]

Times are of `Memd.inject` and `Memd.search`, from the call to the return, with the files of a temporary folder. Memory
is the growth of the resident set after each tenth of the users, whose memories are injected and searched once; it must
stop growing when the cache is full, below `recall.cache_mb`. The pause is the longest of the garbage collector, beside
what it takes in this process without these memories.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import orjson

from benchmarks.fts5 import Fts5
from memd import __version__, config
from memd.client import Memd
from memd.config import RecallSettings
from memd.context import Bucket
from memd.memory.document import Document, empty_document
from memd.memory.store.json_store import JsonStore
from memd.memory.store.paths import FILE, folder
from memd.recall.inject import inject
from memd.recall.memories import alone
from memd.recall.ranking import Indexed

NOW = datetime.now(UTC)
DATA = Path(__file__).parents[1] / "evaluation" / "retrieval.jsonl"
RECORDS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]
TEXTS = [record["text"] for record in RECORDS if "document" in record]
QUERIES = [record["text"] for record in RECORDS if "question" in record]


def facts(count: int, salt: str = "") -> list[dict[str, Any]]:
    """This many facts, English and Chinese, all different."""
    return [
        {
            "id": f"fact_{salt}{number:06x}",
            "content": f"{TEXTS[number % len(TEXTS)]} ({salt}{number})",
            "category": "context",
            "confidence": 0.7 + number % 30 / 100,
            "createdAt": f"2026-01-01T00:{number // 60 % 60:02}:{number % 60:02}Z",
            "evidence": [{"thread": "t", "message": str(number), "quote": TEXTS[number % len(TEXTS)]}],
        }
        for number in range(count)
    ]


def write(data_dir: Path, bucket: Bucket, count: int, salt: str = "") -> None:
    """A memory with a summary and this many facts."""
    document = {**empty_document(bucket), "facts": facts(count, salt)}
    document["user"]["workContext"]["summary"] = "Works on the billing service of a logistics company."
    file = folder(data_dir, bucket, shared=False) / FILE
    file.parent.mkdir(parents=True)
    file.write_bytes(orjson.dumps(document))


def timed(step: Callable[[int], object], times: int) -> dict[str, float]:
    """Milliseconds of a step: p50 and p99 of wall time, and the mean of CPU time, which other load changes less."""
    taken = []
    before = time.process_time()
    for number in range(times):
        start = time.perf_counter()
        step(number)
        taken.append(1000 * (time.perf_counter() - start))
    cpu = 1000 * (time.process_time() - before) / times
    taken.sort()
    return {"cpu_ms": cpu, "p50_ms": taken[times // 2], "p99_ms": taken[int(times * 0.99)]}


def one_user(memd: Memd, data_dir: Path, count: int) -> dict[str, Any]:
    """Inject and search, warm and cold, over one memory."""
    write(data_dir, Bucket("one"), count)
    store = JsonStore(data_dir, memd.settings.store)
    memd.search("one", "warm")

    def commit() -> None:
        loaded = store.load(Bucket("one"))
        after = {**loaded.document, "revision": loaded.revision + 1}
        store.commit(Bucket("one"), loaded, after, lambda: True)

    def change(number: int) -> None:
        commit()
        memd.inject("one")

    kept = memd.document("one")["facts"]
    table = Fts5([fact["content"] for fact in kept])
    return {
        "inject, warm": timed(lambda _: memd.inject("one"), 5_000),
        "inject, warm, with a query": timed(lambda n: memd.inject("one", query=QUERIES[n % len(QUERIES)]), 1_000),
        "search": timed(lambda n: memd.search("one", QUERIES[n % len(QUERIES)]), 2_000),
        "commit and inject of a change": timed(change, 100),
        "index, built": timed(lambda _: Indexed(alone({"facts": kept}, NOW)).indexes, 50),
        "FTS5 table, built": timed(lambda _: Fts5([fact["content"] for fact in kept]), 50),
        "FTS5, asked": timed(lambda n: table.search(QUERIES[n % len(QUERIES)], 10), 2_000),
    }


def seen(memd: Memd, data_dir: Path, times: int) -> int:
    """How many of a writer's changes the next read returned."""
    store, bucket, shown = JsonStore(data_dir, memd.settings.store), Bucket("changing"), 0
    for number in range(times):
        loaded = store.load(bucket)
        document = {**loaded.document, "facts": facts(1, f"v{number}"), "revision": loaded.revision + 1}
        store.commit(bucket, loaded, document, lambda: True)
        shown += f"(v{number}0)" in memd.inject("changing")
    return shown


def many_users(memd: Memd, data_dir: Path, users: int, count: int) -> list[float]:
    """Megabytes by which the resident set has grown after each tenth of the users."""
    before, resident = resident_mb(), []
    for number in range(users):
        user = f"user{number}"
        write(data_dir, Bucket(user), count, f"{number:x}x")
        memd.inject(user)
        memd.search(user, QUERIES[number % len(QUERIES)])
        if (number + 1) % (users // 10) == 0:
            resident.append(resident_mb() - before)
    return resident


class Pauses:
    """Measures the garbage collector's pauses, and the CPU time of them, which other work leaves alone."""

    def __init__(self) -> None:
        self.longest_ms = self.longest_cpu_ms = 0.0
        self._start = self._start_cpu = 0.0

    def __call__(self, phase: str, _info: dict[str, int]) -> None:
        """Called by the collector at its start and stop."""
        now, cpu = time.perf_counter(), time.thread_time()
        if phase == "start":
            self._start, self._start_cpu = now, cpu
        else:
            self.longest_ms = max(self.longest_ms, 1000 * (now - self._start))
            self.longest_cpu_ms = max(self.longest_cpu_ms, 1000 * (cpu - self._start_cpu))


def prefix_kept(order: Literal["stable", "established"]) -> dict[str, float]:
    """The share of a block that is an unchanged prefix when a fact or the focus changes."""
    settings = RecallSettings(order=order)
    known = [record for record in RECORDS if record.get("document", "").startswith("en")]
    random.Random(1).shuffle(known)  # noqa: S311  (any order of learning will do)
    learned = [
        {"id": str(day), "content": one["text"], "createdAt": f"2026-{1 + day // 28:02}-{1 + day % 28:02}"} | one
        for day, one in enumerate(known)
    ]

    def block(count: int, focus: str) -> str:
        document: Document = {**empty_document(Bucket("one")), "facts": learned[:count]}
        for section, name, text in (
            ("user", "workContext", "Backend engineer at a logistics company; migrates the billing service."),
            ("user", "personalContext", "Lives in Porto with husband and daughter."),
            ("user", "topOfMind", focus),
            ("history", "recentMonths", "Moved the team to a four day week."),
            ("history", "longTermBackground", "Grew up near Gdansk."),
        ):
            document[section][name]["summary"] = text
        return inject(document, settings)

    grown = [kept(block(count, "An exam."), block(count + 1, "An exam.")) for count in range(20, 90)]
    return {"a new fact": sum(grown) / len(grown), "a new focus": kept(block(60, "Moving."), block(60, "An exam."))}


def kept(before: str, after: str) -> float:
    """The share of `after` that is a common prefix with `before`."""
    same = next((at for at, (old, new) in enumerate(zip(before, after, strict=False)) if old != new), len(after))
    return same / len(after)


def resident_mb() -> float:
    """This process's resident set, in megabytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=1_000)
    parser.add_argument("--facts", type=int, default=500)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data_dir = Path(name)
        settings = config.load(environ={}, use_file=False, flags={"data_dir": name}).settings
        memd = Memd(settings)
        times = one_user(memd, data_dir, wanted.facts)
        changes = seen(memd, data_dir, 100)
        pauses, empty = Pauses(), Pauses()
        gc.callbacks.append(empty)
        gc.collect()
        gc.callbacks[:] = [pauses]
        resident = many_users(Memd(settings), data_dir, wanted.users, wanted.facts)
        gc.callbacks.clear()
    about: dict[str, Any] = {"memd": __version__, "python": platform.python_version(), "cpus": os.cpu_count()}
    prefixes = {order: prefix_kept(order) for order in ("stable", "established")}
    figures = {
        **about,
        "prefix kept": prefixes,
        "load": os.getloadavg()[0],
        "facts": wanted.facts,
        "times": times,
        "changes seen of 100": changes,
        "resident_mb": resident,
        "longest_gc_pause_ms": pauses.longest_ms,
        "longest_gc_cpu_ms": pauses.longest_cpu_ms,
        "gc_cpu_ms_without_memories": empty.longest_cpu_ms,
    }
    if wanted.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"memd {__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f}")
    print(f"one memory of {wanted.facts} facts")
    for label, row in times.items():
        print(f"{label:<36}p50 {row['p50_ms']:8.3f} ms   p99 {row['p99_ms']:8.3f} ms   CPU {row['cpu_ms']:8.3f} ms")
    for order, shares in prefixes.items():
        print(f"prefix kept, order {order:<17}" + "   ".join(f"{what} {share:.2f}" for what, share in shares.items()))
    print(f"changes that the next read showed   {changes} of 100")
    tenths = ", ".join(f"{value:.0f}" for value in resident)
    print(f"growth of resident MB over {wanted.users} users, by tenths: {tenths}; cache: {settings.recall.cache_mb} MB")
    cpu, of_empty = pauses.longest_cpu_ms, empty.longest_cpu_ms
    print(f"longest pause of the garbage collector: {pauses.longest_ms:.0f} ms, {cpu:.0f} ms of CPU", end="; ")
    print(f"without these memories {of_empty:.0f} ms of CPU")


if __name__ == "__main__":
    main()
