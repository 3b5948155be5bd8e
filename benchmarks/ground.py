"""The ground of the benchmarks: an embedded server in its own folder, and memd's parts as processes, as in memd up."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from benchmarks.timing import wait_until
from memd import config
from memd.config import Settings
from memd.inbox import library
from memd.inbox.connection import connect, inbox_url
from memd.inbox.figures import workers_listening
from memd.inbox.verbs import P
from memd.ops import server

ROOT = Path(__file__).parent.parent
Process = subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Ground:
    """A running server with the inbox set up, and the settings that connect to it."""

    settings: Settings
    client: redis.Redis
    server: Process

    def clear(self) -> None:
        """Empty the server and set the inbox up again."""
        self.client.flushall()
        library.install(self.client, self.settings)

    def ended(self, pushes: int) -> bool:
        """Whether this many pushes have ended as stored, skipped or dead."""
        ended = self.client.hmget(f"{P}:stats", ["stored", "skipped", "dead"])  # all figures would cost the server more
        return sum(int(count or 0) for count in ended) >= pushes


Start = Callable[[Path], tuple[Settings, Process]]
"""Starts a server in a folder; returns its settings and its process."""


def ground(**changes: Any) -> AbstractContextManager[Ground]:
    """A server as `memd up` starts it (append-only file, synced every second). `changes` use `__` for the dot."""

    def start(folder: Path) -> tuple[Settings, Process]:
        settings = make_settings(folder, **changes)
        return settings, server.start(settings)

    return _started(start)


def tcp_ground(host: str, *options: str, **changes: Any) -> AbstractContextManager[Ground]:
    """As `ground`, with a server that listens on an address and has these options."""

    def start(folder: Path) -> tuple[Settings, Process]:
        with socket.socket() as free:
            free.bind((host, 0))
            port = free.getsockname()[1]
        common = ["--port", str(port), "--bind", host, "--dir", str(folder), "--appendonly", "yes", "--save", ""]
        with (folder / "server.log").open("wb") as log:
            process = subprocess.Popen([server.binary(), *common, "--protected-mode", "no", *options], stdout=log)
        wait_until(lambda: _listens(host, port), "the server listens", 10)
        return make_settings(folder, redis_url=f"redis://{host}:{port}/0", **changes), process

    return _started(start)


@contextmanager
def _started(start: Start) -> Iterator[Ground]:
    folder = Path(tempfile.mkdtemp(prefix="memd-bench-"))
    process = None
    try:
        settings, process = start(folder)
        with connect(settings) as client:
            library.install(client, settings)
            yield Ground(settings, client, process)
    finally:
        if process is not None:
            server.stop(process)
        shutil.rmtree(folder, ignore_errors=True)


def _listens(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def plain_client(settings: Settings) -> redis.Redis:
    """redis-py's client, as an app without memd uses it: the peer of what memd sends."""
    client: redis.Redis = redis.Redis.from_url(inbox_url(settings), driver_info=None)
    return client


def make_settings(folder: Path, **changes: Any) -> Settings:
    """memd's defaults with the offline extractor, and these changes; no config file, no environment."""
    flags = {"data_dir": str(folder), "extraction.extractor": "rules", "log.level": "warning"}
    flags |= {name.replace("__", "."): value for name, value in changes.items()}
    return config.load(environ={}, use_file=False, flags=flags).settings


def environment(settings: Settings) -> dict[str, str]:
    """The environment that gives a process these settings and the import path of this repository."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MEMD_", "ANTHROPIC_"))}
    empty = settings.data_dir / "empty.yaml"
    empty.touch()
    return env | config.as_environment(settings) | {"MEMD_CONFIG": str(empty), "PYTHONPATH": str(ROOT)}


@contextmanager
def process(
    words: list[str], env: Mapping[str, str], log: Path, ready: str = "", prefix: tuple[str, ...] = ()
) -> Iterator[Process]:
    """A Python process, ended after the block. The block begins when it has printed a line that starts with `ready`.

    `prefix`: a command that executes the process, for example in a namespace.
    """
    with log.open("ab") as out:
        running = subprocess.Popen(
            [*prefix, sys.executable, *words], env=dict(env), stdin=subprocess.DEVNULL, stdout=out, stderr=out
        )
    try:
        if ready:
            wait_until(lambda: _said(log, ready) or running.poll() is not None, f"{words} is ready", 60)
        yield running
    finally:
        running.terminate()
        try:
            running.wait(12)
        except subprocess.TimeoutExpired:  # its work has no further use
            running.kill()
            running.wait()


def _said(log: Path, ready: str) -> bool:
    return any(line.startswith(ready) for line in log.read_text(errors="replace").splitlines())


@contextmanager
def daemon(place: Ground, workers: int = 1, *, scheduler: bool = True) -> Iterator[list[Process]]:
    """A scheduler and workers as processes: [scheduler, worker, …], once the workers listen."""
    env = environment(place.settings)
    names = ["scheduler"] * scheduler + ["worker"] * workers
    with ExitStack() as stack:
        parts = [
            stack.enter_context(process(["-m", "memd", name], env, place.settings.data_dir / f"{name}-{number}.log"))
            for number, name in enumerate(names)
        ]
        wait_until(lambda: workers_listening(place.client) >= workers, "the workers listen", 60)
        yield parts


@contextmanager
def model(folder: Path, delay_s: float, host: str = "127.0.0.1", limit: int = 0) -> Iterator[tuple[str, Process]]:
    """An HTTP model as a process, with its address. It replies after `delay_s`, to `limit` requests at once."""
    log = folder / f"model-{delay_s}.log"
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with process(
        ["-m", "benchmarks.model", str(delay_s), "--host", host, "--limit", str(limit)], env, log, ready="http"
    ) as running:
        address = next(line for line in log.read_text().splitlines() if line.startswith("http"))
        yield address, running
