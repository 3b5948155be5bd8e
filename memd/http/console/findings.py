"""What the doctor finds, for the overview: looked for in the background, at most once a minute while somebody looks."""

from __future__ import annotations

import threading
import time
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from memd.config import Settings
from memd.http.service import Service

if TYPE_CHECKING:
    from memd.ops.doctor import Diagnosis

FRESH_S = 60.0


class Findings:
    """The last findings of the doctor."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._found: list[Diagnosis] | None = None
        self._next_at = 0.0

    def latest(self) -> list[Diagnosis] | None:
        """What was found last; None until the first look is over. Old findings start another look in the background."""
        with self._lock:
            if time.monotonic() >= self._next_at:
                self._next_at = time.monotonic() + FRESH_S
                threading.Thread(target=self._look, name="findings", daemon=True).start()
            return self._found

    def _look(self) -> None:
        examine = import_module("memd.ops.doctor").examine  # half a second of imports, which no other page needs
        found = examine(self._settings)
        with self._lock:
            self._found = found


@cache
def findings_of(service: Service) -> Findings:
    """The findings of this server."""
    return Findings(service.settings)
