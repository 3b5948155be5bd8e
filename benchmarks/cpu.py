"""What a push costs in CPU, of the client and of the server, in units of a plain SET of the same bytes.

Unlike rates these ratios hold on a busy machine: time that a process waits for a core is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import orjson

from benchmarks.figures import Figure, Measurement
from benchmarks.ground import Ground, ground, plain_client
from benchmarks.load import conversation
from benchmarks.push import calls
from benchmarks.sizes import Size
from benchmarks.timing import Turn, interleaved, median, spread, turn
from memd.client import Memd
from memd.inbox import verbs
from memd.inbox.connection import connect, send

AREA = "cpu"
CHARS = 512
LEAST = 300
"""Operations of a turn: fewer would be too short for the server's own figures."""


def measure(size: Size) -> Iterator[Measurement]:
    """Client and server of each way to push, 0.5 KB."""
    count = max(LEAST, size.pushes)
    pushes = [conversation(number, CHARS) for number in range(count)]
    raws, made = [orjson.dumps(push) for push in pushes], calls(count, CHARS)
    with (
        ground(scheduler__quiet_s=300) as place,
        Memd(place.settings) as memd,
        connect(place.settings) as client,
        plain_client(place.settings) as plain,
    ):
        steps: dict[str, Callable[[int], object]] = {
            "SET": lambda n: plain.set(f"k{n}", raws[n]),
            "RPUSH memd:in": lambda n: plain.rpush(verbs.RAW, raws[n]),
            "FCALL": lambda n: send(client, made[n]),
            "Memd.push": lambda n: memd.push(**pushes[n]),
        }
        memd.push(**pushes[0])  # the patterns are compiled, the connection is open

        def contestant(step: Callable[[int], object]) -> Callable[[], tuple[Turn, float]]:
            return lambda: _turn(place, count, step)

        taken = interleaved(max(3, size.rounds), {name: contestant(step) for name, step in steps.items()})
    for whose, cost in (("client", _of_client), ("server", _of_server)):
        base = median([cost(one) for one in taken["SET"]])
        for name, turns in taken.items():
            values = [cost(one) for one in turns]
            peer = "" if name == "SET" else f"SET, {whose}"
            yield Figure(
                AREA,
                f"{name}, {whose}",
                median(values),
                "µs",
                peer=peer,
                peer_value=base if peer else None,
                spread=spread(values),
            )


def _turn(place: Ground, count: int, step: Callable[[int], object]) -> tuple[Turn, float]:
    """A turn on an emptied server, and the CPU seconds of the server meanwhile."""
    place.clear()
    before = _server_s(place)
    taken = turn(count, step)
    return taken, _server_s(place) - before


def _server_s(place: Ground) -> float:
    found = place.client.info("cpu")
    return float(found["used_cpu_user"]) + float(found["used_cpu_sys"])


def _of_client(taken: tuple[Turn, float]) -> float:
    return taken[0].cpu_s / taken[0].count * 1e6


def _of_server(taken: tuple[Turn, float]) -> float:
    return taken[1] / taken[0].count * 1e6
