"""Looking at keys: state, size and times of what is pending or claimed, page by page; never a text.

Only what a person asks for reads these; no page is atomic, so a key that moves meanwhile may be missing or twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import redis

from memd.context import user_hash
from memd.errors import Rejected
from memd.inbox.connection import execute, execute_past
from memd.inbox.decoding import moment, text
from memd.inbox.verbs import P

KeyState = Literal["waiting", "due", "parked", "rationed", "batched", "claimed"]
SOURCES = ("claimed", "due", "parked", "rationed", "batched")
"""The rows of the inbox in the order in which they are shown."""

MAX_LIMIT = 1_000

SHOWN = (".thread", ".user", ".agent", ".first", ".size", ".parked", ".worker")
OTHERS = (
    ".bucket", ".owner", ".last", ".tokens", ".from", ".to", ".gen", ".attempts", ".delays", ".after", ".now",
    ".suspect", ".urgent", ".batch", ".sent", ".print", ".answer", ".held", ".key",
    ".formless", ".endpoint", ".wire", ".traces",
)  # fmt: skip
"""All fields of a context or claim that are no message (`lua/ground.lua`): the rest of its fields are the turns."""


@dataclass(frozen=True, slots=True)
class PendingKey:
    """One key that has not ended. `turns`, `tokens`: of its messages. `due_at`: when it may be claimed, if known.

    `state`: waiting (for its quiet time), due, parked (its bucket is busy), rationed (a budget is used up), batched (no
    reply of its batch yet), claimed. `claimed_by`: the worker, as host:pid. `due_in_s` is 0 for a key that is due.
    """

    user_id: str
    agent_name: str
    thread_id: str
    state: KeyState
    turns: int
    tokens: int
    first_push: datetime | None = None
    due_at: datetime | None = None
    due_in_s: float | None = None
    claimed_by: str | None = None


@dataclass(frozen=True, slots=True)
class PendingPage:
    """One page of keys; `next` is the cursor of the next one, empty on the last."""

    keys: tuple[PendingKey, ...]
    next: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a key or a claim was found: its name, its hash on the server, and the time that its row gives (ms)."""

    name: str
    hash: str
    time_ms: float | None = None


def pending_page(client: redis.Redis, *, after: str = "", limit: int = 100, user_id: str | None = None) -> PendingPage:
    """One page of at most `limit` keys, from the cursor `after` on: of all users, or of one.

    Raises Rejected, InboxUnavailable.
    """
    if not 1 <= limit <= MAX_LIMIT:
        raise Rejected("E_LIMIT", f"limit is 1 to {MAX_LIMIT}", "limit", MAX_LIMIT)
    source, _, start = (after or f"{SOURCES[0]}:0").partition(":")
    if source not in SOURCES or not start.isdecimal() or len(start) > 15:
        raise Rejected("E_CURSOR", "the cursor is none that a page returned", "after")
    if user_id is not None:
        places, following = _of_user(client, user_hash(user_id), int(start), limit)
    else:
        places, following = _of_all(client, source, int(start), limit)
    return PendingPage(tuple(_described(client, places)), following)


def standing_of(client: redis.Redis, key: str) -> tuple[PendingKey, ...]:
    """What of one key (hash) has not ended: its claim, then what is pending. Raises InboxUnavailable."""
    return tuple(_described(client, list(_open([key], client))))


def open_keys(client: redis.Redis, owners: Sequence[str]) -> list[int]:
    """For each user (hash), how many keys are pending or claimed. Raises InboxUnavailable.

    The server counts: a user may have thousands of keys that have ended.
    """
    rows = ("due", "rationed", "batched")
    pipeline = client.pipeline(transaction=False)
    pipeline.hgetall(f"{P}:busy")
    for owner in owners:
        for row in rows:
            pipeline.zintercard(2, [f"{P}:{row}", f"{P}:user:{owner}"])
    busy, *counts = execute(pipeline)
    open_of = {owner: sum(counts[len(rows) * place :][: len(rows)]) for place, owner in enumerate(owners)}
    for owner, keys in _under_way(client, busy):
        if owner in open_of:
            open_of[owner] += keys
    return [open_of[owner] for owner in owners]


def _under_way(client: redis.Redis, busy: Mapping[bytes, bytes]) -> Iterator[tuple[str, int]]:
    """For each busy bucket, whose it is (a hash), and how many of its keys are parked, or claimed and not pending."""
    claims = client.pipeline(transaction=False)
    for bucket, claim in busy.items():
        claims.hmget(f"{P}:claim:{text(claim)}", ".owner", ".key")
        claims.zcard(f"{P}:parked:{text(bucket)}")
    found = execute_past(claims) if busy else []
    pairs = [(owner_and_key, parked or 0) for owner_and_key, parked in zip(found[::2], found[1::2], strict=True)]
    there = [(text(row[0]), text(row[1]), parked) for row, parked in pairs if row and row[0] is not None]
    pending = client.pipeline(transaction=False)
    for _, key, _ in there:
        pending.exists(f"{P}:ctx:{key}")
    for (owner, _, parked), exists in zip(there, execute(pending) if there else (), strict=True):
        yield owner, parked + (not exists)


