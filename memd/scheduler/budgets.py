"""Budgets: says once in the log that one was reached. The inbox noted it with the call that did it."""

from __future__ import annotations

import redis

from memd.events import Event, logger
from memd.inbox import budget
from memd.inbox.connection import send

INTERVAL_S = 1.0


class Budgets:
    """Takes the notices, so that of several schedulers one says each."""

    name = "budgets"

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._log = logger(duty=self.name)

    def tick(self) -> float:
        """Say what was reached since the last look."""
        for notice in send(self._client, budget.notices()):
            self._log.warning(
                Event.BUDGET_REACHED,
                budget="total" if notice.owner is None else "user",
                user=notice.owner,
                tokens_per_day=notice.limit,
                until=notice.until.isoformat(),
            )
        return INTERVAL_S
