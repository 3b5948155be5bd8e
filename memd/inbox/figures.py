"""The inbox in figures: the only module that counts, for `memd status`, `memd doctor`, the costs and the bells.

A key is pending until it is claimed, and due once its due time has come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import redis

from memd.inbox import waiting_parts
from memd.inbox.connection import execute, execute_past
from memd.inbox.decoding import moment, text
from memd.inbox.verbs import BELLS, P


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxFigures:
    """The figures at one moment that `Figures` and `Status` share. Counts are of keys unless a field says otherwise."""

    pending: int
    """All keys that no worker has claimed: scheduled, due, parked, rationed or batched."""

    due: int
    """Pending keys whose due time has come, and that wait only for a worker."""

    parked: int
    """Pending keys that wait for their bucket."""

    batched: int
    """Pending keys that wait for the reply of a batch."""

    batches: int
    """Batches in flight."""

    rationed: int
    """Pending keys that wait for a budget of tokens, or for that of their thread's extractions."""

    rationed_until: datetime | None
    """When the last of the rationed keys is tried again."""

    claimed: int
    dead: int
    """Dead letters."""

    raw: dict[str, int]
    """Pushes in each raw list."""

    raw_letters: dict[str, int]
    """Dead letters of raw pushes by list; lists without letters are left out."""

    unread: tuple[str, ...]
    """Raw lists that producers push to but no scheduler reads, because `client.apps` does not name their apps."""

    oldest_waiting_s: float | None
    """Seconds since the first push of the key that is due first."""

    paused: tuple[dict[str, Any], ...]
    """Model endpoints whose breaker is open: the code, seconds open, seconds until the next try, and the host when only
    one host is paused."""

    workers: tuple[dict[str, str], ...]
    waiting_parts: tuple[str, ...]
    """Parts of `memd up` that cannot start and are tried again, as "<part> on <host>"; its log says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures(InboxFigures):
    """The inbox's figures with its counters."""

    stats: dict[str, int]
    """All counters by name."""


def read_figures(client: redis.Redis, lists: Sequence[str]) -> Figures:
    """Count the keys, the letters and the workers; `lists` names the raw lists. Raises InboxUnavailable."""
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    (seconds, micros) = execute(pipeline)[0]
    now = seconds * 1000 + micros // 1000
    scheduled, due, batched, batches, rationed, last, *others = _counts(client, lists, now)
    claimed, dead, stats, busy, head, workers, endpoints, unread, noted, *lengths = others
    parked, rows, opened, first = _details(client, busy, workers, endpoints, head)
    return Figures(
        pending=scheduled + parked + rationed + batched,
        due=due,
        parked=parked,
        batched=batched,
        batches=batches,
        rationed=rationed,
        rationed_until=moment(last[0][1]) if last else None,
        claimed=claimed,
        dead=dead,
        raw=dict(zip(lists, lengths, strict=True)),
        raw_letters=_raw_letters(counters(stats)),
        unread=tuple(sorted(map(text, unread))),
        oldest_waiting_s=max(0, now - int(first)) / 1000 if first else None,
        paused=_paused(now, endpoints, opened),
        workers=tuple(
            _worker(name, row)
            for name, row in zip(workers, rows, strict=True)
            if row[0] is not None  # RQ keeps the names of dead workers, but not the rest
        ),
        waiting_parts=waiting_parts.read(noted, now),
        stats=counters(stats),
    )


def _counts(client: redis.Redis, lists: Sequence[str], now: int) -> list[Any]:
    """The counts, and the names that `_details` needs, in the order of the pipelined commands."""
    pipeline = client.pipeline(transaction=False)
    pipeline.zcard(f"{P}:due")
    pipeline.zcount(f"{P}:due", "-inf", now)
    pipeline.zcard(f"{P}:batched")
    pipeline.zcard(f"{P}:batches")
    pipeline.zcard(f"{P}:rationed")
    pipeline.zrange(f"{P}:rationed", -1, -1, withscores=True)
    pipeline.zcard(f"{P}:claimed")
    pipeline.zcard(f"{P}:dead")
    pipeline.hgetall(f"{P}:stats")
    pipeline.hkeys(f"{P}:busy")
    pipeline.zrange(f"{P}:due", 0, 0)
    pipeline.smembers(f"rq:workers:{BELLS}")
    pipeline.smembers(f"{P}:breakers")
    pipeline.smembers(f"{P}:unread")
    pipeline.hgetall(waiting_parts.KEY)
    for name in lists:
        pipeline.llen(name)
    return execute(pipeline)


