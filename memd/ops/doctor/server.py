"""The server: its version, durability, memory, clock, and who can log in."""

from __future__ import annotations

import ipaddress
import time
from typing import Any

import redis

from memd.errors import MemdError, NotAllowed
from memd.inbox import server_check
from memd.inbox.connection import primary, socket_path
from memd.ops import locks
from memd.ops import server as embedded_server
from memd.ops.doctor.checkup import Checkup, Verdict, bad, ok, size, warn
from memd.printable import counted

NEAR_FULL = 0.75
"""Share of the allowed memory from which the operator is warned."""

SKEW_S = 2.0
SAMPLES, SAMPLE_S = 5, 0.02


def reachable(checkup: Checkup) -> Verdict:
    """The server responds, and memd can run on it."""
    if checkup.settings.redis_url is None and (problem := _embedded(checkup)):
        return bad(problem)
    began = time.monotonic()
    server = checkup.ask(server_check.examine)
    took_ms = (time.monotonic() - began) * 1000
    never = next((found for found in server.problems if "too old" in found or server_check.CLUSTER in found), "")
    if never:
        return bad(never)
    kind = "embedded" if checkup.settings.redis_url is None else "your own"
    return ok(f"{server.version}, {kind}, responded in {took_ms:.0f} ms")


def _embedded(checkup: Checkup) -> str:
    """The fault of the embedded server: its socket is gone, or the server on it is not the folder's own. "" if fine."""
    file = embedded_server.lock_file(checkup.settings)
    running = locks.holder(file) if locks.is_held(file) else None
    if running is not None and not socket_path(checkup.settings).exists():
        return f"the server, pid {running}, runs but its socket is gone: memd up mends that, memd server has to restart"
    answering = int(checkup.info["process_id"])
    if answering == running:
        return ""
    if running is None:
        return f"the server on the socket, pid {answering}, does not hold its folder's lock: stop it, start memd up"
    return f"a second server, pid {answering}, has the socket, besides the folder's own, pid {running}: stop both"


def persistence(checkup: Checkup) -> Verdict:
    """The server writes acknowledged pushes to disk."""
    info = checkup.info
    if info.get("aof_enabled") not in {1, "1"}:
        return _unfit(checkup, "appendonly is off: accepted pushes are lost when the server stops; set appendonly yes")
    for field, what in (
        ("aof_last_write_status", "the last write to its append-only file failed, so it refuses pushes"),
        ("aof_last_bgrewrite_status", "the last rewrite of its append-only file failed"),
        ("rdb_last_bgsave_status", "its last snapshot failed, after which it may refuse pushes"),
    ):
        if info.get(field, "ok") != "ok":
            return bad(f"{what}: check the server's log and its disk")
    appendfsync = _setting(checkup, "appendfsync")
    if appendfsync == "no":
        return bad("appendfsync is no: a power cut loses accepted pushes; set it to everysec or always")
    promise = {"everysec": "a power cut may take the last second", "always": "nothing accepted is lost"}
    return ok(f"append-only file, appendfsync {_promise(appendfsync, promise)}")


def _promise(appendfsync: str | None, promise: dict[str, str]) -> str:
    """The setting and its meaning."""
    if appendfsync is None:
        return "unknown (this account lacks the right)"
    return f"{appendfsync}: {promise.get(appendfsync, 'unknown')}"


def replicas(checkup: Checkup) -> Verdict:
    """The replicas that pushes wait for keep up, and those that sentinels need."""
    found = [replica for replica in checkup.ask(server_check.examine).replicas if replica.state == "online"]
    chosen, needed = primary(checkup.client), checkup.settings.inbox.min_replicas
    if not found and chosen is None and not needed:
        return ok("none: while this server is away, nothing is taken in (docs/failover.md)")
    lag = f", the last word of the slowest {max(replica.lag_s for replica in found)} s ago" if found else ""
    said = f"{f'the primary is {chosen}, ' if chosen else ''}{counted(len(found), 'replica')}{lag}"
    if len(found) < needed:
        return bad(f"{said}: pushes wait for {needed} (inbox.min_replicas) and are unconfirmed; start the others")
    return ok(said) if found else bad(f"{said}: nobody takes its place, and it may refuse pushes; start the others")


def eviction(checkup: Checkup) -> Verdict:
    """The server never evicts keys."""
    policy = checkup.info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return _unfit(checkup, f"maxmemory-policy is {policy}, which evicts accepted pushes; set it to noeviction")
    return ok("noeviction")


