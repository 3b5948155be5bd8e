"""A service of one primary, replicas and sentinels, all played by the embedded server's program."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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


@dataclass
class SentinelService:
    """The running programs by port."""

    folder: Path
    servers: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    sentinels: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """What memd is given."""
        return f"redis+sentinel://{','.join(f'127.0.0.1:{port}' for port in self.sentinels)}/{NAME}"

    def primary(self) -> int:
        """The port of the primary that the sentinels name."""
        for port in self.sentinels:
            with redis.Redis(port=port) as asked:
                found = execute(asked, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
                if found:
                    return int(found[1])
        raise AssertionError("no sentinel names a primary")

    def start(self, port: int, of: int | None = None) -> None:
        """Start a server, as the replica of another one if `of` names its port."""
        folder = self.folder / str(port)
        folder.mkdir(exist_ok=True)
        replica = ("--replicaof", "127.0.0.1", str(of)) if of else ()
        self.servers[port] = self._run(folder, "--port", str(port), *DURABLE, *replica)

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
        with redis.Redis(port=self.primary()) as asked:
            rows = asked.info("replication")
            states = [rows.get(f"slave{number}", {}) for number in range(int(rows.get("connected_slaves", 0)))]
            return sum(row.get("state") == "online" for row in states)

    @staticmethod
    def takes_writes(port: int, replicas: int) -> bool:
        """Whether a server is a primary with so many good replicas."""
        try:
            with redis.Redis(port=port) as asked:
                rows = asked.info("replication")
        except redis.RedisError:
            return False
        return rows.get("role") == "master" and int(rows.get("min_slaves_good_slaves", 0)) >= replicas

    def _run(self, folder: Path, *options: str) -> subprocess.Popen[bytes]:
        with (folder / "log").open("ab") as log:
            fixed = ("--bind", "127.0.0.1", "--dir", str(folder), "--repl-diskless-sync-delay", "0")
            return subprocess.Popen([server.binary(), *options, *fixed], stdout=log, stderr=log)

    def _watch(self, port: int, primary: int, quorum: int) -> subprocess.Popen[bytes]:
        folder = self.folder / str(port)
        folder.mkdir()
        file = folder / "sentinel.conf"
        file.write_text(
            f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor {NAME} 127.0.0.1 {primary} {quorum}\n"
            f"sentinel down-after-milliseconds {NAME} {DOWN_MS}\nsentinel failover-timeout {NAME} {AGAIN_MS}\n"
        )
        with (folder / "log").open("wb") as log:
            return subprocess.Popen([server.binary(), str(file), "--sentinel"], stdout=log, stderr=log)

    def begin(self, replicas: int, sentinels: int) -> None:
        """Start everything and wait until it stands together."""
        primary = free_port()
        self.start(primary)
        wait_for(lambda: _answers(primary), "the primary answers", READY_S)
        for _ in range(replicas):
            self.start(free_port(), primary)
        for _ in range(sentinels):
            port = free_port()
            self.sentinels[port] = self._watch(port, primary, sentinels // 2 + 1)
        wait_for(lambda: all(map(_answers, self.sentinels)), "the sentinels answer", READY_S)
        wait_for(lambda: self.in_sync() == replicas, "all replicas keep up", READY_S)
        wait_for(lambda: all(self._sees(port, replicas, sentinels) for port in self.sentinels),
                 "the sentinels know each other and the replicas", READY_S)  # fmt: skip

    @staticmethod
    def _reaches_all(port: int) -> bool:
        """Whether a sentinel talks to every replica."""
        with redis.Redis(port=port) as asked:
            rows = execute(asked, "SENTINEL", "REPLICAS", NAME)
            return all(not {"s_down", "disconnected"} & set(_fields(row)["flags"].split(",")) for row in rows)

    def _sees(self, port: int, replicas: int, sentinels: int) -> bool:
        with redis.Redis(port=port) as asked:
            found = _fields(execute(asked, "SENTINEL", "MASTER", NAME))
        return (found["num-slaves"], found["num-other-sentinels"]) == (str(replicas), str(sentinels - 1))


def _fields(row: Any) -> dict[str, str]:
    """What a sentinel says of a server; redis-py has made some of it a dictionary."""
    pairs = row if isinstance(row, dict) else {row[place]: row[place + 1] for place in range(0, len(row), 2)}
    return {_plain(name): _plain(value) for name, value in pairs.items()}


def _plain(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _answers(port: int) -> bool:
    try:
        with redis.Redis(port=port) as asked:
            return bool(asked.ping())
    except redis.RedisError:
        return False


@contextmanager
def sentinel_service(folder: Path, replicas: int = 2, sentinels: int = 3) -> Iterator[SentinelService]:
    """A service for one test."""
    service = SentinelService(folder)
    with ExitStack() as stack:

        def end() -> None:
            for process in (*service.sentinels.values(), *service.servers.values()):
                process.kill()
                process.wait()

        stack.callback(end)
        service.begin(replicas, sentinels)
        yield service
