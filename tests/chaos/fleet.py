"""The fleet: every process of a run. A process that is killed, or dies by itself, is started again at once.

All but the server are forked from one that has imported them, so that the kills hit parts at work, not their imports.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from support import STORE, environment, forkserver
from support.databases import Database

from chaos.plan import Plan
from memd.inbox.connection import socket_path
from memd.ops import server

STOP_S = 12.0
"""Seconds from SIGTERM to SIGKILL when a run ends; memd's own parts need at most ten."""

ORPHAN_S = 1.0
"""How long the child of a killed worker may live on."""

TESTS = Path(__file__).parent.parent

Popen = subprocess.Popen[bytes]
Process = Popen | forkserver.Part


class Role(StrEnum):
    """The targets of the kills. `child`: the process that a worker forks to drain."""

    SERVER = "server"
    SCHEDULER = "scheduler"
    WORKER = "worker"
    CHILD = "child"
    PRODUCER = "producer"
    POSTGRES = "postgres"


SLOW = frozenset({Role.SERVER, Role.POSTGRES})
"""Roles whose start waits until they respond."""


@dataclass
class Part:
    """A part: its process is started again until it ends with code 0."""

    role: Role
    name: str
    start: Callable[[], Process]
    process: Process | None = None
    done: bool = False
    killed: bool = False
    """Whether the run killed its present process."""

    ready: bool = False
    """Whether its present process has opened a connection; killed earlier, it would never do any work."""

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self.process is not None and self.process.poll() is None


@dataclass
class Tally:
    """The kills, unexpected ends and orphans of a run."""

    kills: Counter[str] = field(default_factory=Counter)
    died_alone: list[str] = field(default_factory=list)
    """Names and exit codes of parts that ended although the run had not killed them."""

    orphans: int = 0


