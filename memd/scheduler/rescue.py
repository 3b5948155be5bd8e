"""Rescue: returns claims whose lease has expired to the inbox, ahead of newer messages."""

from __future__ import annotations

import redis

from memd.events import Event, logger
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.inbox.verbs import Tick


class Rescue:
    """Releases expired claims. The function checks the lease again, so two schedulers do no harm."""

    name = "rescue"

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._log = logger(duty=self.name)

    def look(self, tick: Tick) -> None:
        """Release the expired claims."""
        for claim_id in tick.expired:
            end = send(self._client, verbs.release(claim_id, "expired"))
            if end != "lost":
                self._log.warning(Event.LEASE_EXPIRED, claim=claim_id, end=end)
