"""One producer, as a process: pushes its share in order, and logs each context once it is acknowledged.

Killed and started again it goes on behind the last one logged: what was sent but not acknowledged is sent again.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

from chaos import load
from chaos.plan import Plan, read_plan

AGAIN_S = 0.02
"""Pause before a push that was not acknowledged is sent again."""

Push = Callable[[dict[str, Any]], None]


def main() -> None:
    """`python -m chaos.producer FOLDER INDEX`."""
    folder, index = Path(sys.argv[1]), int(sys.argv[2])
    plan = read_plan(folder)
    push = _raw_door(plan) if index % 2 == 0 else _trusted_door()
    log = os.open(load.log_file(folder, index), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    numbers = load.share(plan, index)
    done = os.fstat(log).st_size // load.LINE_BYTES
    pause = threading.Event()
    for place, number in enumerate(numbers[done:], done):
        moment = plan.begin + plan.pushing_s * place / len(numbers)
        pause.wait(max(0.0, moment - time.monotonic()))
        push(load.push(plan, number))
        os.write(log, b"%08d\n" % number)
        older = load.repeated(plan, number)
        if older is not None:
            push(load.push(plan, older))


def _raw_door(plan: Plan) -> Push:
    """One RPUSH for each context, as an app without our library does it."""
    client = redis.Redis(unix_socket_path=plan.socket, socket_timeout=5)

    def push(body: dict[str, Any]) -> None:
        raw = json.dumps(body).encode()
        while True:
            try:
                client.rpush("memd:in", raw)
            except redis.RedisError:  # not acknowledged
                time.sleep(AGAIN_S)
            else:
                return

    return push


def _trusted_door() -> Push:
    from memd.client import Memd  # the raw door's producer starts without it
    from memd.errors import MemdError, Rejected

    app = Memd()

    def push(body: dict[str, Any]) -> None:
        while True:
            try:
                app.push(**body)
            except Rejected:
                raise
            except MemdError:  # not acknowledged
                time.sleep(AGAIN_S)
            else:
                return

    return push


if __name__ == "__main__":
    main()
