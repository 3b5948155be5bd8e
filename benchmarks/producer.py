"""One of several producers: makes its pushes, waits for a line, sends them, and prints when it began and ended."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import orjson

from benchmarks.ground import plain_client
from benchmarks.load import conversation
from memd import config
from memd.client import Memd
from memd.inbox import verbs
from memd.inbox.connection import connect, send
from memd.push.filtering import to_context
from memd.push.validation import check_push


def main() -> None:
    """`python -m benchmarks.producer KIND COUNT NUMBER`"""
    kind, count, number = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    step = _step(kind, [conversation(number * count + place) for place in range(count)])
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.time()
    for place in range(count):
        step(place)
    print(began, time.time())


def _step(kind: str, pushes: list[dict[str, object]]) -> Callable[[int], object]:
    settings = config.load().settings
    client = connect(settings) if kind == "FCALL" else plain_client(settings)
    client.ping()
    if kind == "Memd.push":
        memd = Memd(settings)
        memd.status()
        return lambda n: memd.push(**pushes[n])  # type: ignore[arg-type]  # a push as a mapping
    if kind == "FCALL":
        calls = [verbs.push(to_context(check_push(push, settings.client))) for push in pushes]
        return lambda n: send(client, calls[n])
    raws = [orjson.dumps(push) for push in pushes]
    if kind == "RPUSH":
        return lambda n: client.rpush(verbs.RAW, raws[n])
    return lambda n: client.set(f"k{pushes[n]['thread_id']}", raws[n])


if __name__ == "__main__":
    main()
