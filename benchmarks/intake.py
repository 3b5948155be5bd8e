"""The raw door: how fast a scheduler takes in the pushes of producers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import orjson

from benchmarks.figures import Figure, Measurement, at_least
from benchmarks.ground import Ground, ground
from benchmarks.load import conversation
from benchmarks.sizes import Size
from benchmarks.timing import interleaved, median, server_cpu, spread
from memd.inbox.verbs import RAW
from memd.scheduler.intake import Intake

AREA = "intake"


def measure(size: Size) -> Iterator[Measurement]:
    """The scheduler's duty, called until the list is empty, with short turns and with turns of usual length."""
    with ground(scheduler__quiet_s=300) as place:
        for chars in (60, 512):
            turns: dict[str, list[Any]] = interleaved(
                size.rounds,
                {"memd": partial(_taken_in, place, size.contexts, chars), "SET": partial(_sets, place, size.contexts)},
            )
            rates = [rate for rate, _, _ in turns["memd"]]
            cpu, server = (median([one[part] for one in turns["memd"]]) * 1e6 for part in (1, 2))
            yield Figure(
                AREA, f"contexts taken in, two messages of {chars} characters", median(rates), "/s",
                peer="SET, 1 KB, one connection", peer_value=median(turns["SET"]), peer_there=(11_000, 31_000),
                target=at_least(5_000), spread=spread(rates),
                note=f"{cpu:.0f} µs CPU of the scheduler and {server:.0f} µs of the server each",
            )  # fmt: skip


def _sets(place: Ground, count: int) -> float:
    """SETs a second over one connection."""
    value = b"x" * 1_024
    started = time.perf_counter()
    for _ in range(count):
        place.client.set("bench", value)
    return count / (time.perf_counter() - started)


def _taken_in(place: Ground, count: int, chars: int) -> tuple[float, float, float]:
    """Contexts a second, and the CPU seconds a context of the scheduler and of the server."""
    place.clear()
    for number in range(count):
        place.client.rpush(RAW, orjson.dumps(conversation(number, chars)))
    intake = Intake(place.settings, place.client)
    cpu, server, started = time.process_time(), server_cpu(place.client), time.perf_counter()
    while place.client.llen(RAW):
        intake.tick()
    wall = time.perf_counter() - started
    return count / wall, (time.process_time() - cpu) / count, (server_cpu(place.client) - server) / count
