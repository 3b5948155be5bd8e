"""The server's CPU for a push, compared with a SET inside a function, the least work of a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from benchmarks.figures import Figure, Measurement, at_most
from benchmarks.ground import Ground, ground
from benchmarks.push import calls
from benchmarks.sizes import Size
from benchmarks.timing import interleaved, median, server_cpu, spread
from memd.inbox.connection import send

AREA = "wire"
FUNCTION = """#!lua name=bench
redis.register_function('bench_set', function(keys, argv) return redis.call('SET', keys[1], argv[1]) end)
"""
TARGETS = {1: 5.0, 10: 3.2, 100: 3.5}


def measure(size: Size) -> Iterator[Measurement]:
    """Microseconds of server CPU for pushes of 1, 10 and 100 KB."""
    with ground(scheduler__quiet_s=300) as place:
        place.client.function_load(FUNCTION, replace=True)
        for kilobytes, bound in TARGETS.items():
            count = max(20, size.pushes // kilobytes)
            yield from _of_size(place, size, kilobytes, bound, count)


def _of_size(place: Ground, size: Size, kilobytes: int, bound: float, count: int) -> Iterator[Measurement]:
    client = place.client
    payload = b"x" * (kilobytes * 1024)
    made = calls(count, kilobytes * 512)
    contestants: dict[str, Callable[[int], object]] = {
        "SET": lambda n: client.set(f"k{n}", payload),
        "SET in a function": lambda n: client.fcall("bench_set", 1, f"k{n}", payload),
        "memd_push": lambda n: send(client, made[n]),
    }
    taken = interleaved(
        max(3, size.rounds), {name: partial(_cpu, place, count, step) for name, step in contestants.items()}
    )
    for name, values in taken.items():
        own = name == "memd_push"
        yield Figure(
            AREA,
            f"{name}, {kilobytes} KB",
            median(values),
            "µs",
            peer="SET in a function" if own else "",
            peer_value=median(taken["SET in a function"]) if own else None,
            target=at_most(bound, of="ratio") if own else None,
            spread=spread(values),
        )


def _cpu(place: Ground, count: int, step: Callable[[int], object]) -> float:
    place.clear()
    before = server_cpu(place.client)
    for number in range(count):
        step(number)
    return (server_cpu(place.client) - before) / count * 1e6
