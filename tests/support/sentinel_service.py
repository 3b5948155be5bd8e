"""A service of one primary, replicas and sentinels, all played by the embedded server's program."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote

import redis

from memd.ops import server
from support import execute, free_port, wait_for

NAME = "inbox"
DOWN_MS = 500
"""A primary that is silent for so long is taken for dead."""

AGAIN_MS = 2_000
"""Sentinels begin a failover no sooner than twice this time after the one before."""

DURABLE = ("--appendonly", "yes", "--save", "", "--min-replicas-to-write", "1", "--min-replicas-max-lag", "10")
READY_S = 30


@dataclass(frozen=True)
class Guard:
    """Encrypted connections alone, and accounts for all: for the servers an ACL file, for the sentinels one password.

    The embedded server's program has no TLS. Debian's `redis-tools` carries Redis itself, under another name.
    """

    folder: Path
    accounts: str
    admin: str = "password-of-the-operator"
    watcher: str = "password-of-the-sentinels"

    REDIS = "/usr/bin/redis-check-rdb"

    def __post_init__(self) -> None:
        """Make a certificate and the file of the accounts."""
        words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        words += ["-keyout", str(self.key), "-out", str(self.certificate), "-days", "2", "-subj", "/CN=memd"]
        subprocess.run([*words, "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        (self.folder / "users.acl").write_text(f"user default on >{self.admin} ~* &* +@all\n{self.accounts}")

    @classmethod
    def lacks(cls) -> str:
        """What is missing for it here; empty when nothing is."""
        if not Path(cls.REDIS).exists():
            return "no Redis with TLS (apt-get install redis-tools)"
        return "" if shutil.which("openssl") else "no openssl for a certificate"

    @property
    def key(self) -> Path:
        return self.folder / "key.pem"

    @property
    def certificate(self) -> Path:
        return self.folder / "certificate.pem"

    def tls(self, port: int) -> dict[str, str]:
        """The settings of an encrypted port."""
        return {
            "port": "0", "tls-port": str(port), "tls-cert-file": str(self.certificate), "tls-key-file": str(self.key),
            "tls-ca-cert-file": str(self.certificate), "tls-auth-clients": "no", "tls-replication": "yes",
        }  # fmt: skip

    def query(self) -> str:
        """What a URL says behind the question mark."""
        return f"?ssl_ca_certs={quote(str(self.certificate), safe='')}&sentinel_password={self.watcher}"


@dataclass
class SentinelService:
    """The running programs by port."""

    folder: Path
    guard: Guard | None = None
    shifted: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of replicas that are there from the beginning: they may have another clock."""

    servers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    sentinels: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """What memd is given."""
        return self.url_of("")

    def url_of(self, account: str) -> str:
        """What memd is given with an account of the servers, and its password (`name:password`)."""
        hosts = f"{f'{account}@' if account else ''}{','.join(f'127.0.0.1:{port}' for port in self.sentinels)}"
        return f"redis{'s' if self.guard else ''}+sentinel://{hosts}/{NAME}{self.guard.query() if self.guard else ''}"

    def client(self, port: int, account: str = "", password: str = "") -> redis.Redis:
        """A client of a server or a sentinel, the operator's own if no account is named."""
        if self.guard is None:
            return redis.Redis(port=port)
        secret = password or (self.guard.watcher if port in self.sentinels else self.guard.admin)
        name = account or None
        return redis.Redis(
            host="127.0.0.1",
            port=port,
            username=name,
            password=secret,
            ssl=True,
            ssl_ca_certs=str(self.guard.certificate),
        )

    def primary(self) -> int:
        """The port of the primary that the sentinels name."""
        for port in self.sentinels:
            with self.client(port) as asked:
                found = execute(asked, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
                if found:
                    return int(found[1])
        raise AssertionError("no sentinel names a primary")

    def start(self, port: int, of: int | None = None) -> None:
        """Start a server, as the replica of another one if `of` names its port."""
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        replica = ("--replicaof", "127.0.0.1", str(of)) if of else ()
        settings = {"port": str(port)}
        if self.guard is not None:
            own = {"aclfile": str(self.guard.folder / "users.acl"), "masterauth": self.guard.admin}
            settings = self.guard.tls(port) | own
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self.servers[port] = self._run(folder, *options, *DURABLE, *replica, env=self.shifted if of else {})

    def kill(self, port: int) -> None:
        """Kill a server (kill -9)."""
        self.servers[port].kill()
        self.servers[port].wait()

    def fail_over(self) -> int:
        """Kill the primary, wait until another one is named and takes writes; returns the port of the killed one."""
        before = self.primary()
        self.kill(before)
        wait_for(lambda: self.primary() != before, "the sentinels name another primary", READY_S)
        wait_for(lambda: self.takes_writes(self.primary(), 1), "the new primary has a replica", READY_S)
        return before

    def bring_back(self, port: int) -> None:
        """Start a killed server again, and wait until it is a replica that keeps up, as all others.

        The sentinels talk to all of them by then: one that they do not reach stays without a primary for 15 s after the
        next failover.
        """
        self.start(port, self.primary())
        wait_for(lambda: self.in_sync() == len(self.servers) - 1, "all replicas keep up", READY_S)
        wait_for(lambda: all(map(self._reaches_all, self.sentinels)), "the sentinels reach all replicas", READY_S)

    def in_sync(self) -> int:
        """How many replicas the primary has that keep up."""
        with self.client(self.primary()) as asked:
            rows = asked.info("replication")
            states = [rows.get(f"slave{number}", {}) for number in range(int(rows.get("connected_slaves", 0)))]
            return sum(row.get("state") == "online" for row in states)

    def takes_writes(self, port: int, replicas: int) -> bool:
        """Whether a server is a primary with so many good replicas."""
        try:
            with self.client(port) as asked:
                rows = asked.info("replication")
        except redis.RedisError:
            return False
        return rows.get("role") == "master" and int(rows.get("min_slaves_good_slaves", 0)) >= replicas

    def _run(self, folder: Path, *options: str, env: Mapping[str, str]) -> subprocess.Popen[bytes]:
        with (folder / "log").open("ab") as log:
            fixed = ("--bind", "127.0.0.1", "--dir", str(folder), "--repl-diskless-sync-delay", "0")
            words = ["redis-server", *options, *fixed]
            return subprocess.Popen(words, executable=self._program, env={**os.environ, **env}, stdout=log, stderr=log)

    @property
    def _program(self) -> str:
        return Guard.REDIS if self.guard else str(server.binary())

    def _watch(self, port: int, primary: int, quorum: int) -> subprocess.Popen[bytes]:
        folder = self.folder / str(port)
        folder.mkdir()
        file = folder / "sentinel.conf"
        settings = {"port": str(port)} if self.guard is None else self.guard.tls(port)
        lines = [*(f"{name} {value}" for name, value in settings.items()), "bind 127.0.0.1", f"dir {folder}"]
        lines += [f"sentinel monitor {NAME} 127.0.0.1 {primary} {quorum}"]
        lines += [f"sentinel down-after-milliseconds {NAME} {DOWN_MS}", f"sentinel failover-timeout {NAME} {AGAIN_MS}"]
        if self.guard is not None:
            lines += [f"sentinel auth-pass {NAME} {self.guard.admin}", f"requirepass {self.guard.watcher}"]
        file.write_text("\n".join(lines) + "\n")
        with (folder / "log").open("wb") as log:
            words = ["redis-sentinel", str(file), "--sentinel"]
            return subprocess.Popen(words, executable=self._program, stdout=log, stderr=log)

    def begin(self, replicas: int, sentinels: int) -> None:
        """Start everything and wait until it stands together."""
        primary = free_port()
        self.start(primary)
        wait_for(lambda: self._answers(primary), "the primary answers", READY_S)
        for _ in range(replicas):
            self.start(free_port(), primary)
        for _ in range(sentinels):
            port = free_port()
            self.sentinels[port] = self._watch(port, primary, sentinels // 2 + 1)
        wait_for(lambda: all(map(self._answers, self.sentinels)), "the sentinels answer", READY_S)
        wait_for(lambda: self.in_sync() == replicas, "all replicas keep up", READY_S)
        wait_for(lambda: all(self._sees(port, replicas, sentinels) for port in self.sentinels),
                 "the sentinels know each other and the replicas", READY_S)  # fmt: skip

    def _reaches_all(self, port: int) -> bool:
        """Whether a sentinel talks to every replica."""
        with self.client(port) as asked:
            rows = execute(asked, "SENTINEL", "REPLICAS", NAME)
            return all(not {"s_down", "disconnected"} & set(_fields(row)["flags"].split(",")) for row in rows)

    def _sees(self, port: int, replicas: int, sentinels: int) -> bool:
        with self.client(port) as asked:
            found = _fields(execute(asked, "SENTINEL", "MASTER", NAME))
        return (found["num-slaves"], found["num-other-sentinels"]) == (str(replicas), str(sentinels - 1))

    def _answers(self, port: int) -> bool:
        try:
            with self.client(port) as asked:
                return bool(asked.ping())
        except redis.RedisError:
            return False


def _fields(row: Any) -> dict[str, str]:
    """What a sentinel says of a server; redis-py has made some of it a dictionary."""
    pairs = row if isinstance(row, dict) else {row[place]: row[place + 1] for place in range(0, len(row), 2)}
    return {_plain(name): _plain(value) for name, value in pairs.items()}


def _plain(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


@contextmanager
def sentinel_service(
    folder: Path,
    replicas: int = 2,
    sentinels: int = 3,
    guard: Guard | None = None,
    shifted: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[SentinelService]:
    """A service for one test."""
    service = SentinelService(folder, guard, shifted)
    with ExitStack() as stack:

        def end() -> None:
            for process in (*service.sentinels.values(), *service.servers.values()):
                process.kill()
                process.wait()

        stack.callback(end)
        service.begin(replicas, sentinels)
        yield service
