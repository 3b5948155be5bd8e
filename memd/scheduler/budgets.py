"""Budgets: logs once that a budget was reached. The inbox notes it in the call that reaches it."""

from __future__ import annotations

import redis

from memd.events import Event, logger
from memd.inbox import budget
from memd.inbox.connection import send
from memd.memory.store.protocol import Store

INTERVAL_S = 1.0


class Budgets:
    """Takes the notices, so that only one of several schedulers logs each."""

    name = "budgets"

    def __init__(self, client: redis.Redis, store: Store) -> None:
        self._client = client
        self._store = store
        self._log = logger(duty=self.name)

    def tick(self) -> float:
        """Log the budgets that were reached since the last tick."""
        for notice in send(self._client, budget.notices()):
            self._log.warning(
                Event.BUDGET_REACHED,
                budget="total" if notice.owner is None else "user",
                user=None if notice.owner is None else self._store.pseudonym(notice.owner),
                tokens_per_day=notice.limit,
                until=notice.until.isoformat(),
            )
        return INTERVAL_S