class Fleet:
    """Starts, kills, restarts and stops processes. The main thread starts all of them except the server."""

    def __init__(self, plan: Plan, folder: Path, extra: Mapping[str, str]) -> None:
        """`extra`: environment for all processes of memd (how a seeded bug is switched on)."""
        self.tally = Tally()
        self._folder = folder
        self._extra = {"PYTHONPATH": str(TESTS), **extra}
        plan.write(folder)
        self._helpers: list[Process] = []
        self._forks = forkserver.ForkServer(("chaos.producer", "chaos.watcher", "memd.client"), self._extra)
        self._model_url = self._start_model()
        self._database = Database() if STORE == "postgres" else None
        self.settings = plan.settings(folder, self._model_url)
        database = self._database.url if self._database else ""
        self.plan = replace(plan, socket=str(socket_path(self.settings)), database=database)
        self._parts = [Part(Role.SERVER, "server", lambda: server.start(self.settings, server.die_with(os.getpid())))]
        if self._database is not None:
            self._parts.append(Part(Role.POSTGRES, "postgres", self._database.start, self._database.process))
        self._starter = ThreadPoolExecutor(1, "server-starter")  # the server dies with this thread
        self._starting: dict[Role, Future[Process]] = {}
        self._doomed: list[tuple[float, int]] = []

    # --- beginning and end ---

    def start(self) -> None:
        """Start the server, schedulers and workers, without waiting until they are ready."""
        self._parts[0].process = self._starter.submit(self._parts[0].start).result()
        for role, count in ((Role.SCHEDULER, self.plan.schedulers), (Role.WORKER, self.plan.workers)):
            self._parts += [self._memd(role, number) for number in range(count)]
        self.mend()

    def start_pushing(self, begin: float) -> None:
        """Start the producers and the watcher. `begin`: the moment of the first push, on the monotonic clock."""
        self.plan = replace(self.plan, begin=begin)
        self.plan.write(self._folder)
        self._helpers.append(self._fork("watcher", "chaos.watcher", [str(self._folder)]))
        self._parts += [self._producer(number) for number in range(self.plan.producers)]
        self.mend()

    def stop(self) -> None:
        """Stop everything in memd's order: the parts, then the helpers, then the server."""
        if Role.SERVER in self._starting:
            self._parts[0].process = self._starting[Role.SERVER].result()
        memd = [part.process for part in self._parts if part.process is not None and part.role not in SLOW]
        _stop([process for process in memd if process.poll() is None])
        _stop(self._helpers)
        if isinstance(process := self._parts[0].process, subprocess.Popen) and process.poll() is None:
            server.stop(process)
        self._starter.shutdown()
        if self._database is not None:
            self._database.stop()
        self._forks.close()

    # --- while it runs ---

    def mend(self) -> None:
        """Start dead parts again; look for orphans."""
        for part in self._parts:
            if not part.done and not part.running:
                self._look_at(part)
            elif not part.ready and part.process is not None:
                part.ready = connected(part.process.pid)
        now = time.monotonic()
        for moment, pid in list(self._doomed):
            if not alive(pid):
                self._doomed.remove((moment, pid))
                reap(pid)
            elif now > moment:
                self._doomed.remove((moment, pid))
                self.tally.orphans += 1

    def victims(self, role: Role) -> list[tuple[Part, int]]:
        """The working processes of a role, each with its part."""
        owner = Role.WORKER if role is Role.CHILD else role
        living = [
            part for part in self._parts if part.role is owner and part.running and part.ready and not part.killed
        ]
        found = [(part, part.process.pid) for part in living if part.process is not None]
        return found if role is not Role.CHILD else [(part, child) for part, pid in found for child in children(pid)]

    def kill(self, role: Role, rng: random.Random) -> bool:
        """`kill -9` one process of this role; False when the role has no process now."""
        victims = self.victims(role)
        if not victims:
            return False
        part, pid = rng.choice(victims)
        orphans = children(pid) if role is Role.WORKER else []
        try:
            if role is Role.POSTGRES and self._database is not None:
                self._database.kill()
            else:
                os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:  # a drain that ended just now
            return False
        part.killed = role is not Role.CHILD
        self._doomed += [(time.monotonic() + ORPHAN_S, child) for child in orphans]
        self.tally.kills[role] += 1
        return True

    @property
    def pushed(self) -> bool:
        """Whether all contexts of every producer are acknowledged."""
        return all(part.done for part in self._parts if part.role is Role.PRODUCER)

    @property
    def whole(self) -> bool:
        """Whether every part runs and every orphan has ended."""
        return not self._doomed and all(part.running or part.done for part in self._parts)

    def pids(self, role: Role) -> list[int]:
        """The processes of a role."""
        return [pid for _, pid in self.victims(role)]

    # --- how each is started ---

    def _look_at(self, part: Part) -> None:
        if part.process is not None and part.role not in self._starting:
            code = part.process.wait()
            part.done = part.role is Role.PRODUCER and code == 0
            if not part.killed and not part.done:
                self.tally.died_alone.append(f"{part.name}: {code}")
            if part.done:
                return
        if part.role in SLOW:
            self._restart_slowly(part)
        else:
            part.process, part.killed, part.ready = part.start(), False, False

    def _restart_slowly(self, part: Part) -> None:
        """In a thread of its own: the start waits until the server responds, and the kills continue meanwhile."""
        if part.role not in self._starting:
            self._starting[part.role] = self._starter.submit(part.start)
        elif self._starting[part.role].done():
            part.process, part.killed = self._starting.pop(part.role).result(), False

    def _memd(self, role: Role, number: int) -> Part:
        name = f"{role}-{number}"
        return Part(role, name, lambda: self._fork(name, "memd.cli", [role.value]))

    def _producer(self, number: int) -> Part:
        name = f"producer-{number}"
        return Part(Role.PRODUCER, name, lambda: self._fork(name, "chaos.producer", [str(self._folder), str(number)]))

    def _fork(self, name: str, module: str, words: list[str]) -> forkserver.Part:
        env = {**environment(self.settings), **self._extra}
        return self._forks.start(words, env, self._folder, self._folder / f"{name}.log", module=module)

    def _start_model(self) -> str:
        with (self._folder / "model.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "chaos.model", str(self._folder)],
                env={**os.environ, **self._extra},
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                preexec_fn=server.die_with(os.getpid()),  # noqa: PLW1509  (it only asks the kernel)
            )
        self._helpers.append(process)
        assert process.stdout is not None
        with process.stdout as output:
            address = output.readline().decode().strip()
        assert address, "the model has not started"
        return address


def children(pid: int) -> list[int]:
    """The children of a process."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def connected(pid: int) -> bool:
    """Whether a process has a socket open."""
    try:
        return any(str(file.readlink()).startswith("socket:") for file in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:  # it has ended, or has just closed one of its files
        return False


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def reap(pid: int) -> None:
    """Remove an orphan that has ended, which this process has inherited, from the list of processes."""
    with suppress(ChildProcessError):  # its worker is only just dead: init has it, or the worker had waited for it
        os.waitpid(pid, os.WNOHANG)


def _stop(processes: list[Process]) -> None:
    for process in processes:
        process.terminate()
    until = time.monotonic() + STOP_S
    for process in processes:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def processes_of(folder: Path) -> Iterator[int]:
    """Every process of this machine that works in the folder of a run, or has it in environment or arguments."""
    needle = os.fsencode(folder)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid() and _names(Path(entry.path), needle):
            yield int(entry.name)


def _names(process: Path, needle: bytes) -> bool:
    try:
        place = os.fsencode((process / "cwd").readlink())
        return needle in place or any(needle in (process / name).read_bytes() for name in ("environ", "cmdline"))
    except OSError:  # it has ended, or belongs to another user
        return False
