"""Push: both doors compared with plain Redis commands of the same bytes, by one producer and by four.

`Memd.push` includes checks, filtering, identities and one FCALL. `FCALL` is the same command, prepared before, so it
has only the share of the wire and the server. RPUSH is the whole work of a raw producer; intake.py measures the
scheduler's part. SET and RPUSH go through redis-py's own client, as an app sends them.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import orjson
import redis

from benchmarks.figures import Figure, Measurement, at_least
from benchmarks.ground import Ground, environment, ground, plain_client
from benchmarks.load import conversation
from benchmarks.peers.checked import check_succeeded, figures_of
from benchmarks.sizes import SHORT, Size
from benchmarks.timing import Turn, interleaved, median, spread, turn
from memd.client import AsyncMemd, Memd
from memd.config import ClientSettings
from memd.inbox import verbs
from memd.inbox.connection import Call, Flight, connect, connect_async, send, send_async
from memd.inbox.verbs import Merged
from memd.push.filtering import to_context
from memd.push.validation import check_push

AREA = "push"
SIZES_KB = (0.5, 5, 50)
IN_FLIGHT = 16
BATCH = 50
BOUNDS = {"FCALL": 0.55, "Memd.push": 0.45}
"""The least share of the rate of SET, for a push of the smallest size."""
PRODUCERS = 4


def measure(size: Size) -> Iterator[Measurement]:
    """One producer at three sizes, then four producers, then RQ's ways to delay a job."""
    with ground(scheduler__quiet_s=300) as place:
        for kilobytes in SIZES_KB:
            count = max(10, int(size.pushes / (1 if kilobytes < 1 else kilobytes)))
            yield from _one_producer(place, size, kilobytes, count)
        yield from _four_producers(place, size)
        yield from figures_of(AREA, "RQ alone", _rq(place, size))


def calls(count: int, chars: int) -> list[Call[Merged]]:
    """The commands of this many pushes, made before the clock starts."""
    pushes = (check_push(conversation(number, chars), ClientSettings()) for number in range(count))
    return [verbs.push(to_context(push)) for push in pushes]


def _one_producer(place: Ground, size: Size, kilobytes: float, count: int) -> Iterator[Measurement]:
    chars = int(kilobytes * 1024)
    pushes = [conversation(number, chars) for number in range(count)]
    raws = [orjson.dumps(push) for push in pushes]
    made = calls(count, chars)
    with Memd(place.settings) as memd, connect(place.settings) as client, plain_client(place.settings) as plain:
        contestants: dict[str, Callable[[], Turn]] = {
            "SET": lambda: turn(count, lambda n: plain.set(f"k{n}", raws[n])),
            "RPUSH memd:in": lambda: turn(count, lambda n: plain.rpush(verbs.RAW, raws[n])),
            "FCALL": lambda: turn(count, lambda n: send(client, made[n])),
            "Memd.push": lambda: turn(count, lambda n: memd.push(**pushes[n])),
        }
        others: dict[str, Callable[[], Turn]] = {
            f"SET, {BATCH} a pipeline": lambda: _batches(count, partial(_set_batch, plain, raws)),
            f"FCALL, {BATCH} a pipeline": lambda: _batches(count, lambda a, b: Flight(client, made[a:b]).land()),
            f"SET, async, {IN_FLIGHT} in flight": lambda: asyncio.run(_async_set(place, raws)),
            f"FCALL, async, {IN_FLIGHT} in flight": lambda: asyncio.run(_async_fcall(place, made)),
            f"AsyncMemd.push, {IN_FLIGHT} in flight": lambda: asyncio.run(_async_push(place, pushes)),
        }
        if kilobytes < 1 or size is not SHORT:  # larger pushes differ only by their bytes
            contestants |= others
        memd.push(**pushes[0])  # the patterns are compiled, the connection is open
        taken = interleaved(
            size.rounds, {name: partial(_fresh, place, name, step) for name, step in contestants.items()}
        )
    yield from _figures(taken, kilobytes)


def _fresh(place: Ground, name: str, step: Callable[[], Turn]) -> Turn:
    """One turn on an emptied server, where all of its pushes must have arrived."""
    place.clear()
    taken = step()
    check_succeeded(name, arrived(place, name), taken.count)
    return taken


def arrived(place: Ground, name: str) -> int:
    """How many pushes, or plain commands, of a contestant have arrived on the server."""
    if name.startswith("SET"):
        return sum(1 for _ in place.client.scan_iter(match="k*", count=1_000))
    if name.startswith("RPUSH"):
        return int(place.client.llen(verbs.RAW))
    return int(place.client.zcard(f"{verbs.P}:due"))


def _figures(taken: dict[str, list[Turn]], kilobytes: float) -> Iterator[Figure]:
    for name, turns in taken.items():
        rates = [one.rate for one in turns]
        peer = f"SET{name[name.index(',') :]}" if "," in name else "SET"
        peer = peer if "AsyncMemd" not in name else f"SET, async, {IN_FLIGHT} in flight"
        bound = BOUNDS.get(name) if kilobytes < 1 else None
        yield Figure(
            AREA,
            f"{name}, {kilobytes:g} KB",
            median(rates),
            "/s",
            peer=peer if peer != name else "",
            peer_value=median([one.rate for one in taken[peer]]) if peer != name else None,
            target=at_least(bound, of="ratio") if bound else None,
            spread=spread(rates),
            note=f"{median([one.cpu_s / one.count for one in turns]) * 1e6:.0f} µs CPU of the client",
        )


