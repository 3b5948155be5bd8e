"""Scanning: all keys of a name, for what an operator asks for once. Nothing on the way of a context scans."""

from __future__ import annotations

from collections.abc import Iterator

import redis

from memd.inbox.connection import translate
from memd.inbox.decoding import text

PAGE = 1_000
"""Keys that the server looks at in one call."""


def pages_of(client: redis.Redis, pattern: str) -> Iterator[list[str]]:
    """The names of the keys that are there all the while, some of them twice, by page. Raises InboxUnavailable."""
    cursor = 0
    while True:
        try:
            cursor, names = client.scan(cursor, match=pattern, count=PAGE)
        except redis.RedisError as error:
            translate(error, client)
        if names:
            yield list(map(text, names))
        if cursor == 0:
            return
