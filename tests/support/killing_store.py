"""Stores that kill their worker: what content that crashes a worker, and a kill after the rename, look like."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from memd.config import StoreSettings
from memd.context import Bucket, user_hash
from memd.memory.document import Document
from memd.memory.store.json_store import JsonStore, Loaded
from memd.memory.store.tombstone import FOLDER

KILLS = 5
EVERY = 8


class KillingStore(JsonStore):
    """Loads every document but the one of `poison`."""

    def load(self, bucket: Bucket) -> Loaded:
        """Kill the process for the user `poison`."""
        if bucket.user_id == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(bucket)


class DyingStore(JsonStore):
    """Dies after each eighth commit, between the rename and the ack, five times in all."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self._commits = data_dir / "commits"

    def commit(self, bucket: Bucket, loaded: Loaded, document: Document, still_ours: Callable[[], bool]) -> Loaded:
        """Commit, count, and maybe die."""
        done = super().commit(bucket, loaded, document, still_ours)
        with self._commits.open("ab") as file:
            file.write(b".")
        count = self._commits.stat().st_size
        if count % EVERY == 0 and count <= KILLS * EVERY:
            os.kill(os.getpid(), signal.SIGKILL)
        return done


class WaitingStore(JsonStore):
    """Writes only after a tombstone stands, though it asked before: a forget between the two."""

    def commit(self, bucket: Bucket, loaded: Loaded, document: Document, still_ours: Callable[[], bool]) -> Loaded:
        """Ask, say that it was answered, and wait for the tombstone before the write."""

        def asked() -> bool:
            ours = still_ours()
            folder = self._data_dir / "asked"
            folder.mkdir(exist_ok=True)
            (folder / bucket.hash).touch()
            until = time.monotonic() + 10
            while not (self._data_dir / FOLDER / f"{user_hash(bucket.user_id)}.json").exists():
                assert time.monotonic() < until
                time.sleep(0.002)
            return ours

        return super().commit(bucket, loaded, document, asked)
