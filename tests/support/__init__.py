"""Shared by all tests: waiting for named conditions, a daemon of real processes, settings for short times."""

from __future__ import annotations

import os
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import redis

from memd import config
from memd.client import Memd
from memd.config import Settings
from memd.inbox import verbs
from memd.ops import server
from support import forkserver

T = TypeVar("T")
MakeSettings = Callable[..., Settings]
Cli = Callable[..., subprocess.CompletedProcess[str]]
Step = Callable[[int], None]
"""The variable that moves a server's clock by so many seconds."""
TESTS = str(Path(__file__).parents[1])

ENDS_S = 100
"""Deadline of a process that ends by itself: far longer than it takes, shorter than pytest's limit of a test."""

STORE = os.environ.get("STORE", "json")
"""The store under test: json, or postgres (`make test-store`)."""

STORE_SETTINGS: dict[str, Any] = {}
"""Its settings, below `store`; empty for the default, and until its server runs."""

SHORT = {
    "scheduler.quiet_s": 0.15,
    "scheduler.max_wait_s": 2,
    "drain.linger_s": 0.2,
    "drain.backoff_s": 0.1,
    "drain.backoff_max_s": 0.5,
    "drain.lease_s": 15,
    "extraction.extractor": "rules",
}


def wait_for(condition: Callable[[], T], name: str, timeout_s: float = 60) -> T:
    """The first truthy result of `condition`; fails with its name when the deadline passes.

    The deadline is for free cores; it grows in proportion to the load of the machine.
    """
    began = time.monotonic()
    tick = threading.Event()
    while True:
        found = condition()
        if found:
            return found
        waited = time.monotonic() - began
        if waited > timeout_s and waited > timeout_s * slowdown():
            raise AssertionError(f"not within {timeout_s:g} s: {name}")
        tick.wait(min(0.05, 0.005 + waited / 10))  # what is looked at costs its server and this process time as well


def next_millisecond(client: redis.Redis) -> None:
    """Wait until the server's clock, which the inbox orders by, shows another millisecond."""

    def millisecond() -> int:
        seconds, micros = client.time()
        return int(seconds) * 1000 + int(micros) // 1000

    before = millisecond()
    wait_for(lambda: millisecond() > before, "the server's next millisecond")


SPIN_S = 0.05
"""Processor time of the loop that measures the load of this machine."""


def slowdown() -> float:
    """The wall time of a busy loop in times its processor time: 1 on a free core, more under load."""
    began, spent = time.monotonic(), time.thread_time()
    while time.thread_time() - spent < SPIN_S:
        pass
    return max(1.0, (time.monotonic() - began) / SPIN_S)


class Slowdown:
    """The mean slowdown over a stretch of time, from one measurement a second: a moment says little about a minute."""

    def __init__(self) -> None:
        self._measured: list[float] = []
        self._next = 0.0

    def sampled(self) -> Literal[True]:
        """Measure if the last measurement is a second ago. Always true, so that a condition can begin with it."""
        if time.monotonic() >= self._next:
            self._measured.append(slowdown())
            self._next = time.monotonic() + 1.0
        return True

    def mean(self) -> float:
        """1 on free cores."""
        return statistics.fmean(self._measured)


class Process(Protocol):
    """A process that may have ended."""

    def poll(self) -> int | None:
        """The exit code; None while it runs."""


def exit_code(process: Process, timeout_s: float) -> int:
    """The exit code of a process, which must end within so many seconds on free cores."""
    wait_for(lambda: process.poll() is not None, "the process has ended", timeout_s)
    code = process.poll()
    assert code is not None
    return code


def make_settings(data_dir: Path, redis_url: str | None, **changes: Any) -> Settings:
    """Settings with short times; `changes` use `__` for the dot."""
    flags = {**SHORT, "data_dir": str(data_dir), "redis_url": redis_url}
    flags |= {f"store.{name}": value for name, value in STORE_SETTINGS.items()}
    flags |= {name.replace("__", "."): value for name, value in changes.items()}
    return config.load(environ={}, file=_no_file(data_dir), flags=flags).settings


