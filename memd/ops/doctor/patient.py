"""What the checks look at: the settings and the server, each question asked once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self, TypeVar

import redis

from memd.config import Settings
from memd.errors import InboxUnavailable, MemdError, NotAllowed
from memd.inbox.connection import connect, translated
from memd.inbox.snapshot import Snapshot, snapshot
from memd.inbox.verbs import raw_lists

T = TypeVar("T")
State = Literal["ok", "warn", "bad"]


class Verdict(NamedTuple):
    """What a check says: how it is, and one sentence of what is fine or what to do."""

    state: State
    said: str


def ok(said: str) -> Verdict:
    """Nothing to do."""
    return Verdict("ok", said)


def warn(said: str) -> Verdict:
    """Worth a look: it works, but not for ever, or could not be found out."""
    return Verdict("warn", said)


def bad(said: str) -> Verdict:
    """Something is wrong now, or a promise does not hold."""
    return Verdict("bad", said)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report."""

    check: str
    state: State
    said: str


class Patient:
    """Settings and server. A server that does not answer is asked once, not by each check anew."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.client = connect(settings, retries=0)
        self._silent: InboxUnavailable | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def ask(self, question: Callable[[redis.Redis], T]) -> T:
        """Ask the server. Raises NotAllowed for a right that is missing, InboxUnavailable when it is out of reach."""
        if self._silent is not None:
            raise self._silent
        try:
            return question(self.client)
        except redis.RedisError as error:
            problem = translated(error)
        except MemdError as error:
            problem = error
        if isinstance(problem, InboxUnavailable) and not isinstance(problem, NotAllowed):
            self._silent = problem
        raise problem

    @cached_property
    def info(self) -> dict[str, Any]:
        """What INFO says."""
        return self.ask(
            lambda client: {k: v for part in ("server", "persistence", "memory") for k, v in client.info(part).items()}
        )

    @cached_property
    def shot(self) -> Snapshot:
        """The inbox in figures."""
        return self.ask(lambda client: snapshot(client, raw_lists(self.settings)))


def size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
