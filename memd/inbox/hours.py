"""The counters of the last 48 hours, hour by hour. Numbers only: no id, no text.

`lua/hours.lua` notes them with the scheduler's sweep, once a second.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

import redis

from memd.inbox.connection import execute
from memd.inbox.decoding import moment, text
from memd.inbox.verbs import P

HOURS = 48
HOUR_MS = 3_600_000

Entry = tuple[int, ...]
"""An entry of the ring: the hour since 1970, keys pending, the most that were, then the counters in COUNTERS' order."""

COUNTERS = ("pushes", "stored", "skipped", "facts", "model_calls", "dead", "tokens")


@dataclass(frozen=True, slots=True)
class Hour:
    """What one hour counted. `start`: by the server's clock, in UTC; the present hour's row is at most a second old.

    `pushes`, `stored`, `skipped` and `dead` count pushes, as in `Status`; `dead` also those that were retried later.
    `facts`: added. `tokens`: of all kinds. `pending`: keys at the hour's end; `most_pending`: the most in any second.
    Both are None for an hour in which no scheduler ran; what it counted is in the next row that has them.
    """

    start: datetime
    pushes: int
    stored: int
    skipped: int
    dead: int
    facts: int
    model_calls: int
    tokens: int
    pending: int | None
    most_pending: int | None

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values, for JSON."""
        return asdict(self)


def read_hours(client: redis.Redis) -> tuple[Hour, ...]:
    """The last 48 hours, oldest first, a row each; fewer where the inbox is younger. Raises InboxUnavailable."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    pipeline.lrange(f"{P}:hours", 0, HOURS)
    (seconds, _), found = execute(pipeline)
    entries = [_entry(value) for value in reversed(found)]
    counted = {entry[0]: _hour(before, entry) for before, entry in pairwise(entries)}
    if not counted:
        return ()
    present = max(seconds * 1000 // HOUR_MS, *counted)
    first = max(min(counted), present - HOURS + 1)
    return tuple(counted.get(hour) or _unseen(hour) for hour in range(first, present + 1))


def _entry(value: bytes) -> Entry:
    return tuple(map(int, text(value).split(" ")))


def _hour(before: Entry, entry: Entry) -> Hour:
    """The row of an entry. A counter that somebody set back has counted nothing."""
    hour, pending, most, *counted = entry
    grown = (max(0, now - then) for then, now in zip(before[3:], counted, strict=False))
    return Hour(moment(hour * HOUR_MS), **dict(zip(COUNTERS, grown, strict=False)), pending=pending, most_pending=most)


def _unseen(hour: int) -> Hour:
    return Hour(moment(hour * HOUR_MS), **dict.fromkeys(COUNTERS, 0), pending=None, most_pending=None)
