"""Upkeep: once a day, removes what was said and doubtful facts when they are past their days.

Also for users who say nothing any more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import redis

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import MemdError
from memd.events import Event, logger
from memd.inbox import rounds
from memd.inbox.connection import connect, send
from memd.memory.store.protocol import Store
from memd.memory.store.said_reader import keeps_said

DAY_S = 86_400.0
TAKEN_S = 600.0
"""A round whose scheduler died is begun anew after this time: one that keeps dying reads all memories no more often."""

LOOK_S = 60.0
PAUSE_S = 0.01
"""Seconds between two memories: 10,000 take two minutes, at a few percent of a core."""


class Upkeep:
    """Walks all memories in a thread of its own, so that the scheduler never waits for files.

    One of all schedulers does so once a day, and at once when the gates or the settings of what was said have changed.
    """

    name = "upkeep"

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._round: threading.Thread | None = None
        self._log = logger(duty=self.name)

    def tick(self) -> float:
        """Look whether a round is due, unless one is running."""
        if not (self._round and self._round.is_alive()):
            self._round = threading.Thread(target=self.run, name=self.name, daemon=True)
            self._round.start()
        return LOOK_S

    def run(self) -> None:
        """One round, if it is due. A memory that cannot be read or written waits for the next one.

        Killed, nothing is lost.
        """
        try:
            with connect(self._settings) as client:  # of its own, so that the scheduler keeps no second connection
                if send(client, rounds.take(self.round_name, _ms(TAKEN_S))):
                    self._walk(client)
                    send(client, rounds.keep(self.round_name, _ms(DAY_S)))
        except MemdError as error:  # the inbox is away: what is left of the round is done by the next one
            self._log.warning(Event.DUTY_FAILED, code=type(error).__name__)
        except Exception as error:  # noqa: BLE001  (the thread ends; a later look begins the round anew)
            self._log.error(Event.DUTY_FAILED, exc_info=error)

    @property
    def round_name(self) -> str:
        """The name of the round in the inbox: by gates and days, as a change of these must not wait."""
        from memd.memory.said.excerpts import GATES_VERSION  # noqa: PLC0415  (as in `_tend`)

        days = self._settings.said.days if keeps_said(self._settings) else 0
        return f"said-{GATES_VERSION}-{days}"

    def _walk(self, client: redis.Redis) -> None:
        renew = time.monotonic() + TAKEN_S / 2
        for bucket in self._buckets():
            self._tend(bucket)
            time.sleep(PAUSE_S)
            if time.monotonic() > renew:
                send(client, rounds.keep(self.round_name, _ms(TAKEN_S)))
                renew = time.monotonic() + TAKEN_S / 2

    def _buckets(self) -> Iterator[Bucket]:
        for user_id in self._store.users():
            for agent in (DEFAULT_AGENT, *self._store.agents(user_id)):
                yield Bucket(user_id, agent)

    def _tend(self, bucket: Bucket) -> None:
        from memd.memory.store.tending import tend  # noqa: PLC0415  (the gates' patterns: the scheduler starts without them)

        try:
            tend(self._store, bucket, self._settings, datetime.now(UTC))
        except MemdError as error:  # damaged, too new, or a full disk: `memd doctor` and the workers report it
            self._log.warning(Event.DUTY_FAILED, bucket=self._store.pseudonym(bucket.hash), code=type(error).__name__)


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
