"""Accounts: the rights of each kind of client on the server, as lines for its ACL file or `ACL SETUSER`.

A function runs with its caller's rights, so an account also needs the commands inside the functions it calls; a test
compares the lists below with the Lua source.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from memd.context import FUNCTIONS_VERSION
from memd.errors import ConfigError
from memd.inbox.app_events import EVENTS
from memd.inbox.verbs import BELLS, RAW, P

PASSWORD_VARIABLE = "ACL_PASSWORD_"  # noqa: S105  (a name; MEMD_* would be read as a setting)
PASSWORD_MIN = 16
"""Characters. The server keeps a plain SHA-256 of each password, from which a short one is soon guessed."""

DAEMON = (
    "ping info time function|load function|list acl|whoami scan",
    "wait client|setname client|list client|info subscribe unsubscribe",
    "fcall multi exec watch unwatch",
    "blpop blmove lpush rpush lpop llen lindex lrange lrem ltrim",
    "type get set del exists expire pexpire persist rename incrby",
    "hget hmget hgetall hkeys hlen hscan hexists hset hsetnx hdel hincrby hincrbyfloat",
    "sadd srem scard smembers smismember sscan",
    "zadd zrem zcard zcount zscore zmscore zrange zrangebyscore zremrangebyscore zpopmin zscan zunionstore zintercard",
    "xadd xrange xdel",
)
"""Commands of the scheduler, the workers (with RQ: registration, bells, failed jobs, clean-up) and `memd doctor`."""

APP = "ping time multi exec wait info"
APP_KEYS = (
    (f"~{P}", f"fcall|memd_push fcall|memd_receipt_{FUNCTIONS_VERSION} fcall|memd_flush_{FUNCTIONS_VERSION}"),
    (f"~{P}", f"fcall|memd_pending_{FUNCTIONS_VERSION}"),
    (f"%R~{P}:config %R~{P}:taken", "hget hgetall"),
    (f"~{P}:ctx:*", "hget hmget hkeys hlen hscan exists hset hdel"),
    (f"~{P}:ctx:* ~{P}:wrong:*", "rename"),
    (f"~{P}:wrong", "sadd"),
    (f"~{P}:outcome:*", "hget hmget hset hincrby"),
    (f"~{P}:due ~{P}:parked:* ~{P}:rationed ~{P}:batched", "zadd zrem zscore zmscore zpopmin zrange zscan"),
    (f"%R~{P}:spent:* %R~{P}:held", "hmget"),
    (f"%R~{P}:extracted:*", "lindex"),
    (f"~{P}:user:*", "sadd smembers sscan smismember"),
    (f"~{P}:wake", "llen lpush"),
    (f"~{P}:order", "incrby"),
    (f"~{P}:stats", "hincrby"),
    (f"%R~{P}:known:* %R~{P}:died:*", "exists smismember"),
    (f"%R~{P}:forgotten:*", "hget hexists"),
    (f"%R~{P}:busy", "hexists"),
    (f"%R~{P}:claimed", "zscan"),
    (f"%R~{P}:claim:*", "hget hmget hlen hscan"),
    (f"%R~{RAW} %R~{RAW}:*", "llen"),
)
"""Keys and commands of `Memd.push`, `receipt`, `flush`, `pending` of one user and reading with `include_pending`,
functions included."""

CONSUMER = "ping xreadgroup xack xautoclaim xgroup|create xlen xrange"
"""Commands of a consumer of events (docs/events.md)."""

READER = "ping info time scan acl|whoami function|list"
READER_KEYS = (
    (f"%R~{P}:* %R~{RAW} %R~{RAW}:* %R~{EVENTS}", "type"),
    (
        f"%R~{P}:due %R~{P}:rationed %R~{P}:batched %R~{P}:batches %R~{P}:claimed %R~{P}:dead %R~{P}:parked:*",
        "zcard zcount",
    ),
    (f"%R~{P}:due %R~{P}:rationed", "zrange"),
    (f"%R~{P}:ctx:*", "hget"),
    (f"%R~{P}:learnt:* %R~{P}:facts:*", "get"),
    (f"%R~{P}:busy", "hkeys"),
    (f"%R~{P}:stats %R~{P}:config %R~{P}:usage:* %R~{P}:spent:* %R~{P}:waiting_parts", "hget hgetall"),
    (f"%R~{P}:breakers %R~{P}:unread %R~{P}:wrong %R~rq:workers:{BELLS}", "smembers"),
    (f"%R~{P}:breaker:* %R~rq:worker:*", "hmget"),
    (f"%R~{RAW} %R~{RAW}:*", "llen"),
    (f"%R~{P}:hours", "lrange"),
)
"""Keys and commands of `memd status` and `memd doctor`."""


@dataclass(frozen=True, slots=True)
class Account:
    """One account of the server: its name, its purpose, and the ACL rules of its rights."""

    name: str
    purpose: str
    rules: tuple[str, ...]

    def line(self, password: str | None = None) -> str:
        """The account as a line of an ACL file. Without a password it has `resetpass`, so nobody can log in."""
        secret = (f"#{hashlib.sha256(password.encode()).hexdigest()}",) if password else ()
        return " ".join(("user", self.name, "reset", "on", "resetpass", *secret, "resetchannels", "-@all", *self.rules))

    @property
    def variable(self) -> str:
        """The environment variable of its password."""
        return PASSWORD_VARIABLE + re.sub(r"[^A-Z0-9]", "_", self.name.upper())


def accounts(apps: Iterable[str]) -> list[Account]:
    """The accounts of a deployment: the common ones, and a producer for the raw list of each of `apps`."""
    producers = [_producer("memd-in", RAW)]
    producers += [_producer(f"memd-in-{app}", f"{RAW}:{app}") for app in apps]
    return [
        *producers,
        Account(
            "memd-app", "a trusted app: push, receipt, flush, pending of a user", (*_allow(APP), *_selectors(APP_KEYS))
        ),
        Account(
            "memd-daemon",
            "scheduler, workers, and the operator's commands",
            (f"~{RAW}", f"~{RAW}:*", f"~{EVENTS}", f"~{P}*", "~rq:*", "&rq:pubsub:*", *_allow(*DAEMON)),
        ),
        Account("memd-events", f"an app that reads the stream {EVENTS}", (f"~{EVENTS}", *_allow(CONSUMER))),
        Account("memd-reader", "status and doctor", (*_allow(READER), *_selectors(READER_KEYS))),
    ]


def _producer(name: str, raw_list: str) -> Account:
    return Account(name, f"a producer: RPUSH {raw_list}", (f"%W~{raw_list}", *_allow("rpush llen ping wait")))


def _allow(*rows: str) -> tuple[str, ...]:
    return tuple(f"+{command}" for row in rows for command in row.split())


def _selectors(rows: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Rights on some keys only: one selector for each row."""
    return tuple(f"({keys} {' '.join(_allow(commands))})" for keys, commands in rows)


def passwords(chosen: Iterable[Account], environ: Mapping[str, str], *, generate: bool) -> dict[str, str]:
    """The password of each account that has one: from its environment variable, or a new one if `generate`.

    Raises ConfigError for a password that is too short, or that two accounts share.
    """
    by_name: dict[str, str] = {}
    for account in chosen:
        password = environ.get(account.variable, "") or (secrets.token_urlsafe(32) if generate else "")
        if not password:
            continue
        if len(password) < PASSWORD_MIN:
            raise ConfigError(f"{account.variable} is too short: a password has at least {PASSWORD_MIN} characters")
        if password in by_name.values():
            raise ConfigError(f"{account.variable} is the password of another account too: give each account its own")
        by_name[account.name] = password
    return by_name
