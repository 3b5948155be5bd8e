"""The form of a duty of the scheduler: one duty per file, each with a `name` and a `tick`.

A `tick` does the work that is due now and returns the seconds until it must be called again at the latest.
"""

from __future__ import annotations

from typing import Protocol


class Duty(Protocol):
    """One background duty."""

    name: str

    def tick(self) -> float:
        """Do the work that is due; return the seconds until the next call at the latest. Raises MemdError."""
