"""Parts of memd that cannot start and are tried again: noted by the supervisor of each host, shown by `memd status`.

In a separate file, as nothing else in the inbox concerns the processes of a host.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import redis

from memd.inbox.connection import execute
from memd.inbox.decoding import text
from memd.inbox.verbs import P

KEY = f"{P}:waiting_parts"
"""Hash: "<host> <part>" -> ms of the supervisor's last note."""

NOTED_MS = 60_000
"""The supervisor of a note that is older than this has ended."""


def note(client: redis.Redis, parts: Sequence[str]) -> None:
    """Replace the notes of this host. Raises InboxUnavailable."""
    host = os.uname().nodename
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.hkeys(KEY)
    (seconds, micros), fields = execute(pipeline)
    old = [field for field in fields if text(field).rpartition(" ")[0] == host]
    pipeline = client.pipeline(transaction=True)
    if old:
        pipeline.hdel(KEY, *old)
    for part in parts:
        pipeline.hset(KEY, f"{host} {part}", seconds * 1000 + micros // 1000)
    pipeline.pexpire(KEY, NOTED_MS)
    execute(pipeline)


def read(noted: Mapping[bytes, bytes], now: int) -> tuple[str, ...]:
    """The waiting parts in the hash at `now` (ms), as "<part> on <host>"."""
    fresh = (text(name) for name, at in noted.items() if int(at) + NOTED_MS > now)
    return tuple(sorted(f"{part} on {host}" for host, _, part in (name.rpartition(" ") for name in fresh)))
