"""Growth: the cost of a push by the number of pending keys, and the server's memory for a key.

A server for each number, filled through the trusted door; then they take turns, and what a turn adds is removed again:
no ratio depends on how fast the machine is at the moment. A SET of the same bytes and a ZADD into the due times tell
what any new key and any new time cost more on a larger server: mostly misses of the processor's caches.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import orjson
import redis

from benchmarks.figures import Figure, Measurement, Plot, at_most
from benchmarks.ground import Ground, ground
from benchmarks.load import text
from benchmarks.sizes import Size
from benchmarks.timing import interleaved, median, server_cpu, spread, wait_until
from memd.context import Context, Key, Message, identify
from memd.inbox import verbs
from memd.inbox.connection import Call, send
from memd.inbox.verbs import Merged, P

AREA = "growth"
CHARS = 512
BATCH = 200
PROBES = 2_000
"""Pushes at each number of keys, at most."""

EACH = 100
"""Of these in one turn."""

APART = 10_000_000
"""What is pushed to be timed has numbers from here on."""

CONTESTANTS = ("push", "SET", "ZADD")


@dataclass(frozen=True, slots=True)
class Cost:
    """What one operation took in a turn, in microseconds: the median seen by the client, and the server's CPU."""

    p50: float
    cpu: float


Taken = Mapping[int, Sequence[Mapping[str, Cost]]]
"""By the number of pending keys: for each turn the cost of each of CONTESTANTS."""


