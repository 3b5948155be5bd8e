"""Turns on their way to the inbox, for frameworks that have no place of their own where turns could wait.

While the inbox is out of reach they wait in this process, and the next push of the thread takes them along. An agent
never stops because of memd.
"""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

from memd.adapters.agent_run import AgentRun
from memd.client import Memd
from memd.errors import MemdError, Rejected
from memd.events import Event

_log = logging.getLogger("memd")

MAX_WAITING = 1_000
"""Turns that wait in a process. Beyond it the oldest of the thread that waits longest are dropped, and logged."""

Turn = dict[str, Any]


class WaitingTurns:
    """Pushes turns, and keeps those that could not be pushed. Thread-safe.

    Turns need ids: one that is pushed a second time, because the answer of the first push was lost, counts once then.
    """

    def __init__(self, memd: Memd, agent_name: str) -> None:
        self._memd = memd
        self._agent_name = agent_name
        self._waiting: OrderedDict[AgentRun, list[Turn]] = OrderedDict()
        self._lock = threading.Lock()

    def push(self, run: AgentRun, turns: Sequence[Turn], *, now: bool = False) -> bool:
        """Push the run's turns behind those that wait; whether nothing of this run waits any more. Raises nothing."""
        with self._lock:
            turns = [*self._waiting.pop(run, []), *turns]
        if not turns:
            return True
        try:
            self._push(run, turns, now=now)
        except MemdError as error:  # the next push of this thread tries again
            _log.warning("%s %s", Event.PUSH_DELAYED, error)
            self._keep(run, turns)
            return False
        return True

    def push_all(self) -> bool:
        """Push what waits, of every run; whether nothing waits any more. Raises nothing."""
        with self._lock:
            runs = list(self._waiting)
        went = [self.push(run, []) for run in runs]
        return all(went)

    def __len__(self) -> int:
        """How many turns wait."""
        with self._lock:
            return sum(map(len, self._waiting.values()))

    def _push(self, run: AgentRun, turns: Sequence[Turn], *, now: bool) -> None:
        for batch in _batches(turns, self._memd.settings.client.max_messages):
            try:
                self._memd.push(
                    batch, agent_name=self._agent_name, project_id=run.project_id, now=now, **run.push_fields
                )
            except Rejected as error:
                if len(batch) == 1:  # memd will never accept it: logged, then dropped
                    _log.error("%s %s", Event.PUSH_REFUSED, error)
                    continue
                for turn in batch:  # one bad turn must not hold back the others
                    self._push(run, [turn], now=now)

    def _keep(self, run: AgentRun, turns: list[Turn]) -> None:
        with self._lock:
            self._waiting[run] = [*turns, *self._waiting.pop(run, [])]
            too_many = sum(map(len, self._waiting.values())) - MAX_WAITING
            while too_many > 0:
                longest, waiting = next(iter(self._waiting.items()))
                kept = waiting[too_many:]
                too_many -= len(waiting) - len(kept)
                self._waiting[longest] = kept
                if not kept:
                    del self._waiting[longest]
                _log.error("%s E_WAITING_FULL: %d turns dropped", Event.PUSH_REFUSED, len(waiting) - len(kept))


def _batches(turns: Sequence[Turn], size: int) -> Iterator[list[Turn]]:
    yield from (list(turns[at : at + size]) for at in range(0, len(turns), size))
