"""Walks: duties that visit all memories once in a while, one of all schedulers at a time, in a thread of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import redis

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import MemdError
from memd.events import Event, logger
from memd.inbox import rounds
from memd.inbox.connection import connect, send
from memd.memory.store.protocol import Store

TAKEN_S = 600.0
"""A round whose scheduler died is begun anew after this time: one that keeps dying reads all memories no more often."""

LOOK_S = 60.0
PAUSE_S = 0.01
"""Seconds between two memories: 10,000 take two minutes, at a few percent of a core."""


class Walk:
    """A duty that walks all memories, so that the scheduler never waits for files."""

    name: str
    every_s: float
    """Seconds between two rounds."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._round: threading.Thread | None = None
        self._log = logger(duty=self.name)

    @property
    def round_name(self) -> str:
        """The name of the round in the inbox. A name with the settings in it begins a round as soon as they change."""
        raise NotImplementedError

    def visit(self, bucket: Bucket) -> None:
        """Do the work on one memory. Raises MemdError: it waits for the next round then; and EndRound."""
        raise NotImplementedError

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
                    again_s = self._walk(client)
                    send(client, rounds.keep(self.round_name, _ms(again_s)))
        except MemdError as error:  # the inbox is away: what is left of the round is done by the next one
            self._log.warning(Event.DUTY_FAILED, code=type(error).__name__)
        except Exception as error:  # noqa: BLE001  (the thread ends; a later look begins the round anew)
            self._log.error(Event.DUTY_FAILED, exc_info=error)

    def _walk(self, client: redis.Redis) -> float:
        """Visit all memories; returns the seconds until the next round."""
        renew = time.monotonic() + TAKEN_S / 2
        for bucket in self.buckets():
            try:
                self.visit(bucket)
            except EndRound as end:
                return end.again_s
            except MemdError as error:  # damaged, too new, or a full disk: `memd doctor` and the workers report it
                name = self._store.pseudonym(bucket.hash)
                self._log.warning(Event.DUTY_FAILED, bucket=name, code=type(error).__name__)
            time.sleep(PAUSE_S)
            if time.monotonic() > renew:
                send(client, rounds.keep(self.round_name, _ms(TAKEN_S)))
                renew = time.monotonic() + TAKEN_S / 2
        return self.every_s

    def buckets(self) -> Iterator[Bucket]:
        """The memories to visit."""
        for user_id in self._store.users():
            for agent in (DEFAULT_AGENT, *self._store.agents(user_id)):
                yield Bucket(user_id, agent)


class EndRound(Exception):
    """The rest of the round would fail as well: the next one begins in `again_s` seconds."""

    def __init__(self, again_s: float) -> None:
        super().__init__()
        self.again_s = again_s


def _ms(seconds: float) -> int:
    return int(seconds * 1000)
