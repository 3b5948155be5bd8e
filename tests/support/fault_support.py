"""Shared by the fault tests: contexts with a computable outcome, stopping and killing, logs, separate servers."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from memd.client import Memd
from memd.config import Settings
from memd.errors import InboxFull, InboxUnavailable, NotReady
from memd.ops import server
from support import wait_for


def tell(app: Memd, user: str, number: int, *, now: bool = True) -> str:
    """Push a context with one statement that the offline extractor finds; returns its receipt."""
    turns = [{"role": "user", "content": f"I like tea number {number}.", "id": f"u{number}"}]
    return app.push(turns, thread_id=f"thread-{number}", user_id=user, now=now).id or ""


def tell_again(app: Memd, user: str, number: int) -> None:
    """Push until the push is acknowledged, as an app does when its server restarts or is full."""

    def pushed() -> bool:
        try:
            return bool(tell(app, user, number))
        except (InboxUnavailable, InboxFull, NotReady):
            return False

    wait_for(pushed, "the push was acknowledged")


def told(app: Memd, user: str) -> Counter[int]:
    """How often each statement of a user is stored."""
    facts = app.document(user)["facts"]
    return Counter(int(fact["evidence"][0]["quote"].rstrip(".").rsplit(" ", 1)[1]) for fact in facts)


def raw(user: str, number: int) -> bytes:
    """The same context for the raw door."""
    turns = [{"role": "user", "content": f"I like tea number {number}.", "id": f"u{number}"}]
    return orjson.dumps({"thread_id": f"thread-{number}", "user_id": user, "messages": turns, "now": True})


def once(app: Memd, numbers: Iterable[int], users: int) -> bool:
    """Whether each number was stored exactly once, for the user `u<number modulo users>`."""
    wanted: dict[str, Counter[int]] = {f"u{user}": Counter() for user in range(users)}
    for number in numbers:
        wanted[f"u{number % users}"][number] = 1
    return all(told(app, user) == numbers for user, numbers in wanted.items())


def events(settings: Settings, part: str, *names: str) -> list[dict[str, Any]]:
    """The lines that processes of one kind have logged so far under these names."""
    lines: list[dict[str, Any]] = []
    for log in sorted(settings.data_dir.glob(f"{part}*.log")):
        rows = (orjson.loads(line) for line in log.read_bytes().splitlines() if line.startswith(b"{"))
        lines += [row for row in rows if row.get("event") in names]
    return lines


def has_logged(settings: Settings, event: str, times: int) -> None:
    """Wait until the scheduler has logged an event this often."""
    wait_for(lambda: len(events(settings, "scheduler", event)) >= times, f"{event} is logged")


def family(pid: int) -> list[int]:
    """A process and its children."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [pid, *(int(child) for child in path.read_text().split())] if path.exists() else [pid]


@contextmanager
def frozen(pids: Iterable[int]) -> Iterator[None]:
    """Processes that are frozen during the block and cannot notice it afterwards."""
    pids = list(pids)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: all(is_stopped(pid) for pid in pids), "they stand still")
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Whether a process is frozen by SIGSTOP."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "T"
    except (FileNotFoundError, ProcessLookupError):
        return False


class OwnServer:
    """The embedded server of the given settings, for tests that change or kill it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def __enter__(self) -> OwnServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """The pid of the server that runs now."""
        return self._process.pid

    def start(self) -> None:
        """Start it with the data of its append-only file."""
        self._process = server.start(self._settings)

    def kill(self) -> None:
        """Kill it. Unlike a crash of the kernel this keeps everything that it wrote."""
        self._process.kill()
        self._process.wait()
