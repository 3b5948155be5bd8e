"""Upkeep: once a day, removes what was said and is past its days, also for users who say nothing any more."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import MemdError
from memd.events import Event, logger
from memd.memory.store.protocol import Store

DAY_S = 86_400.0
LOOK_S = 60.0
PAUSE_S = 0.01
"""Seconds between two memories: 10,000 take two minutes, at a few percent of a core."""


class Upkeep:
    """Walks all memories in a thread of its own, so that the scheduler never waits for files; first when it starts."""

    name = "upkeep"

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._next = 0.0
        self._round: threading.Thread | None = None
        self._log = logger(duty=self.name)

    def tick(self) -> float:
        """Begin a round when one is due and none is running."""
        now = time.monotonic()
        if now >= self._next and not (self._round and self._round.is_alive()):
            self._next = now + DAY_S
            self._round = threading.Thread(target=self.run, name=self.name, daemon=True)
            self._round.start()
        return LOOK_S

    def run(self) -> None:
        """One round. A memory that cannot be read or written waits for the next one; killed, nothing is lost."""
        try:
            for user_id in self._store.users():
                for agent in (DEFAULT_AGENT, *self._store.agents(user_id)):
                    self._tend(Bucket(user_id, agent))
                    time.sleep(PAUSE_S)
        except Exception as error:  # noqa: BLE001  (the thread ends, and the next round is a day away)
            self._log.error(Event.DUTY_FAILED, exc_info=error)

    def _tend(self, bucket: Bucket) -> None:
        from memd.memory.store.said_upkeep import tend  # noqa: PLC0415  (the gates' patterns: the scheduler starts without them)

        try:
            tend(self._store, bucket, self._settings, datetime.now(UTC))
        except MemdError as error:  # damaged, too new, or a full disk: `memd doctor` and the workers report it
            self._log.warning(Event.DUTY_FAILED, bucket=self._store.pseudonym(bucket.hash), code=type(error).__name__)
