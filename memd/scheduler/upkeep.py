"""Upkeep: once a day, removes what was said and doubtful facts when they are past their days.

Also for users who say nothing any more.
"""

from __future__ import annotations

from datetime import UTC, datetime

from memd.context import Bucket
from memd.memory.store.said_reader import keeps_said
from memd.scheduler.walks import Walk


class Upkeep(Walk):
    """Tends all memories once a day, and at once when the gates or the settings of what was said have changed."""

    name = "upkeep"
    every_s = 86_400.0

    @property
    def round_name(self) -> str:
        """The name of the round in the inbox: by gates and days, as a change of these must not wait."""
        from memd.memory.said.excerpts import GATES_VERSION  # noqa: PLC0415  (as in `visit`)

        days = self._settings.said.days if keeps_said(self._settings) else 0
        return f"said-{GATES_VERSION}-{days}"

    def visit(self, bucket: Bucket) -> None:
        """Bring one memory up to date."""
        from memd.memory.store.tending import tend  # noqa: PLC0415  (the gates' patterns: the scheduler starts without them)

        tend(self._store, bucket, self._settings, datetime.now(UTC))
