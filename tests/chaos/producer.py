"""One producer, as a process: pushes its share in order, and logs each context once it is acknowledged.

After a kill it continues behind the last logged context; contexts sent but not acknowledged are sent again.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from chaos import load
from chaos.plan import Plan, read_plan

AGAIN_S = 0.02
"""Pause before an unacknowledged push is sent again."""

BATCH = 20
"""Most contexts in one command of a producer that is late, where the door takes several."""

TIMEOUT_S = 5.0

Door = Callable[[Sequence[dict[str, Any]]], None]
"""Pushes bodies until they are acknowledged."""


def main() -> None:
    """`python -m chaos.producer FOLDER INDEX`."""
    folder, index = Path(sys.argv[1]), int(sys.argv[2])
    plan = read_plan(folder)
    door, batch = (RawDoor(plan), BATCH) if index % 2 == 0 else (trusted_door(), 1)
    log = os.open(load.log_file(folder, index), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    numbers = load.share(plan, index)
    place = os.fstat(log).st_size // load.LINE_BYTES
    while place < len(numbers):
        due = wait_for_turn(plan, place, len(numbers))
        chosen = numbers[place : min(place + batch, due)]
        push_all(door, plan, log, chosen)
        place += len(chosen)


def push_all(door: Door, plan: Plan, log: int, numbers: Sequence[int]) -> None:
    """Push contexts, log them, and send the older contexts that follow them again."""
    door([load.push(plan, number) for number in numbers])
    os.write(log, b"".join(b"%08d\n" % number for number in numbers))
    older = [again for number in numbers if (again := load.repeated(plan, number)) is not None]
    if older:
        door([load.push(plan, number) for number in older])


def wait_for_turn(plan: Plan, place: int, count: int) -> int:
    """Keep the pace that spreads a share over the time of the run; returns how many of `count` are due now."""
    each_s = plan.pushing_s / count
    threading.Event().wait(max(0.0, plan.begin + place * each_s - time.monotonic()))
    return max(place, int((time.monotonic() - plan.begin) / each_s)) + 1


class RawDoor:
    """RPUSH, by an app without a Redis client."""

    def __init__(self, plan: Plan) -> None:
        self._path = plan.socket
        self._socket: socket.socket | None = None

    def __call__(self, bodies: Sequence[dict[str, Any]]) -> None:
        """Push until the server replies with the length of the list."""
        words = [b"RPUSH", b"memd:in", *(json.dumps(body).encode() for body in bodies)]
        command = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
        while not self._ask(command).startswith(b":"):
            self._socket = None
            time.sleep(AGAIN_S)

    def _ask(self, command: bytes) -> bytes:
        """The server's reply, a line; empty when the connection is gone."""
        try:
            if self._socket is None:
                self._socket = socket.socket(socket.AF_UNIX)
                self._socket.settimeout(TIMEOUT_S)
                self._socket.connect(self._path)
            self._socket.sendall(command)
            answer = b""
            while not answer.endswith(b"\r\n"):
                part = self._socket.recv(1024)
                if not part:
                    return b""
                answer += part
        except OSError:
            return b""
        return answer


def trusted_door() -> Door:
    """`Memd.push`, one round trip each."""
    from memd.client import Memd  # the raw door's producer starts without it
    from memd.errors import MemdError, Rejected

    app = Memd()

    def push(bodies: Sequence[dict[str, Any]]) -> None:
        for body in bodies:
            while True:
                try:
                    app.push(**body)
                except Rejected:
                    raise
                except MemdError:  # not acknowledged
                    time.sleep(AGAIN_S)
                else:
                    break

    return push


if __name__ == "__main__":
    main()