def measure(size: Size) -> Iterator[Measurement]:
    """Memory of the largest server; then the turns."""
    count = min(PROBES, size.pushes * 2)
    each = min(EACH, size.pushes)
    with ExitStack() as stack:
        places = {keys: stack.enter_context(ground(scheduler__quiet_s=300)) for keys in size.pending}
        empty = _used(places[max(places)].client)
        for keys, place in places.items():
            _fill(place, 0, keys)
        for place in places.values():
            _rest(place.client)
        yield from _memory(places[max(places)], empty, max(places))
        stack.enter_context(_cores([place.server.pid for place in places.values()]))
        turns = {str(keys): partial(_turn, place, each) for keys, place in places.items()}
        taken = {int(keys): costs for keys, costs in interleaved(count // each, turns).items()}
    yield from _flatness(taken)
    lines = {f"{name}, p50": _medians(taken, name, "p50") for name in CONTESTANTS}
    lines["push, server CPU"] = _medians(taken, "push", "cpu")
    yield Plot("growth", "A push of 1 KB by pending keys", "pending keys", "µs", lines)


def _medians(taken: Taken, name: str, what: str) -> list[tuple[float, float]]:
    return [(keys, median([getattr(turn[name], what) for turn in turns])) for keys, turns in taken.items()]


def _flatness(taken: Taken) -> Iterator[Measurement]:
    """Each number of keys; then the last one in units of the first, turn by turn."""
    p50, control, cpu = (_medians(taken, *of) for of in (("push", "p50"), ("SET", "p50"), ("push", "cpu")))
    for (keys, value), (_, base), (_, server) in zip(p50, control, cpu, strict=True):
        yield Figure(
            AREA, f"push with {keys:,.0f} keys pending, p50", value, "µs", peer="SET", peer_value=base,
            note=f"{server:.0f} µs of server CPU",
        )  # fmt: skip
    first, last = min(taken), max(taken)
    for what, label in (("p50", "p50 of a"), ("cpu", "server CPU of a")):
        for name in CONTESTANTS:
            pairs = [
                (getattr(a[name], what), getattr(b[name], what)) for a, b in zip(taken[first], taken[last], strict=True)
            ]
            ratios = [large / small for small, large in pairs]
            more = median([large - small for small, large in pairs])
            yield Figure(
                AREA, f"{label} {name}, {first:,} → {last:,} keys", median(ratios), "×", spread=spread(ratios),
                target=at_most(1.2) if name == "push" else None, note=f"{more:+.1f} µs",
            )  # fmt: skip


def _memory(place: Ground, empty: float, keys: int) -> Iterator[Measurement]:
    each = (_used(place.client) - empty) / keys
    yield Figure(AREA, "server memory a pending key of 1 KB", each / 1000, "KB", note=_parts(place.client, keys))
    yield Figure(
        AREA, "server memory at 1,000,000 pending keys", each * 1_000_000 / 1e9, "GB", target=at_most(2.0),
        note="" if keys >= 1_000_000 else f"extrapolated from {keys:,} keys",
    )  # fmt: skip


def _parts(client: redis.Redis, keys: int) -> str:
    """The bytes of the keys of one pending key; the rest is the server's table of keys."""
    key = _key(0)
    names = {"context": f"ctx:{key.hash}", "outcome": f"outcome:{key.hash}", "user": f"user:{key.bucket.owner}"}
    parts = {name: client.memory_usage(f"{P}:{rest}", samples=0) or 0 for name, rest in names.items()}
    parts["due time"] = (client.memory_usage(f"{P}:due", samples=0) or 0) // keys
    return ", ".join(f"{name} {size:,} B" for name, size in parts.items())


def _rest(client: redis.Redis) -> None:
    """Wait for a rewrite of the append-only file, and let no other begin: while one runs, every write copies pages."""
    client.config_set("auto-aof-rewrite-percentage", 0)
    wait_until(lambda: not client.info("persistence")["aof_rewrite_in_progress"], "the rewrite has ended", 300, 0.1)


@contextmanager
def _cores(servers: Sequence[int]) -> Iterator[None]:
    """This process on one core and all servers on another, if there are two: a server that happens to be on our core
    replies in a fifth of the time."""
    own = os.sched_getaffinity(0)
    ours, *others = sorted(own)
    for server in servers if others else ():
        for task in Path(f"/proc/{server}/task").iterdir():
            os.sched_setaffinity(int(task.name), {others[0]})
    try:
        os.sched_setaffinity(0, {ours})
        yield
    finally:
        os.sched_setaffinity(0, own)


def _turn(place: Ground, count: int) -> dict[str, Cost]:
    """New keys, SETs and ZADDs on one server; what they added is removed."""
    client = place.client
    body = text(CHARS, 2, 0)
    bytes_ = orjson.dumps({"a": body, "b": body})
    calls = [_push(APART + number, body) for number in range(count)]
    due = time.time() * 1000
    costs = (
        _cost(client, count, lambda n: send(client, calls[n])),
        _cost(client, count, lambda n: client.set(f"k{n}", bytes_)),
        _cost(client, count, lambda n: client.zadd(f"{P}:due", {f"{n:032x}": due + n})),
    )
    _remove(client, count)
    return dict(zip(CONTESTANTS, costs, strict=True))


def _cost(client: redis.Redis, count: int, step: Callable[[int], object]) -> Cost:
    before, latencies = server_cpu(client), []
    for number in range(count):
        started = time.perf_counter()
        step(number)
        latencies.append(time.perf_counter() - started)
    return Cost(median(latencies) * 1e6, (server_cpu(client) - before) / count * 1e6)


def _remove(client: redis.Redis, count: int) -> None:
    pipeline = client.pipeline(transaction=False)
    for number in range(count):
        key = _key(APART + number)
        pipeline.zrem(f"{P}:due", f"{number:032x}", key.hash)
        pipeline.delete(f"k{number}", f"{P}:ctx:{key.hash}", f"{P}:outcome:{key.hash}", f"{P}:user:{key.bucket.owner}")
    pipeline.execute()


def _key(number: int) -> Key:
    return Key(f"thread-{number}", f"user-{number}")


def _push(number: int, body: str) -> Call[Merged]:
    key = _key(number)
    said = (Message("user", body, id="u"), Message("assistant", body, id="a"))
    return verbs.push(Context(key, identify(key.thread_id, said)))


def _fill(place: Ground, start: int, end: int) -> None:
    """Push new keys through the trusted door, many in a pipeline."""
    body = text(CHARS, 1, 0)
    for first in range(start, end, BATCH):
        pipeline = place.client.pipeline(transaction=False)
        for number in range(first, min(end, first + BATCH)):
            pipeline.execute_command(*_push(number, body).command)  # type: ignore[no-untyped-call]  # redis-py's gap
        pipeline.execute()


def _used(client: redis.Redis) -> float:
    return float(client.info("memory")["used_memory"])