def _of_user(client: redis.Redis, owner: str, start: int, limit: int) -> tuple[list[_Place], str]:
    """A page of a user's keys, in the order of their hashes."""
    members = client.pipeline(transaction=False)
    members.smembers(f"{P}:user:{owner}")
    keys = sorted(map(text, execute(members)[0]))
    places = list(_open(keys[start : start + limit], client))
    return places, f"{SOURCES[0]}:{start + limit}" if start + limit < len(keys) else ""


def _open(keys: Sequence[str], client: redis.Redis) -> Iterator[_Place]:
    """Where those of the keys are that have not ended."""
    if not keys:
        return
    pipeline = client.pipeline(transaction=False)
    for key in keys:
        pipeline.exists(f"{P}:ctx:{key}")
        pipeline.hget(f"{P}:outcome:{key}", ".claim")
        for row in ("due", "rationed", "batched"):
            pipeline.zscore(f"{P}:{row}", key)
    replies = execute(pipeline)
    for number, key in enumerate(keys):
        pending, claim, *times = replies[5 * number : 5 * number + 5]
        if claim is not None:
            yield _Place(key, f"{P}:claim:{text(claim)}")
        if pending:
            yield _Place(key, f"{P}:ctx:{key}", next((time for time in times if time is not None), None))


def _of_all(client: redis.Redis, source: str, start: int, limit: int) -> tuple[list[_Place], str]:
    """A page of all keys, row by row; within a row by time."""
    places: list[_Place] = []
    for name in SOURCES[SOURCES.index(source) :]:
        room = limit - len(places)
        if room == 0:
            return places, f"{name}:0"
        rows = _parked(client, start, room) if name == "parked" else _row(client, name, start, room)
        places += rows
        if len(rows) == room:
            return places, f"{name}:{start + room}"
        start = 0
    return places, ""


def _row(client: redis.Redis, name: str, start: int, room: int) -> list[_Place]:
    pipeline = client.pipeline(transaction=False)
    pipeline.zrange(f"{P}:{name}", start, start + room - 1, withscores=True)
    kind = "claim" if name == "claimed" else "ctx"
    return [_Place(text(member), f"{P}:{kind}:{text(member)}", score) for member, score in execute(pipeline)[0]]


def _parked(client: redis.Redis, start: int, room: int) -> list[_Place]:
    """The parked keys of all busy buckets, as one row; no more buckets are busy than claims are open."""
    buckets = client.pipeline(transaction=False)
    buckets.hkeys(f"{P}:busy")
    names = sorted(map(text, execute(buckets)[0]))
    if not names:
        return []
    lengths = client.pipeline(transaction=False)
    for bucket in names:
        lengths.zcard(f"{P}:parked:{bucket}")
    rows = client.pipeline(transaction=False)
    at = 0
    for bucket, length in zip(names, execute(lengths), strict=True):
        first, last = max(0, start - at), min(length, start + room - at) - 1
        if first <= last:
            rows.zrange(f"{P}:parked:{bucket}", first, last, withscores=True)
        at += length
    pairs = [pair for row in execute(rows) for pair in row]
    return [_Place(text(member), f"{P}:ctx:{text(member)}", score) for member, score in pairs]


def _described(client: redis.Redis, places: Sequence[_Place]) -> Iterator[PendingKey]:
    """The keys at these places; what has moved since is left out."""
    if not places:
        return
    pipeline = client.pipeline(transaction=False)
    pipeline.time()
    for place in places:
        pipeline.hmget(place.hash, *SHOWN, *OTHERS)
        pipeline.hlen(place.hash)
    (seconds, micros), *replies = execute(pipeline)
    now = seconds * 1000 + micros // 1000
    for place, values, fields in zip(places, replies[::2], replies[1::2], strict=True):
        if values[1] is not None:
            yield _key(place, values, fields - sum(value is not None for value in values), now)


def _key(place: _Place, values: Sequence[bytes | None], turns: int, now: int) -> PendingKey:
    known = (None if value is None else text(value) for value in values[: len(SHOWN)])
    thread, user, agent, first, size, parked, worker = known
    claimed = ":claim:" in place.hash
    due = None if claimed else place.time_ms
    state: KeyState = "claimed" if claimed else _state(parked, due, now)
    return PendingKey(
        user or "",
        agent or "",
        thread or "",
        state,
        turns,
        int(size or 0),
        moment(float(first)) if first else None,
        None if due is None else moment(due),
        None if due is None else max(0.0, (due - now) / 1000),
        (worker or "").rpartition(":")[0] or None,
    )


def _state(parked: str | None, due: float | None, now: int) -> KeyState:
    if parked in {"rationed", "batched"}:
        return "rationed" if parked == "rationed" else "batched"
    if parked:
        return "parked"
    return "due" if due is not None and due <= now else "waiting"
