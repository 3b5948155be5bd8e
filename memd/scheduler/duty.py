"""What the scheduler does besides sleeping: one duty a file, each with a `name` and a `tick`.

A `tick` does what is due now and answers in how many seconds it wants to be called again at the latest.
"""

from __future__ import annotations

from typing import Protocol


class Duty(Protocol):
    """One background duty."""

    name: str

    def tick(self) -> float:
        """Do what is due; answers the seconds until the next call at the latest. Raises MemdError when it could not."""
