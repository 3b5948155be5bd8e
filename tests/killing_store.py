"""A store that kills its worker for one user: what content that crashes a worker looks like from outside."""

from __future__ import annotations

import os
import signal

from memd.context import Bucket
from memd.memory.store import JsonStore, Loaded


class KillingStore(JsonStore):
    """Loads every document but the one of `poison`."""

    def load(self, bucket: Bucket) -> Loaded:
        """Kill the process for the user `poison`."""
        if bucket.user_id == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(bucket)
