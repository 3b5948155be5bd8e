"""The server: its version, how durable it is, its memory, its clock, and who may come in."""

from __future__ import annotations

import ipaddress
import time
from typing import Any

import redis

from memd.errors import MemdError, NotAllowed
from memd.inbox import server_check
from memd.ops.doctor.patient import Patient, Verdict, bad, ok, size, warn

NEAR_FULL = 0.75
"""Share of the memory head-room at which there is still time to do something."""

SKEW_S = 2.0
SAMPLES, SAMPLE_S = 5, 0.02


def reachable(patient: Patient) -> Verdict:
    """It answers, and is one that memd can run on."""
    began = time.monotonic()
    found = patient.ask(server_check.examine)
    took_ms = (time.monotonic() - began) * 1000
    old = next((problem for problem in found.problems if "too old" in problem), "")
    if old:
        return bad(old)
    if "cluster" in (patient.info.get("redis_mode"), patient.info.get("server_mode")):  # Redis, Valkey
        return bad("cluster mode is not supported: use a server of memd's own")
    kind = "embedded" if patient.settings.redis_url is None else "your own"
    return ok(f"{found.version}, {kind}, answered in {took_ms:.0f} ms")


def persistence(patient: Patient) -> Verdict:
    """What it acknowledged is on its disk."""
    info = patient.info
    if info.get("aof_enabled") not in {1, "1"}:
        return _unfit(patient, "appendonly is off: what was accepted is lost when the server stops; set appendonly yes")
    for field, what in (
        ("aof_last_write_status", "the last write to its append-only file failed, so it refuses pushes"),
        ("aof_last_bgrewrite_status", "the last rewrite of its append-only file failed"),
        ("rdb_last_bgsave_status", "its last snapshot failed, after which it may refuse pushes"),
    ):
        if info.get(field, "ok") != "ok":
            return bad(f"{what}: look at the server's log and its disk")
    appendfsync = _setting(patient, "appendfsync")
    if appendfsync == "no":
        return bad("appendfsync is no: a power cut loses what was accepted; set it to everysec or always")
    promise = {"everysec": "a power cut may take the last second", "always": "nothing accepted is lost"}
    return ok(f"append-only file, appendfsync {_promise(appendfsync, promise)}")


def _promise(appendfsync: str | None, promise: dict[str, str]) -> str:
    """The setting with what it means."""
    if appendfsync is None:
        return "unknown (this account may not ask)"
    return f"{appendfsync}: {promise.get(appendfsync, 'unknown')}"


def eviction(patient: Patient) -> Verdict:
    """It does not throw away what was accepted."""
    policy = patient.info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        return _unfit(patient, f"maxmemory-policy is {policy}, which evicts what was accepted; set it to noeviction")
    return ok("noeviction")


def memory(patient: Patient) -> Verdict:
    """There is room for what comes."""
    used, limit = int(patient.info.get("used_memory", 0)), int(patient.info.get("maxmemory", 0))
    system = int(patient.info.get("total_system_memory", 0))
    headroom = patient.settings.inbox.memory_headroom
    if limit and used >= headroom * limit:
        return bad(f"{size(used)} of {size(limit)} used, pushes are refused; more workers, or a higher maxmemory")
    if limit and used >= headroom * limit * NEAR_FULL:
        return warn(f"{size(used)} of {size(limit)} used; pushes are refused from {size(headroom * limit)} on")
    if system and max(used, limit) > NEAR_FULL * system:
        return warn(f"{size(max(used, limit))} of the machine's {size(system)} may be used; lower maxmemory")
    return ok(f"{size(used)} of {size(limit) if limit else size(system) + ' of the machine, no maxmemory'} used")


def clock(patient: Patient) -> Verdict:
    """Its clock goes as ours, and does not jump."""
    offsets = []
    for _ in range(SAMPLES):
        asked, wall = time.monotonic(), time.time()
        seconds, micros = patient.ask(lambda client: client.time())
        half = (time.monotonic() - asked) / 2
        offsets.append((seconds + micros / 1e6 - half - asked, seconds + micros / 1e6 - half - wall))
        time.sleep(SAMPLE_S)
    steady = max(first for first, _ in offsets) - min(first for first, _ in offsets)
    skew = sorted(second for _, second in offsets)[SAMPLES // 2]
    if steady > SKEW_S:
        return warn(f"the server's clock moved by {steady:.1f} s while we looked; due times move with it")
    if abs(skew) > SKEW_S:
        return warn(
            f"the server's clock is {abs(skew):.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's; use NTP"
        )
    return ok(f"{abs(skew) * 1000:.0f} ms from this machine's")


def account(patient: Patient) -> Verdict:
    """Nobody comes in without a password."""
    name = _own_name(patient)
    at: dict[str, Any] = patient.client.connection_pool.connection_kwargs
    if "path" in at:
        return ok(f"{name}, on a socket: who may open it is decided by its folder")
    stranger = _without_password(patient)
    if stranger is None:
        return ok(f"{name}, with a password")
    open_to = "anybody on this machine" if only_local(stranger, str(at.get("host", ""))) else "anybody in the network"
    said = f"the user default has no password, so {open_to} may do anything; see memd acl"
    return warn(said) if "machine" in open_to else bad(said)


def _own_name(patient: Patient) -> str:
    try:
        user = patient.ask(lambda client: client.acl_whoami())
    except NotAllowed:  # an account of the operator's own making
        return "an account"
    return user.decode(errors="replace") if isinstance(user, bytes) else str(user)


def _without_password(patient: Patient) -> dict[str, str] | None:
    """What a client without a password gets at: the network settings as far as it may see them; None when refused."""
    pool = patient.client.connection_pool
    secret = ("username", "password", "credential_provider")
    options = {name: value for name, value in pool.connection_kwargs.items() if name not in secret}
    with redis.Redis(connection_pool=redis.ConnectionPool(pool.connection_class, **options)) as stranger:
        try:
            stranger.ping()
        except redis.RedisError:
            return None
        try:
            found = stranger.config_get("bind", "protected-mode")
        except redis.RedisError:  # let in, but not everywhere
            found = {}
    return {str(name): str(value) for name, value in found.items()}


def only_local(network: dict[str, str], host: str) -> bool:
    """Whether only this machine reaches the server: by its addresses, or by its protected mode."""
    if network.get("protected-mode") == "yes":
        return True
    bound = network.get("bind", host).split() or ["*"]
    return all(_loopback(address.removeprefix("-")) for address in bound)


def _loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def _setting(patient: Patient, name: str) -> str | None:
    """A setting of the server; None when this account may not ask, as the daemon's may not."""
    if patient.settings.redis_url is None:
        return patient.settings.server.appendfsync
    try:
        found = patient.ask(lambda client: client.config_get(name))
    except MemdError:
        return None
    return str(found.get(name, ""))


def _unfit(patient: Patient, said: str) -> Verdict:
    return warn(f"{said} (inbox.allow_unfit_server)") if patient.settings.inbox.allow_unfit_server else bad(said)
