"""The inbox in figures: what `memd status` shows, and what the bells are counted by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import redis

from memd.inbox.claim import moment, text
from memd.inbox.verbs import BELLS, P, execute


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The inbox's figures at one moment."""

    due: int
    waiting: int
    parked: int
    batched: int
    batches: int
    rationed: int
    rationed_until: datetime | None
    """When the last of these keys is looked at again."""

    claimed: int
    dead: int
    raw: dict[str, int]
    unread: tuple[str, ...]
    stats: dict[str, int]
    oldest_waiting_s: float | None
    breakers: tuple[dict[str, Any], ...]
    workers: tuple[dict[str, str], ...]


def snapshot(client: redis.Redis, lists: Sequence[str]) -> Snapshot:
    """Count what is where. `waiting`: keys whose due time has come; `due`: all that have one."""
    seconds, micros = client.time()
    now = seconds * 1000 + micros // 1000
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
    for name in lists:
        pipeline.llen(name)
    due, waiting, batched, batches, rationed, last, *others = execute(pipeline)
    claimed, dead, stats, busy, head, workers, endpoints, unread, *lengths = others
    pipeline = client.pipeline(transaction=False)
    for bucket in busy:
        pipeline.zcard(f"{P}:parked:{text(bucket)}")
    for worker in workers:
        pipeline.hmget(worker, "state", "birth", "pid", "hostname", "memd")
    for endpoint in endpoints:
        pipeline.hmget(f"{P}:breaker:{text(endpoint)}", "until", "code", "opened")
    pipeline.hget(f"{P}:ctx:{text(head[0])}" if head else f"{P}:ctx:", ".first")
    *rest, first = execute(pipeline)
    return Snapshot(
        due=due,
        waiting=waiting,
        parked=sum(rest[: len(busy)]),
        batched=batched,
        batches=batches,
        rationed=rationed,
        rationed_until=moment(last[0][1]) if last else None,
        claimed=claimed,
        dead=dead,
        raw=dict(zip(lists, lengths, strict=True)),
        unread=tuple(sorted(map(text, unread))),
        stats={text(name): int(count) for name, count in stats.items()},
        oldest_waiting_s=max(0, now - int(first)) / 1000 if first else None,
        breakers=tuple(_breaker(now, row) for row in rest[len(busy) + len(workers) :] if row[0] is not None),
        workers=tuple(map(_worker, workers, rest[len(busy) : len(busy) + len(workers)])),
    )


def _breaker(now: int, row: list[bytes]) -> dict[str, Any]:
    until, code, opened = row
    return {"code": text(code), "open_s": (now - int(opened)) / 1000, "next_try_s": max(0, int(until) - now) / 1000}


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
    """How many workers have registered for our bells. Raises InboxUnavailable."""
    pipeline = client.pipeline(transaction=False)
    pipeline.scard(f"rq:workers:{BELLS}")
    return int(execute(pipeline)[0])


def bells(client: redis.Redis) -> tuple[int, int]:
    """How many bells RQ's queue holds, and how many of its workers are idle. Raises redis.RedisError."""
    pipeline = client.pipeline(transaction=False)
    pipeline.llen(f"rq:queue:{BELLS}")
    pipeline.smembers(f"rq:workers:{BELLS}")
    queued, names = pipeline.execute()
    if queued >= max(1, len(names)):
        return queued, 0
    for name in names:
        pipeline.hget(name, "state")
    return queued, pipeline.execute().count(b"idle")
