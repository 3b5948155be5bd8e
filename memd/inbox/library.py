"""The function libraries of the inbox on a server: loading them, and the settings they read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any, Final, NamedTuple, TypeAlias

import redis
from redis.client import Pipeline

from memd.config import Settings
from memd.context import FUNCTIONS_VERSION, WIRE_VERSION
from memd.errors import OtherStore
from memd.inbox.connection import fails_over, translate
from memd.inbox.decoding import text
from memd.inbox.verbs import P
from memd.memory.store.protocol import Store
from memd.push.answers import MAX_TOKENS

BUILD = 35
"""Grows with every change of the Lua; an older build never replaces a newer one."""

FIRST_WITH_LINES = 16
"""The build since which the pending keys of a bucket stand in line; what older ones left is lined up once."""

SHARED = ("ground", "waiting", "header", "merge")
"""The files of `lua/` that both libraries begin with, in this order: each uses the ones before it."""

DRAIN = (
    "events", "budget", "extractions", "breaker", "line", "waits", "claim", "settle", "batches", "dead", "forget",
    "take", "flush", "pending", "hours", "upkeep", "failover",
    "backup",
)  # fmt: skip

BUDGETS = ("total_day_tokens", "user_day_tokens", "thread_day_extractions")

OF_A_PUSH = (
    "enabled", "failover", "quiet_ms", "max_wait_ms", "flush_tokens", "backoff_max_ms", "tick_ms", "known_ttl_ms",
    "max_messages", "max_push_bytes",
)  # fmt: skip
"""The settings that stand together in the field `push`, too, in the order in which `lua/merge.lua` reads them."""

OF_THE_BUILD = frozenset({"build", "wire", "answer_tokens", "push"})
"""What the functions read besides settings: it changes with memd, and nobody sets it."""


Mark: TypeAlias = bytes | str | None
"""Tells the scheduler that wrote the inbox's settings from others; None where none has."""

WHATEVER: Final = object()
"""In place of a mark: settings are written whosever stand there."""


class Difference(NamedTuple):
    """Settings of the inbox that are others here. `by_hand`: no scheduler wrote them; somebody edited the hash.

    `seen`: the mark of the settings that these were compared with.
    """

    names: tuple[str, ...] = ()
    by_hand: bool = False
    seen: Mark = None


def installed(client: redis.Redis) -> bool:
    """Whether this server has the settings of the functions. An emptied server lacks them."""
    try:
        return bool(client.hexists(f"{P}:config", "build"))
    except redis.RedisError as error:
        translate(error, client)


def bind_store(client: redis.Redis, store: Store) -> None:
    """Record this store as the inbox's, unless the inbox has one already; a store without an id gets one.

    Raises OtherStore, StoreUnavailable, InboxFull.
    """
    try:
        if not client.hexists(f"{P}:config", "store"):
            client.hsetnx(f"{P}:config", "store", store.make_id())
    except redis.RedisError as error:
        translate(error, client)
    require_store(client, store)


def note_first_said(client: redis.Redis) -> bool:
    """Note that turns are kept; returns whether this is the first start that keeps them. Raises InboxFull."""
    try:
        return bool(client.hsetnx(f"{P}:config", "said", "1"))
    except redis.RedisError as error:
        translate(error, client)


def require_store(client: redis.Redis, store: Store) -> None:
    """Refuse a store that is not the inbox's. An inbox without a recorded store accepts any.

    Raises OtherStore, StoreUnavailable.
    """
    known = store_of(client)
    if known is not None and known != store.read_id():
        raise OtherStore(
            "E_OTHER_STORE: this inbox belongs to another store, so nothing is done with this one: set the store and "
            "redis_url so that they belong together (after a switch to the new store); to give the inbox to this store "
            f"for good, delete the field `store` of {P}:config on the server and start the scheduler"
        )


def store_of(client: redis.Redis) -> str | None:
    """The id of the store that the inbox belongs to; None before its first scheduler. Raises InboxUnavailable."""
    try:
        known = client.hget(f"{P}:config", "store")
    except redis.RedisError as error:
        translate(error, client)
    return None if known is None else text(known)


def give_to_store(client: redis.Redis, store_id: str) -> None:
    """Make the inbox that of another store, from the next claim on. Raises InboxUnavailable, InboxFull."""
    try:
        client.hset(f"{P}:config", "store", store_id)
    except redis.RedisError as error:
        translate(error, client)


def mark_full(client: redis.Redis, headroom: float) -> None:
    """Close the trusted door while more than `headroom` of the server's memory limit is used, open it below."""
    try:
        memory = client.info("memory")
        limit = int(memory.get("maxmemory", 0))
        full = limit > 0 and int(memory["used_memory"]) > headroom * limit
        was = client.hget(f"{P}:config", "full") == b"1"
        if full != was:
            client.fcall(f"memd_full_{FUNCTIONS_VERSION}", 1, P, int(full))
    except redis.RedisError as error:
        translate(error, client)


@cache
def libraries() -> dict[str, str]:
    """The source of each function library, by its name on the server."""
    shared = "".join(map(_part, SHARED))
    drain = f"memd_drain_{FUNCTIONS_VERSION}"
    return {
        "memd_push": f"#!lua name=memd_push\n{shared}{_part('push')}",
        drain: f"#!lua name={drain}\n{shared}{''.join(map(_part, DRAIN))}",
    }


def _part(name: str) -> str:
    return resources.files("memd.inbox").joinpath("lua", f"{name}.lua").read_text(encoding="utf-8")