def memory(checkup: Checkup) -> Verdict:
    """The server has memory for new pushes."""
    used, limit = int(checkup.info.get("used_memory", 0)), int(checkup.info.get("maxmemory", 0))
    system = int(checkup.info.get("total_system_memory", 0))
    headroom = checkup.settings.inbox.memory_headroom
    if limit and used >= headroom * limit:
        return bad(f"{size(used)} of {size(limit)} used, pushes are refused; add workers, or raise maxmemory")
    if limit and used >= headroom * limit * NEAR_FULL:
        return warn(f"{size(used)} of {size(limit)} used; pushes will be refused from {size(headroom * limit)} on")
    if system and max(used, limit) > NEAR_FULL * system:
        return warn(f"{size(max(used, limit))} of the machine's {size(system)} may be used; lower maxmemory")
    return ok(f"{size(used)} of {size(limit) if limit else size(system) + ' of the machine, no maxmemory'} used")


def clock(checkup: Checkup) -> Verdict:
    """The server's clock agrees with this machine's and does not jump."""
    offsets = []
    for _ in range(SAMPLES):
        asked, wall = time.monotonic(), time.time()
        seconds, micros = checkup.ask(lambda client: client.time())
        half = (time.monotonic() - asked) / 2
        offsets.append((seconds + micros / 1e6 - half - asked, seconds + micros / 1e6 - half - wall))
        time.sleep(SAMPLE_S)
    steady = max(first for first, _ in offsets) - min(first for first, _ in offsets)
    skew = sorted(second for _, second in offsets)[SAMPLES // 2]
    if steady > SKEW_S:
        return warn(f"the server's clock moved by {steady:.1f} s during the check; due times move with it")
    if abs(skew) > SKEW_S:
        return warn(
            f"the server's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's; use NTP"
        )
    return ok(f"{abs(skew) * 1000:.0f} ms from this machine's")


def account(checkup: Checkup) -> Verdict:
    """Nobody can log in without a password."""
    name = _own_name(checkup)
    at: dict[str, Any] = checkup.client.connection_pool.connection_kwargs
    if "path" in at:
        return ok(f"{name}, on a socket: its folder decides who can open it")
    stranger = _without_password(checkup)
    if stranger is None:
        return ok(f"{name}, with a password")
    open_to = "anybody on this machine" if only_local(stranger, str(at.get("host", ""))) else "anybody in the network"
    sentence = f"the user default has no password, so {open_to} can do anything; see memd acl"
    return warn(sentence) if "machine" in open_to else bad(sentence)


def _own_name(checkup: Checkup) -> str:
    try:
        user = checkup.ask(lambda client: client.acl_whoami())
    except NotAllowed:  # an account that the operator defined
        return "an account"
    return user.decode(errors="replace") if isinstance(user, bytes) else str(user)


def _without_password(checkup: Checkup) -> dict[str, str] | None:
    """The network settings that a client without a password can read; None when the server refuses such a client."""
    pool = checkup.client.connection_pool
    secret = ("username", "password", "credential_provider")
    options = {name: value for name, value in pool.connection_kwargs.items() if name not in secret}
    with redis.Redis(connection_pool=redis.ConnectionPool(pool.connection_class, **options)) as stranger:
        try:
            stranger.ping()
        except redis.RedisError:
            return None
        try:
            network = stranger.config_get("bind", "protected-mode")
        except redis.RedisError:  # logged in, but without this right
            network = {}
    return {str(name): str(value) for name, value in network.items()}


def only_local(network: dict[str, str], host: str) -> bool:
    """Whether only this machine can reach the server, because of its addresses or its protected mode."""
    if network.get("protected-mode") == "yes":
        return True
    bound = network.get("bind", host).split() or ["*"]
    return all(_loopback(address.removeprefix("-")) for address in bound)


def _loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _setting(checkup: Checkup, name: str) -> str | None:
    """A setting of the server; None when the account lacks the right to read it, as the daemon's account does."""
    if checkup.settings.redis_url is None:
        return checkup.settings.server.appendfsync
    try:
        answer = checkup.ask(lambda client: client.config_get(name))
    except MemdError:
        return None
    return str(answer.get(name, ""))


def _unfit(checkup: Checkup, sentence: str) -> Verdict:
    return (
        warn(f"{sentence} (inbox.allow_unfit_server)") if checkup.settings.inbox.allow_unfit_server else bad(sentence)
    )
