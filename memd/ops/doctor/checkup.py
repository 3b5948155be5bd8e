"""The data of the checks: settings, store and server. Each question is asked of the server once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, Self, TypeVar

import redis

from memd.config import Settings
from memd.errors import InboxUnavailable, MemdError, NotAllowed
from memd.inbox.connection import connect, translated
from memd.inbox.figures import Figures, read_figures
from memd.inbox.verbs import raw_lists

T = TypeVar("T")
State = Literal["ok", "warn", "bad"]


class Verdict(NamedTuple):
    """The result of a check: its state, and one sentence that says what is fine or what to do."""

    state: State
    sentence: str


def ok(sentence: str) -> Verdict:
    """Nothing to do."""
    return Verdict("ok", sentence)


def warn(sentence: str) -> Verdict:
    """It works for now, or the check could not find out."""
    return Verdict("warn", sentence)


def bad(sentence: str) -> Verdict:
    """Something is wrong now, or a promise does not hold."""
    return Verdict("bad", sentence)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One line of the doctor's report. The fields are those of `memd doctor --json`; `said` is the sentence."""

    check: str
    state: State
    said: str


class Checkup:
    """Settings and server. A server that does not respond is tried once for all checks."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.client = connect(settings, retries=0)
        self._unreachable: InboxUnavailable | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()

    def ask(self, question: Callable[[redis.Redis], T]) -> T:
        """Ask the server. Raises NotAllowed for a right that the account lacks, InboxUnavailable."""
        if self._unreachable is not None:
            raise self._unreachable
        try:
            return question(self.client)
        except redis.RedisError as error:
            problem = translated(error, self.client)
        except MemdError as error:
            problem = error
        if isinstance(problem, InboxUnavailable) and not isinstance(problem, NotAllowed):
            self._unreachable = problem
        raise problem

    @cached_property
    def info(self) -> dict[str, Any]:
        """The server's INFO: server, persistence and memory."""
        return self.ask(
            lambda client: {k: v for part in ("server", "persistence", "memory") for k, v in client.info(part).items()}
        )

    @cached_property
    def figures(self) -> Figures:
        """The inbox in figures."""
        return self.ask(lambda client: read_figures(client, raw_lists(self.settings)))


def size(count: float) -> str:
    """Bytes for people: "812 B", "1.4 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
