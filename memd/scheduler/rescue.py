"""Rescue: claims whose lease ran out go back into the inbox, before what came since."""

from __future__ import annotations

import redis

from memd.events import Event, logger
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.inbox.verbs import Tick


class Rescue:
    """Gives expired claims back. The function looks at the lease again, so two schedulers do no harm."""

    name = "rescue"

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._log = logger(duty=self.name)

    def look(self, tick: Tick) -> None:
        """Give back what has expired."""
        for claim_id in tick.expired:
            end = send(self._client, verbs.release(claim_id, "expired"))
            if end != "lost":
                self._log.warning(Event.LEASE_EXPIRED, claim=claim_id, end=end)
