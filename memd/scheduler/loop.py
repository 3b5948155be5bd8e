"""The debounce scheduler: takes raw pushes in, rescues claims, rings bells, sleeps until the next due time.

Any number of schedulers may run: every move is atomic in the inbox, so two give the same result as one.
"""

from __future__ import annotations

import random
import signal
import time
from contextlib import suppress
from types import FrameType

from memd.config import Settings
from memd.errors import (
    AccountRefused,
    InboxFull,
    InboxUnavailable,
    MemdError,
    NotReady,
    OtherSettings,
    OtherStore,
    StoreUnavailable,
    StoreUnfit,
)
from memd.events import Event, logger
from memd.extraction import endpoint
from memd.inbox import library, server_check, verbs
from memd.inbox.connection import connect, send
from memd.inbox.outage import Outage
from memd.inbox.ruling import Ruling
from memd.inbox.verbs import Tick
from memd.inbox.wake import WakeList
from memd.memory.store.json_store import open_store
from memd.memory.store.said_reader import keeps_said
from memd.scheduler.bells import Bells
from memd.scheduler.budgets import Budgets
from memd.scheduler.duty import Duty
from memd.scheduler.intake import Intake
from memd.scheduler.missing_vectors import MissingVectors
from memd.scheduler.rescue import Rescue
from memd.scheduler.unread import UnreadLists
from memd.scheduler.upkeep import Upkeep
from memd.scheduler.watch import Watch

GRACE_MS = 8
"""A running drain claims a due key within this time, so a bell for it would waste a fork."""

RETRY_MAX_S = 1.0


def run(settings: Settings, *, take_over: bool = False) -> None:
    """Schedule until SIGTERM or SIGINT. `take_over`: also where a scheduler with other settings runs, which ends then.

    Raises ServerUnfit, StoreUnfit or ConfigError before it starts any work, OtherStore and OtherSettings at any time.
    """
    scheduler = Scheduler(settings, take_over=take_over)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, scheduler.stop)
    scheduler.run()


class Scheduler:
    """The loop. A failed duty never ends it; an outage is logged once when it begins and once when it ends."""

    def __init__(self, settings: Settings, *, take_over: bool = False) -> None:
        self._settings = settings
        self._take_over = take_over
        self._client = connect(settings)
        self._wake = WakeList(settings)
        self._rescue = Rescue(self._client)
        self._bells = Bells(settings, self._client)
        self._store = open_store(settings)
        self._ruling = Ruling(settings, self._client)
        self._watch = Watch(settings, self._client, self._store, self._ruling)
        self._duties: list[Duty] = [
            self._watch,
            Intake(settings, self._client),
            UnreadLists(settings, self._client),
            Budgets(self._client, self._store),
            Upkeep(settings, self._store),
            *([MissingVectors(settings, self._store)] if settings.vectors.url is not None else []),
        ]
        self._next = dict.fromkeys(range(len(self._duties)), 0.0)
        self._endpoint = endpoint(settings.extraction)
        self._longest_s = settings.scheduler.tick_ms / 1000
        self._stopping = False
        self._log = logger(part="scheduler")
        self._outage = Outage(self._log)

    def stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Stop before the next round, at the latest a quarter of a second from now."""
        self._stopping = True

    def run(self) -> None:
        """Wait for a fit server, then run rounds until stopped."""
        self._begin()
        while not self._stopping:
            pause = self._round()
            if not self._stopping:
                self._wake.wait(pause)
        with suppress(MemdError):  # then a rival waits for a beat that does not come
            self._ruling.step_down()
        self._log.info(Event.SCHEDULER_STOPPED)

    def _begin(self) -> None:
        while not self._stopping:
            try:
                server_check.require(self._client, self._settings)
                seen = library.WHATEVER
                if not self._take_over:
                    seen = self._ruling.require_no_rival(lambda: self._stopping)
                if not self._install(seen):
                    continue
                self._ruling.beat()
            except (AccountRefused, StoreUnfit):  # only a person can fix it, and the one who started us is present
                raise
            except (InboxUnavailable, InboxFull, StoreUnavailable) as error:
                self._wake.wait(self._failed(error))
            else:
                self._outage.ended()
                self._log.info(Event.SCHEDULER_STARTED)
                return

    def _install(self, seen: library.Mark | object) -> bool:
        """Returns False when another scheduler set the inbox up meanwhile."""
        try:
            if not library.install(self._client, self._settings, seen):
                return False
            self._ruling.installed()
            library.bind_store(self._client, self._store)
            if keeps_said(self._settings) and library.note_first_said(self._client):
                self._log.warning(Event.SAID_KEPT, days=self._settings.said.days, off="said.enabled: false")
        except InboxFull:
            # The functions loaded earlier serve until there is room. Waiting would leave the raw lists full forever.
            if not library.installed(self._client):
                raise
            self._watch.stale = True
        return True

    def _round(self) -> float:
        """Run what is due now; return the seconds to sleep."""
        try:
            pause = min(self._longest_s, *self._run_duties())
            tick = send(self._client, verbs.tick(GRACE_MS, self._endpoint))
            self._rescue.look(tick)
            self._bells.look(tick)
        except NotReady as error:
            # The libraries are gone: the watch puts them back in the next round.
            self._watch.stale = True
            self._next = dict.fromkeys(self._next, 0.0)
            return self._failed(error)
        except (OtherStore, OtherSettings):  # the inbox is another one's, and only a person can fix it
            raise
        except MemdError as error:  # every step is one atomic call, so none is half done
            return self._failed(error)
        except Exception as error:  # noqa: BLE001  (a loop never dies; the step is tried again in the next round)
            self._log.error(Event.DUTY_FAILED, exc_info=error)
            return self._failed(error)
        self._outage.ended()
        return min(pause, _until_next(tick))

    def _run_duties(self) -> list[float]:
        """Tick each duty whose time has come; return the seconds until the next tick of each."""
        for index, duty in enumerate(self._duties):
            if time.monotonic() >= self._next[index]:
                self._next[index] = time.monotonic() + duty.tick()
        now = time.monotonic()
        return [max(0.0, at - now) for at in self._next.values()]

    def _failed(self, error: Exception) -> float:
        failures = self._outage.failed(error)
        ceiling = min(RETRY_MAX_S, 0.02 * 2 ** min(failures, 10))
        return random.uniform(ceiling / 2, ceiling)  # noqa: S311  (jitter, not a secret)


def _until_next(tick: Tick) -> float:
    """Seconds until the next key waits for a worker or the next lease ends."""
    moments = [moment for moment in (tick.next_due_ms, tick.next_lease_ms) if moment is not None]
    return max(0.0, (min(moments) - tick.now_ms) / 1000) if moments else float("inf")
