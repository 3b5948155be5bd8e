"""pydocket, as its documentation sets it up: a Docket, a registered task with `Debounce`, and a Worker.

Runs in its own environment: `python pydocket_peer.py lateness PER_SECOND SECONDS` or `drain COUNT CONCURRENCY DELAY`.
Prints one line of JSON. BENCH_URL names the server.
"""

import asyncio
import json
import os
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Annotated

from docket import Debounce, Docket, Worker

SETTLE_S = 1.0
lateness: list[float] = []
ran: dict[int, float] = {}
waited: list[float] = []
"""One entry for each task of the drain that succeeded."""


async def at(due: float) -> None:
    """Records its lateness in seconds."""
    lateness.append(time.time() - due)


async def settled(key: Annotated[int, Debounce(timedelta(seconds=SETTLE_S))]) -> None:
    """Runs once its key has been quiet; records the moment."""
    ran[key] = time.time()


async def wait(delay: float) -> None:
    """Waits as for a model."""
    await asyncio.sleep(delay)
    waited.append(delay)


async def measure_lateness(per_second: float, seconds: float) -> dict[str, object]:
    """Tasks delayed by a second, and keys that are quiet for a second, at a steady rate."""
    async with Docket(name="bench", url=os.environ["BENCH_URL"]) as docket, Worker(docket) as worker:
        docket.register(at)
        docket.register(settled)
        running = asyncio.create_task(worker.run_forever())
        pushed: dict[int, float] = {}
        for number in range(int(per_second * seconds)):
            due = time.time() + SETTLE_S
            await docket.add(at, when=datetime.fromtimestamp(due, UTC))(due)
            pushed[number] = time.time()
            await docket.add(settled)(number)
            await asyncio.sleep(1 / per_second)
        until = time.monotonic() + SETTLE_S + 10
        while time.monotonic() < until and min(len(lateness), len(ran)) < len(pushed):  # noqa: ASYNC110  (filled by tasks)
            await asyncio.sleep(0.05)
        running.cancel()
        debounced = [ran[key] - moment - SETTLE_S for key, moment in pushed.items() if key in ran]
    return {"scheduled": lateness, "debounced": debounced}


async def measure_drain(count: int, concurrency: int, delay: float) -> dict[str, object]:
    """Tasks a second, all due already."""
    async with Docket(name="bench-drain", url=os.environ["BENCH_URL"]) as docket:
        docket.register(wait)
        started = time.perf_counter()
        for _ in range(count):
            await docket.add(wait)(delay)
        added = time.perf_counter() - started
        async with Worker(docket, concurrency=concurrency) as worker:
            started = time.perf_counter()
            await worker.run_until_finished()
            drained = time.perf_counter() - started
    return {"adds_per_s": count / added, "per_s": count / drained, "succeeded": len(waited)}


if __name__ == "__main__":
    if sys.argv[1] == "lateness":
        found = asyncio.run(measure_lateness(float(sys.argv[2]), float(sys.argv[3])))
    else:
        found = asyncio.run(measure_drain(int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
    print(json.dumps(found))