def _details(
    client: redis.Redis,
    busy: Sequence[bytes],
    workers: Collection[bytes],
    endpoints: Collection[bytes],
    head: list[bytes],
) -> tuple[int, Any, Any, bytes | None]:
    """The count of parked keys, a row for each worker, a row for each breaker, and the time of the oldest first push.

    `head`: the key that is due first, if any.
    """
    pipeline = client.pipeline(transaction=False)
    for bucket in busy:
        pipeline.zcard(f"{P}:parked:{text(bucket)}")
    for worker in workers:
        pipeline.hmget(worker, "state", "birth", "pid", "hostname", "memd")
    for endpoint in endpoints:
        pipeline.hmget(f"{P}:breaker:{text(endpoint)}", "until", "code", "opened")
    pipeline.hget(f"{P}:ctx:{text(head[0])}" if head else f"{P}:ctx:", ".first")
    *rest, first = execute_past(pipeline)
    rows = [row or [None] * 5 for row in rest[len(busy) :]]
    return sum(count or 0 for count in rest[: len(busy)]), rows[: len(workers)], rows[len(workers) :], first


def _raw_letters(stats: Mapping[str, int]) -> dict[str, int]:
    mark = "raw_letters:"
    return {name.removeprefix(mark): n for name, n in sorted(stats.items()) if name.startswith(mark) and n}


def counters(flat: Mapping[bytes, bytes]) -> dict[str, int]:
    """A hash of counters by name."""
    return {text(name): int(count) for name, count in flat.items()}


def _paused(now: int, names: Iterable[bytes], rows: Iterable[list[bytes]]) -> tuple[dict[str, Any], ...]:
    """The open breakers. Breakers of single hosts are left out while the breaker that all hosts share is open."""
    opened = {text(name).partition("@"): row for name, row in zip(names, rows, strict=True) if row[0] is not None}
    shared = {endpoint for endpoint, _, host in opened if not host}
    return tuple(
        _breaker(now, host, row) for (endpoint, _, host), row in opened.items() if not host or endpoint not in shared
    )


def _breaker(now: int, host: str, row: list[bytes]) -> dict[str, Any]:
    until, code, opened = row
    return {
        "code": text(code),
        "open_s": (now - int(opened)) / 1000,
        "next_try_s": max(0, int(until) - now) / 1000,
        "host": host,
    }


def _worker(key: bytes, row: list[bytes | None]) -> dict[str, str]:
    texts = [text(value) if value is not None else "" for value in row]
    state, born, pid, host, version = texts
    return {
        "name": text(key).removeprefix("rq:worker:"),
        "state": state,
        "born": born,
        "pid": pid,
        "host": host,
        "version": version,
    }


def workers_listening(client: redis.Redis) -> int:
    """The number of live workers registered for our bells. Raises InboxUnavailable."""
    pipeline = client.pipeline(transaction=False)
    pipeline.smembers(f"rq:workers:{BELLS}")
    names = execute(pipeline)[0]
    for name in names:
        pipeline.exists(name)
    return sum(execute(pipeline)) if names else 0


def bells_and_idle(client: redis.Redis) -> tuple[int, int]:
    """The number of bells in RQ's queue and of idle workers. Raises redis.RedisError."""
    pipeline = client.pipeline(transaction=False)
    pipeline.llen(f"rq:queue:{BELLS}")
    pipeline.smembers(f"rq:workers:{BELLS}")
    queued, names = pipeline.execute()
    if queued >= max(1, len(names)):
        return queued, 0
    for name in names:
        pipeline.hget(name, "state")
    return queued, pipeline.execute().count(b"idle")
