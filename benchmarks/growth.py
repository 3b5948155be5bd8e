"""Growth: the cost of a push by the number of pending keys, and the server's memory for a key."""

from __future__ import annotations

import time
from collections.abc import Iterator

import orjson
import redis

from benchmarks.figures import Figure, Measurement, Plot, at_most
from benchmarks.ground import Ground, ground
from benchmarks.load import text
from benchmarks.sizes import Size
from benchmarks.timing import median, percentile, server_cpu
from memd.context import Context, Key, Message, identify
from memd.inbox import verbs
from memd.inbox.connection import Call, send
from memd.inbox.verbs import Merged

AREA = "growth"
CHARS = 512
BATCH = 200
PROBES = 2_000
TURNS = 10


def measure(size: Size) -> Iterator[Measurement]:
    """Fill through the trusted door; at each size, time new keys and SETs turn by turn."""
    p50: list[tuple[float, float]] = []
    control: list[tuple[float, float]] = []
    cpu: list[tuple[float, float]] = []
    with ground(scheduler__quiet_s=300) as place:
        empty = _used(place.client)
        filled = 0
        for keys in size.pending:
            _fill(place, filled, keys)
            filled = keys
            memory = _used(place.client) - empty
            push_us, set_us, server_us = _probe(place, keys, min(PROBES, size.pushes * 2))
            p50.append((keys, push_us))
            control.append((keys, set_us))
            cpu.append((keys, server_us))
        yield from _flatness(p50, control, cpu)
        yield from _memory(memory, filled)
    lines = {"push, p50": p50, "SET, p50": control, "push, server CPU": cpu}
    yield Plot("growth", "A push of 1 KB by pending keys", "pending keys", "µs", lines)


def _flatness(
    p50: list[tuple[float, float]], control: list[tuple[float, float]], cpu: list[tuple[float, float]]
) -> Iterator[Measurement]:
    for (keys, value), (_, base), (_, server) in zip(p50, control, cpu, strict=True):
        yield Figure(
            AREA, f"push with {keys:,.0f} keys pending, p50", value, "µs", peer="SET", peer_value=base,
            note=f"{server:.0f} µs of server CPU",
        )  # fmt: skip
    span = f"{p50[0][0]:,.0f} → {p50[-1][0]:,.0f} keys"
    yield Figure(
        AREA, f"push p50, {span}", p50[-1][1] / p50[0][1], "×", target=at_most(1.2),
        note=f"a SET's p50 did {control[-1][1] / control[0][1]:.2f} × meanwhile",
    )  # fmt: skip
    yield Figure(AREA, f"server CPU of a push, {span}", cpu[-1][1] / cpu[0][1], "×", target=at_most(1.2))


def _memory(used: float, keys: int) -> Iterator[Measurement]:
    each = used / keys
    yield Figure(AREA, "server memory a pending key of 1 KB", each / 1000, "KB")
    yield Figure(
        AREA, "server memory at 1,000,000 pending keys", each * 1_000_000 / 1e9, "GB", target=at_most(2.0),
        note="" if keys >= 1_000_000 else f"extrapolated from {keys:,} keys",
    )  # fmt: skip


def _push(number: int, body: str) -> Call[Merged]:
    key = Key(f"thread-{number}", f"user-{number}")
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


def _probe(place: Ground, keys: int, count: int) -> tuple[float, float, float]:
    """Median µs of a push of a new key and of a SET of its bytes, in turns of `count / TURNS`; server CPU a push."""
    client = place.client
    body = text(CHARS, 2, 0)
    bytes_ = orjson.dumps({"a": body, "b": body})
    pushed: list[float] = []
    put: list[float] = []
    cpu = 0.0
    made = [_push(keys + 10_000_000 + number, body) for number in range(count)]
    each = max(1, count // TURNS)
    for first in range(0, count, each):
        before = server_cpu(client)
        for call in made[first : first + each]:
            started = time.perf_counter()
            send(client, call)
            pushed.append(time.perf_counter() - started)
        cpu += server_cpu(client) - before
        for number in range(first, first + each):
            started = time.perf_counter()
            client.set(f"k{number}", bytes_)
            put.append(time.perf_counter() - started)
    return percentile(pushed, 0.5) * 1e6, median(put) * 1e6, cpu / len(pushed) * 1e6


def _used(client: redis.Redis) -> float:
    return float(client.info("memory")["used_memory"])
