"""A fleet: servers and a scheduler on one machine; a worker and `memd serve` on each host; no folder is shared."""

from __future__ import annotations

import json
import socket
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

from benchmarks.database import CLASS, Database, database
from benchmarks.drain import asking, push_all
from benchmarks.ground import Ground, Process, environment, model, process, tcp_ground
from benchmarks.hosts import Host, Hosts
from benchmarks.load import conversation
from benchmarks.timing import server_cpu, tree_cpu, wait_until
from memd.client import Memd
from memd.context import Bucket
from memd.http import keyring
from memd.inbox.figures import read_figures, workers_listening
from memd.memory.store.json_store import open_store

START_S = 120
ENDS_S = 300
MESSAGES = 2
"""Of each push of the load."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """Seconds of CPU so far, by part. `readers`: `memd serve`."""

    workers: float
    scheduler: float
    server: float
    postgres: float
    readers: float

    def since(self, before: Cpu, times: int) -> Cpu:
        """The milliseconds of each of this many since another moment."""
        each = 1e3 / times
        return Cpu(
            (self.workers - before.workers) * each,
            (self.scheduler - before.scheduler) * each,
            (self.server - before.server) * each,
            (self.postgres - before.postgres) * each,
            (self.readers - before.readers) * each,
        )


@dataclass(frozen=True, slots=True)
class Kept:
    """What became of pushes that were accepted: those that no memory has, and those that one has taken in twice."""

    lost: int
    twice: int


class Fleet:
    """The running parts. Workers are added; each asks the model that all share."""

    def __init__(self, place: Ground, there: Hosts, base: Database, scheduler: Process, token: str) -> None:
        self.place, self.hosts, self.database = place, there.each, base
        self._scheduler, self._token = scheduler, token
        self._stack = ExitStack()
        self._workers: list[Process] = []
        self._readers: list[Process] = []
        self._pushed = 0

    @property
    def at_work(self) -> Sequence[Host]:
        """The hosts that have a worker and `memd serve`."""
        return self.hosts[: len(self._workers)]

    def employ(self, count: int) -> None:
        """Have this many hosts at work: start a worker and `memd serve` on those that lack them."""
        for number in range(len(self._workers), count):
            host = self.hosts[number]
            self._workers.append(self._start(host, f"worker{number}", "worker"))
            self._readers.append(self._start(host, f"http{number}", "serve", "--host", host.address))
        wait_until(lambda: workers_listening(self.place.client) >= count, "the workers listen", START_S, 0.05)
        wait_until(lambda: all(map(self.is_ready, self.at_work)), "memd serve is ready", START_S, 0.1)

    def _start(self, host: Host, name: str, *words: str) -> Process:
        env = environment(self.place.settings) | {
            "MEMD_DATA_DIR": host.folder,
            "MEMD_CONFIG": f"{host.folder}/empty.yaml",
            "MEMD_HTTP__TOKENS": f"{host.folder}/tokens.json",
            "HOME": host.folder,
            "TMPDIR": host.folder,
        }
        log = self.place.settings.data_dir / f"{name}.log"
        return self._stack.enter_context(process(["-P", "-m", "memd", *words], env, log, prefix=host.prefix))

    def push(self, count: int, users: int | None = None) -> range:
        """Push contexts, each of a new user, or of these users in turn; returns their numbers."""
        numbers = range(self._pushed, self._pushed + count)
        push_all(self.place, count, self._pushed, users=users)
        self._pushed += count
        return numbers

    def flush(self) -> None:
        """Make all of them due."""
        with Memd(self.place.settings) as memd:
            memd.flush()

    def push_at(self, host: Host, user: str, text: str) -> None:
        """Push a message of a user at a host. Raises OSError."""
        said = {"role": "user", "content": text, "id": "1"}
        self.ask(host, "/v1/push", {"thread_id": "t", "user_id": user, "messages": [said]})
        self._pushed += 1

    def finish(self) -> None:
        """Wait until every push has ended."""
        wait_until(lambda: self.place.ended(self._pushed), "all contexts have ended", ENDS_S, 0.02)

    def stored(self) -> int:
        """The pushes stored so far."""
        return read_figures(self.place.client, ()).stats.get("stored", 0)

    def kept(self, numbers: range) -> Kept:
        """Compare the memories with these pushes. Each is of a user of its own, so exactly one commit is right."""
        store = open_store(self.place.settings)
        buckets = [Bucket(conversation(number)["user_id"]) for number in numbers]
        loaded = [store.peek(bucket) for bucket in buckets]
        taken = [store.read_ledger(bucket, one.document) for bucket, one in zip(buckets, loaded, strict=True)]
        store.close()
        lost = sum(sum(map(len, ledger.values())) != MESSAGES for ledger in taken)
        twice = sum(one.revision > 1 or len(one.document["facts"]) > 1 for one in loaded)
        return Kept(lost, twice)

    def cpu(self) -> Cpu:
        """Seconds of CPU of each part so far."""
        return Cpu(
            sum(tree_cpu(worker.pid) for worker in self._workers),
            tree_cpu(self._scheduler.pid),
            server_cpu(self.place.client),
            self.database.cpu_s(),
            sum(tree_cpu(reader.pid) for reader in self._readers),
        )

    def memory(self) -> int:
        """Bytes that the inbox's server uses, without those of connections and of what is on its way to the disk."""
        found = self.place.client.info("memory")
        return int(found["used_memory"] - found["mem_clients_normal"] - found["mem_aof_buffer"])

    def inject(self, host: Host, users: Sequence[str]) -> None:
        """Read these users' blocks, one after the other over one connection."""
        line = HTTPConnection(host.address, self._port, timeout=30)
        for user in users:
            line.request("GET", f"/v1/inject?user_id={user}", headers={"Authorization": f"Bearer {self._token}"})
            answer = line.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
        line.close()

    def ask(self, host: Host, path: str, body: object = None) -> dict[str, Any]:
        """A request to `memd serve` on a host. Raises OSError."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"http://{host.address}:{self._port}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  (our own server)
            found: dict[str, Any] = json.load(answer)
        return found

    @property
    def _port(self) -> int:
        return self.place.settings.http.port

    def is_ready(self, host: Host) -> bool:
        """Whether a host serves: it reaches inbox and store."""
        try:
            return bool(self.ask(host, "/ready")["status"] == "ok")
        except OSError:
            return False

    def dismiss(self) -> None:
        """End all workers and readers."""
        self._stack.close()


@contextmanager
def fleet(there: Hosts, concurrency: int, model_s: float, **changes: Any) -> Iterator[Fleet]:
    """A fleet on these hosts, none at work yet. Raises Missing."""
    with ExitStack() as stack:
        base = stack.enter_context(database(there.address, there.network))
        given = {
            "store__class": CLASS,
            "store__url": base.url,
            "scheduler__quiet_s": 300,
            "http__port": _free_port(),
            **changes,
        }
        idle = stack.enter_context(tcp_ground(there.address, **given))
        folder = idle.settings.data_dir
        address, _ = stack.enter_context(model(folder, model_s, there.address))
        place = Ground(asking(idle, address, concurrency), idle.client, idle.server)
        words = ["-m", "memd", "scheduler"]
        scheduler = stack.enter_context(process(words, environment(place.settings), folder / "scheduler.log"))
        token, secret = keyring.new("bench", keyring.Users(every=True), ("read", "write", "person"))
        keyring.add(folder / "tokens.json", token)
        given_out = (folder / "tokens.json").read_bytes()
        for host in there.each:
            host.run("sh", "-c", 'umask 077; cat >"$1"', "sh", f"{host.folder}/tokens.json", given=given_out)
        found = Fleet(place, there, base, scheduler, secret)
        stack.callback(found.dismiss)
        yield found


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    return port
