"""Outage: says once that the server is away, with its address, and once that it is back."""

from __future__ import annotations

from typing import Any

from memd.errors import MemdError
from memd.events import Event


class Outage:
    """What one process knows of its server. A failure in a row of failures logs nothing."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._failures = 0

    def failed(self, error: Exception) -> int:
        """Note a failure; returns how many there were in a row. Only messages of memd's own are logged."""
        self._failures += 1
        if self._failures == 1:
            said = str(error) if isinstance(error, MemdError) else ""
            self._log.warning(Event.OUTAGE_BEGAN, code=type(error).__name__, error=said)
        return self._failures

    def ended(self) -> None:
        """Note a success."""
        if self._failures:
            self._log.info(Event.OUTAGE_ENDED, failures=self._failures)
        self._failures = 0
