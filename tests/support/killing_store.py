"""Stores that kill their worker: what content that crashes a worker, and a kill after the rename, look like."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

from memd.config import StoreSettings
from memd.context import Bucket, user_hash
from memd.memory.document import Document
from memd.memory.store.json_store import JsonStore
from memd.memory.store.paths import FORGOTTEN
from memd.memory.store.protocol import NO_IDENTITIES, Identities, Loaded
from memd.memory.store.tombstone import TombstoneFiles
from support import wait_for

KILLS = 5
EVERY = 8


class KillingStore(JsonStore):
    """Loads every document but the one of `poison`."""

    def load(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """Kill the process for the user `poison`."""
        if bucket.user_id == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(bucket, identities)


class DyingStore(JsonStore):
    """Dies after each eighth commit, between the rename and the ack, five times in all."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self._commits = data_dir / "commits"

    def commit(
        self,
        bucket: Bucket,
        loaded: Loaded,
        document: Document,
        still_ours: Callable[[], bool],
        taken: Identities = NO_IDENTITIES,
    ) -> Loaded:
        """Commit, count, and maybe die."""
        done = super().commit(bucket, loaded, document, still_ours, taken)
        with self._commits.open("ab") as file:
            file.write(b".")
        count = self._commits.stat().st_size
        if count % EVERY == 0 and count <= KILLS * EVERY:
            os.kill(os.getpid(), signal.SIGKILL)
        return done


class WaitingStore(JsonStore):
    """Writes only after the user's forgetting has begun, though it asked for the claim before that."""

    def commit(
        self,
        bucket: Bucket,
        loaded: Loaded,
        document: Document,
        still_ours: Callable[[], bool],
        taken: Identities = NO_IDENTITIES,
    ) -> Loaded:
        """Ask, write down that this was answered, and wait before the write."""

        def asked() -> bool:
            ours = still_ours()
            folder = self._data_dir / "asked"
            folder.mkdir(exist_ok=True)
            (folder / bucket.hash).touch()
            begun = self._data_dir / FORGOTTEN / f"{user_hash(bucket.user_id)}.open"
            wait_for(begun.exists, "the forgetting has begun")
            return ours

        return super().commit(bucket, loaded, document, asked, taken)


class PausingTombstones(TombstoneFiles):
    """Read a generation, and return it when the test says so."""

    def generation(self, user_id: str) -> int:
        """Read, write down that this was read, and wait for the file `<user>.go`."""
        generation = super().generation(user_id)
        folder = self._folder.with_name("asked")
        folder.mkdir(exist_ok=True)
        (folder / user_id).touch()
        wait_for((folder / f"{user_id}.go").exists, "the test lets the commit go on")
        return generation


class PausingStore(JsonStore):
    """Its commits pause between their last question and the write."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self.tombstones = PausingTombstones(data_dir)

    def commit(
        self,
        bucket: Bucket,
        loaded: Loaded,
        document: Document,
        still_ours: Callable[[], bool],
        taken: Identities = NO_IDENTITIES,
    ) -> Loaded:
        """Commit, and write down that this has ended."""
        try:
            return super().commit(bucket, loaded, document, still_ours, taken)
        finally:
            (self._data_dir / "asked" / f"{bucket.user_id}.done").touch()
