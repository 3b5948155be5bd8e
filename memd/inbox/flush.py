"""Flush: makes keys due now, and waits for the outcome of everything accepted before."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import redis

from memd.context import user_hash
from memd.inbox import budget, verbs
from memd.inbox.connection import send
from memd.inbox.raw_door import Backlog
from memd.inbox.receipt import Outcome, judge, standings
from memd.inbox.verbs import ReceiptParts

PAGE = 500
RAW_WAIT_S = 1.0
"""How long a flush without `wait` lets the scheduler take in the raw lists."""

MOST_LOOKS = 5
"""Most scans for keys: under steady input each scan finds keys pushed after the flush began."""

POLL_MIN_S, POLL_MAX_S = 0.02, 0.25


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects keys by user, agent, thread or any combination; None means any."""

    user_id: str | None = None
    agent_name: str | None = None
    thread_id: str | None = None


@dataclass(frozen=True, slots=True)
class FlushProgress:
    """The progress of a waiting flush: keys in total, keys ended."""

    total: int
    ended: int


@dataclass(frozen=True, slots=True)
class FlushResult:
    """Counts of keys by outcome (stored, skipped, dead, unknown) or `waiting`, and whether the flush timed out."""

    counts: dict[str, int] = field(default_factory=dict)
    timed_out: bool = False
    rationed: int = 0
    rationed_until: datetime | None = None
    """How many of the waiting keys wait for a budget, which a flush does not override, and until when."""


class Flush:
    """One flush of one selection."""

    def __init__(self, client: redis.Redis, lists: Sequence[str], selection: Selection) -> None:
        self._client = client
        self._lists = lists
        self._selection = selection
        self._pushes: dict[tuple[str, str], int] = {}

    def start(self) -> FlushResult:
        """Make the selection due now without waiting; returns how many keys are in flight."""
        self._take_in(time.monotonic() + RAW_WAIT_S)
        return self._result(Counter(), timed_out=False)

    def wait(self, timeout_s: float, progress: Callable[[FlushProgress], None] | None = None) -> FlushResult:
        """Make the selection due now and wait until everything accepted before the call has ended."""
        until = time.monotonic() + timeout_s
        in_time = self._take_in(until)
        ended: Counter[str] = Counter()
        pause = POLL_MIN_S
        while True:
            before = len(self._pushes)
            ended.update(outcome.state for outcome in self._settle())
            if progress:
                progress(FlushProgress(len(self._pushes) + ended.total(), ended.total()))
            if not self._pushes and in_time:
                return FlushResult(dict(ended))
            if time.monotonic() >= until or (in_time and self._all_rationed(until)):
                return self._result(ended, timed_out=True)
            pause = POLL_MIN_S if len(self._pushes) < before else min(POLL_MAX_S, pause * 1.5)
            time.sleep(min(pause, max(0.0, until - time.monotonic())))

    def _result(self, ended: Counter[str], *, timed_out: bool) -> FlushResult:
        waiting = [moment for moment in self._rationed() if moment is not None]
        counts = {**ended, "waiting": len(self._pushes)}
        return FlushResult(counts, timed_out, len(waiting), max(waiting, default=None))

    def _all_rationed(self, until: float) -> bool:
        """Whether all remaining keys wait for a budget beyond our deadline."""
        deadline = datetime.now(UTC) + timedelta(seconds=until - time.monotonic())
        return all(moment is not None and moment > deadline for moment in self._rationed())

    def _rationed(self) -> Iterable[datetime | None]:
        """When the wait of each key for a budget ends; None for a key that does not wait."""
        keys = sorted({key for key, _ in self._pushes})
        for start in range(0, len(keys), PAGE):
            yield from send(self._client, budget.rationed(keys[start : start + PAGE]))

    def _take_in(self, until: float) -> bool:
        """Record the pending keys, wait until the raw lists are taken in, record again. False: timed out."""
        backlog = Backlog(self._client, self._lists)
        self._record()
        while not backlog.taken_in():
            if time.monotonic() >= until:
                return False
            time.sleep(POLL_MIN_S)
        if backlog:
            self._record()
        return True

    def _record(self) -> None:
        """Record every selected key; scan again until two scans in a row find no new key.

        A parked key becomes due when its bucket's claim ends and is claimed soon after: one scan can miss it in both
        places.
        """
        quiet = 0
        for _ in range(MOST_LOOKS):
            before = len(self._pushes)
            self._look()
            quiet = 0 if len(self._pushes) > before else quiet + 1
            if quiet == 2:
                return

    def _look(self) -> None:
        key_filter = (self._selection.thread_id, self._selection.user_id, self._selection.agent_name)
        for source, extra in self._sources():
            cursor = "0"
            while True:
                cursor, found = send(self._client, verbs.flush_page(source, cursor, key_filter, extra))
                for key, gen, seq in found:
                    self._pushes[key, gen] = max(seq, self._pushes.get((key, gen), 0))
                if cursor == "0":
                    break

    def _sources(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        if self._selection.user_id is not None:
            return [("user", (user_hash(self._selection.user_id),))]
        # Keys move from due to claimed during the scan, and back when released, so due is scanned twice. So are the
        # keys that wait for a budget or a batch, which move both ways.
        waiting: list[tuple[str, tuple[str, ...]]] = [("due", ()), ("rationed", ()), ("batched", ())]
        return [*waiting, ("claimed", ()), *waiting]

    def _settle(self) -> list[Outcome]:
        """Look up all recorded pushes, and remove and return those that have ended."""
        ended: list[Outcome] = []
        in_flight: list[ReceiptParts] = [(key, gen, seq) for (key, gen), seq in self._pushes.items()]
        for start in range(0, len(in_flight), PAGE):
            page = in_flight[start : start + PAGE]
            replies = send(self._client, standings([key for key, _, _ in page]))
            for (key, gen, seq), standing in zip(page, replies, strict=True):
                outcome = judge(standing, gen, seq)
                if outcome.ended:
                    del self._pushes[key, gen]
                    ended.append(outcome)
        return ended