def install(client: redis.Redis, settings: Settings, seen: Mark | object = WHATEVER) -> bool:
    """Load the function libraries and write their settings, all at once, unless the server has a newer build.

    `seen`: the mark of the settings that these may replace. Returns False, with nothing done, when others stand there
    by now: a scheduler was faster.
    """
    try:
        if 0 < build_of(client.hget(f"{P}:config", "build")) < FIRST_WITH_LINES:
            _line_up(client, settings)
        with client.pipeline() as pipe:
            while True:
                with suppress(redis.WatchError):  # a beat, or another scheduler, came between: look again
                    return _write(pipe, _config(settings), seen)
    except redis.RedisError as error:
        translate(error, client)


def _write(pipe: Pipeline, config: Mapping[str, int | str], seen: Mark | object) -> bool:
    """One try. Raises WatchError, with nothing done, when something of the hash changed meanwhile."""
    pipe.watch(f"{P}:config")  # type: ignore[no-untyped-call]  # redis-py leaves this one untyped
    build, mark, *held = pipe.hmget(f"{P}:config", ["build", "settings", *BUDGETS])
    if build_of(build) > BUILD:
        return True
    if seen is not WHATEVER and mark != seen:
        return False
    pipe.multi()
    for source in libraries().values():
        pipe.function_load(source, replace=True)
    pipe.hset(f"{P}:config", items=["settings", _mark(config), *(part for pair in config.items() for part in pair)])
    if not all(_is(value or b"0", config[name]) for name, value in zip(BUDGETS, held, strict=True)):
        pipe.zunionstore(f"{P}:rationed", {f"{P}:rationed": 0})  # what waits for the old budgets is checked at once
    pipe.execute()
    return True


def build_of(value: Any) -> int:
    """The build in the inbox's settings; 0 for none, and for one that no memd wrote."""
    try:
        return int(value or 0)
    except ValueError:
        return 0


def differing(client: redis.Redis, settings: Settings) -> Difference:
    """Compare the settings of the inbox with these.

    Nothing differs where the inbox is not set up, nor for another build: the newest build's settings hold, as its
    functions do, so an upgrade, host by host, is nobody's rival.
    """
    ours = _config(settings)
    names = [name for name in ours if name not in OF_THE_BUILD]
    try:
        build, mark, *theirs = client.hmget(f"{P}:config", ["build", "settings", *names])
    except redis.RedisError as error:
        translate(error, client)
    if build_of(build) != BUILD:
        return Difference(seen=mark)
    by_hand = _is(mark, _mark(ours))
    pairs = zip(names, theirs, strict=True)
    known = (name for name, value in pairs if not _is(value, ours[name]) and (value is not None or by_hand))
    return Difference(tuple(known), by_hand, mark)


def _is(value: Any, ours: object) -> bool:
    return bool((value if isinstance(value, bytes) else str(value).encode()) == str(ours).encode())


def _mark(config: Mapping[str, int | str]) -> str:
    """The mark of these settings: whoever has the same ones writes the same."""
    return hashlib.sha256(repr(sorted(config.items())).encode()).hexdigest()[:16]


def _line_up(client: redis.Redis, settings: Settings) -> None:
    """Give the pending keys of an older build their places in line; repeating it does no harm."""
    client.hset(f"{P}:config", "push", _config(settings)["push"])  # before the functions that read it
    for source in libraries().values():
        client.function_load(source, replace=True)
    for row in ("due", "rationed", "batched", "busy"):
        cursor = "0"
        while (cursor := text(client.fcall(f"memd_line_up_{FUNCTIONS_VERSION}", 1, P, row, cursor))) != "0":
            pass


def _config(settings: Settings) -> dict[str, int | str]:
    config = _fields(settings)
    return {**config, "push": " ".join(str(config[name]) for name in OF_A_PUSH)}


def _fields(settings: Settings) -> dict[str, int]:
    return {
        "build": BUILD,
        "wire": WIRE_VERSION,
        "enabled": int(settings.enabled),
        "failover": int(fails_over(settings)),
        "quiet_ms": int(settings.scheduler.quiet_s * 1000),
        "max_wait_ms": int(settings.scheduler.max_wait_s * 1000),
        "flush_tokens": settings.scheduler.flush_tokens,
        "tick_ms": settings.scheduler.tick_ms,
        "lease_ms": int(settings.drain.lease_s * 1000),
        "claim_tokens": settings.drain.claim_tokens,
        "answer_tokens": MAX_TOKENS,
        "max_attempts": settings.drain.max_attempts,
        "backoff_ms": int(settings.drain.backoff_s * 1000),
        "backoff_max_ms": int(settings.drain.backoff_max_s * 1000),
        "max_push_bytes": settings.client.max_push_bytes,
        "max_messages": settings.client.max_messages,
        "total_day_tokens": settings.budget.total_tokens_per_day or 0,
        "user_day_tokens": settings.budget.user_tokens_per_day or 0,
        "thread_day_extractions": settings.budget.thread_extractions_per_day or 0,
        "batch_poll_ms": int(settings.extraction.batch_poll_s * 1000),
        "raw_cap": settings.dead.raw_cap,
        "raw_bytes": settings.dead.raw_cap_mb * 1_000_000,
        "raw_ttl_ms": int(settings.dead.raw_ttl_s * 1000),
        "events": settings.events.keep,
        "receipt_ttl_ms": int(settings.inbox.receipt_ttl_s * 1000),
        "known_ttl_ms": max(1, int(settings.inbox.known_ttl_s * 1000)),
    }
