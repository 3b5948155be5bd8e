"""Records the moment of each claim by the server's notifications: a claim renames the key's hash."""

from __future__ import annotations

import json
import sys
import threading
import time

from memd import config
from memd.inbox.connection import connect
from memd.inbox.verbs import P

CHANNEL = "__keyevent@0__:rename_from"
PREFIX = f"{P}:ctx:"


def main() -> None:
    """Print `ready`, then, at the end of the input, one line of JSON: key → seconds since 1970."""
    claimed: dict[str, float] = {}
    client = connect(config.load().settings)
    client.config_set("notify-keyspace-events", "Eg")
    listening = client.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]  # redis-py's gap
    listening.subscribe(CHANNEL)
    ended = threading.Event()

    def listen() -> None:
        while not ended.is_set():
            message = listening.get_message(timeout=0.2)
            if message and message["type"] == "message":
                now = time.time()
                name: bytes = message["data"]
                claimed[name.decode().removeprefix(PREFIX)] = now

    thread = threading.Thread(target=listen)
    thread.start()
    print("ready", flush=True)
    sys.stdin.read()
    ended.set()
    thread.join()
    print(json.dumps(claimed))


if __name__ == "__main__":
    main()