def _no_file(data_dir: Path) -> Path:
    empty = data_dir / "empty.yaml"
    empty.touch()
    return empty


def ended(app: Memd) -> dict[str, int]:
    """Wait until all pushes have ended; returns the count of contexts by outcome since the server was emptied."""
    assert not app.flush(wait=True, timeout_s=60).timed_out
    status = app.status()
    counts = {"stored": status.stored, "skipped": status.skipped, "dead": status.dead}
    return {state: count for state, count in counts.items() if count}


def environment(settings: Settings) -> dict[str, str]:
    """The environment that gives a child process these settings."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MEMD_", "ANTHROPIC_", "OPENAI_"))}
    return env | config.as_environment(settings) | {"MEMD_CONFIG": str(_no_file(settings.data_dir))}


@contextmanager
def part(
    name: str,
    settings: Settings,
    extra: Mapping[str, str] | None = None,
    constants: Mapping[str, float] | None = None,
    words: Sequence[str] = (),
) -> Iterator[forkserver.Part]:
    """One part of memd as a process, which is ended after the block; its log is in the data folder.

    `words`: options of its command.

    `extra` is added to its environment; for `constants` see `ForkServer.start`.
    """
    number = len(list(settings.data_dir.glob(f"{name}*.log")))
    log = settings.data_dir / f"{name}{number}.log"
    log.touch()
    env = {**environment(settings), "PYTHONPATH": TESTS, **(extra or {})}  # `store.class` may name one of these stores
    process = forkserver.start([name, *words], env, settings.data_dir, log, constants)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def daemon(settings: Settings, workers: int = 1) -> Iterator[list[forkserver.Part]]:
    """A scheduler and workers, as processes; the list is [scheduler, worker, …]."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield [
            stack.enter_context(part("scheduler", settings)),
            *(stack.enter_context(part("worker", settings)) for _ in range(workers)),
        ]


def execute(client: redis.Redis, *command: Any) -> Any:
    """Send a command unchanged; returns its reply."""
    return client.execute_command(*command)  # type: ignore[no-untyped-call]  # redis-py's gap


def dead_letter(client: redis.Redis) -> dict[bytes, bytes]:
    """The only dead letter."""
    ids: list[bytes] = execute(client, "ZRANGE", f"{verbs.P}:dead", 0, -1)
    assert len(ids) == 1
    letter: dict[bytes, bytes] = client.hgetall(f"{verbs.P}:dead:{ids[0].decode()}")  # type: ignore[assignment]  # bytes here
    return letter


def first_due(client: redis.Redis) -> str:
    """The hash of the key that is due first."""
    keys: list[bytes] = execute(client, "ZRANGE", f"{verbs.P}:due", 0, 0)
    return keys[0].decode()


@contextmanager
def own_server(folder: Path, *options: str, preexec: Callable[[], None] | None = None) -> Iterator[int]:
    """A server for one test on the loopback, with an append-only file; yields its port."""
    port = free_port()
    common = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--appendonly", "yes", "--save", ""]
    with (folder / "own-server.log").open("wb") as log:
        process = subprocess.Popen(
            [server.binary(), *common, *options],
            stdout=log,
            stderr=log,
            preexec_fn=preexec,  # noqa: PLW1509  (a limit for this process)
        )
    try:
        wait_for(lambda: _listens(port), "the test's own server listens", 10)
        yield port
    finally:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port of the loopback without a listener."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def alive(pid: object) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # for `benchmarks`; last, so that memd is the installed one where there is one
_FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def code_blocks(document: str, language: str) -> list[str]:
    """The code blocks of a language in one of the repository's documents."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [code for name, code in _FENCE.findall(text) if name == language]