def _batches(count: int, step: Callable[[int, int], object]) -> Turn:
    batches = -(-count // BATCH)
    taken = turn(batches, lambda n: step(n * BATCH, min(count, (n + 1) * BATCH)))
    return Turn(count, taken.wall_s, taken.cpu_s)


def _set_batch(client: redis.Redis, raws: list[bytes], start: int, end: int) -> None:
    pipeline = client.pipeline(transaction=False)
    for number in range(start, end):
        pipeline.set(f"k{number}", raws[number])
    pipeline.execute()


async def _in_flight(count: int, step: Callable[[int], Any]) -> None:
    places = asyncio.Semaphore(IN_FLIGHT)

    async def one(number: int) -> None:
        async with places:
            await step(number)

    await asyncio.gather(*(one(number) for number in range(count)))


async def _async_set(place: Ground, raws: list[bytes]) -> Turn:
    client = connect_async(place.settings)
    try:
        return await _async_turn(len(raws), lambda n: client.set(f"k{n}", raws[n]))
    finally:
        await client.aclose()


async def _async_fcall(place: Ground, made: list[Call[Merged]]) -> Turn:
    client = connect_async(place.settings)
    try:
        return await _async_turn(len(made), lambda n: send_async(client, made[n]))
    finally:
        await client.aclose()


async def _async_push(place: Ground, pushes: list[dict[str, Any]]) -> Turn:
    async with AsyncMemd(place.settings) as memd:
        return await _async_turn(len(pushes), lambda n: memd.push(**pushes[n]))


async def _async_turn(count: int, step: Callable[[int], Any]) -> Turn:
    await step(0)  # the first connection and the patterns
    started, cpu = time.perf_counter(), time.process_time()
    await _in_flight(count, step)
    return Turn(count, time.perf_counter() - started, time.process_time() - cpu)


def _four_producers(place: Ground, size: Size) -> Iterator[Measurement]:
    kinds = ("SET", "RPUSH", "FCALL", "Memd.push")
    contestants = {kind: partial(_producers, place, kind, size.pushes) for kind in kinds}
    taken = interleaved(max(1, size.rounds // 2), contestants)
    for kind, rates in taken.items():
        own = kind == "SET"
        yield Figure(
            AREA,
            f"{kind}, 0.5 KB, {PRODUCERS} producers",
            median(rates),
            "/s",
            peer="" if own else f"SET, {PRODUCERS} producers",
            peer_value=None if own else median(taken["SET"]),
            spread=spread(rates),
        )


def _producers(place: Ground, kind: str, count: int) -> float:
    """Pushes a second of all producers together, from when the last one begins to when the first one ends."""
    place.clear()
    words = [sys.executable, "-m", "benchmarks.producer", kind, str(count)]
    env = environment(place.settings)
    started = [
        subprocess.Popen([*words, str(number)], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for number in range(PRODUCERS)
    ]
    for one in started:
        assert one.stdout is not None
        one.stdout.readline()  # it has made its pushes and waits for the line
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    spans = [tuple(map(float, one.communicate(timeout=120)[0].split())) for one in started]
    check_succeeded(f"{kind}, {PRODUCERS} producers", arrived(place, kind), PRODUCERS * count)
    return PRODUCERS * count / (max(end for _, end in spans) - min(begin for begin, _ in spans))


def _rq(place: Ground, size: Size) -> Iterator[Measurement]:
    """RQ alone: a job of 1 KB, and the debounce that it leaves to its caller: delete the job and delay a new one."""
    from rq import Queue

    from benchmarks.peers.rq_jobs import debounced, nothing

    client = plain_client(place.settings)
    queue = Queue("bench", connection=client)
    payload = orjson.dumps(conversation(1)).decode()
    count = max(10, size.pushes // 3)

    def enqueued() -> Turn:
        place.clear()
        taken = turn(count, lambda n: queue.enqueue(nothing, payload))
        check_succeeded("RQ enqueue", queue.count, count)
        return taken

    def put_off() -> Turn:
        place.clear()
        taken = turn(count, lambda n: debounced(queue, n % 10, payload))
        check_succeeded("RQ as a debounce", queue.scheduled_job_registry.count, min(10, count))
        return taken

    contestants: dict[str, Callable[[], Turn]] = {
        "SET": partial(_fresh, place, "SET", lambda: turn(count, lambda n: client.set(f"k{n}", payload))),
        "RQ enqueue": enqueued,
        "RQ as a debounce (fetch, delete, enqueue_in)": put_off,
    }
    taken = interleaved(size.rounds, contestants)
    base = median([one.rate for one in taken.pop("SET")])
    for name, turns in taken.items():
        rates = [one.rate for one in turns]
        yield Figure(AREA, name, median(rates), "/s", peer="SET", peer_value=base, spread=spread(rates))
