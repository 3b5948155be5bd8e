"""Checks whether a server can keep memd's promises: its version, its eviction policy, its persistence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import redis

from memd.config import Settings
from memd.errors import ServerUnfit
from memd.inbox.connection import serves_by_sentinels, translate, unavailable

SECTIONS = ("server", "persistence", "memory", "replication")
REDIS_MIN = (7, 0)
VALKEY_MIN = (7, 2)
CLUSTER = "cluster mode is not supported"


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica of the server. `lag_s`: seconds since it last said how far it is."""

    address: str
    state: str
    lag_s: int


@dataclass(frozen=True, slots=True)
class ServerCheck:
    """The server's name and version, how durable it is, its problems, a sentence each, and its replicas."""

    version: str
    durability: str
    problems: tuple[str, ...]
    replicas: tuple[Replica, ...] = ()


def examine(client: redis.Redis) -> ServerCheck:
    """Check a server. Sends only INFO, which the daemon's account has the right to run. Raises InboxUnavailable."""
    try:
        info = {name: value for part in SECTIONS for name, value in client.info(part).items()}
    except redis.RedisError as error:
        translate(error, client)
    if info.get("loading") in {1, "1"}:  # it reports no append-only file while it reads that file
        raise unavailable(client, "is still loading its data")
    name = "Valkey" if "valkey_version" in info else "Redis"
    version = str(info.get("valkey_version") or info.get("redis_version", "0"))
    problems = []
    if _numbers(version) < (VALKEY_MIN if name == "Valkey" else REDIS_MIN):
        problems.append(f"{name} {version} is too old: memd needs Redis 7.0 or Valkey 7.2 at least")
    if "cluster" in (info.get("redis_mode"), info.get("server_mode")):  # Redis, Valkey
        problems.append(f"{CLUSTER}: memd:in lies in another slot than the other keys; give memd a server of its own")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        problems.append(f"maxmemory-policy is {policy}: the server may evict accepted messages; set it to noeviction")
    durable = info.get("aof_enabled") in {1, "1"}
    if not durable:
        problems.append("appendonly is off: accepted messages are lost when the server stops; set appendonly to yes")
    if (
        serves_by_sentinels(client) and "min_slaves_good_slaves" not in info
    ):  # it is there where both settings are above 0
        problems.append(
            "min-replicas-to-write is 0: a primary that was cut off would go on accepting what is lost; set it to 1, "
            "and min-replicas-max-lag to 10"
        )
    durability = "append-only file" if durable else "none"
    return ServerCheck(f"{name} {version}", durability, tuple(problems), tuple(_replicas(info)))


def _replicas(info: Mapping[str, Any]) -> Iterator[Replica]:
    for number in range(int(info.get("connected_slaves", 0))):
        row = info.get(f"slave{number}")
        if isinstance(row, dict):
            yield Replica(f"{row.get('ip')}:{row.get('port')}", str(row.get("state")), int(row.get("lag", -1)))


def require(client: redis.Redis, settings: Settings) -> ServerCheck:
    """Check a server and refuse an unfit one, unless `inbox.allow_unfit_server`. Raises ServerUnfit."""
    found = examine(client)
    never = any("too old" in problem or CLUSTER in problem for problem in found.problems)
    if found.problems and (never or not settings.inbox.allow_unfit_server):
        raise ServerUnfit(f"this server is unfit: {found.problems[0]}")
    return found


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
