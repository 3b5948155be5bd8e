"""Stores that kill their worker: by content that crashes it, or after the rename of a commit."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.config import StoreSettings
from memd.context import Bucket, user_hash
from memd.memory.store import tombstone_names
from memd.memory.store.paths import FORGOTTEN
from memd.memory.store.protocol import NO_IDENTITIES, Identities, Loaded
from memd.memory.store.tombstone import TombstoneFiles
from support import wait_for
from support.fault_stores import HookedStore, KeptStore

KILLS = 5
EVERY = 8


class KillingStore(KeptStore):
    """Loads every document except that of `poison`."""

    def load(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """Kill the process for the user `poison`."""
        if bucket.user_id == "poison":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().load(bucket, identities)


class DyingStore(HookedStore):
    """Dies after each eighth commit, between the rename and the ack, five times in all."""

    @contextmanager
    def around_commit(self, bucket: Bucket) -> Iterator[None]:
        """Count the commits that have succeeded; after each eighth die."""
        yield
        commits = self._data_dir / "commits"
        with commits.open("ab") as file:
            file.write(b".")
        count = commits.stat().st_size
        if count % EVERY == 0 and count <= KILLS * EVERY:
            os.kill(os.getpid(), signal.SIGKILL)


class WaitingStore(HookedStore):
    """Checks its claim before the user's forgetting begins, and writes after that."""

    def within_commit(self, bucket: Bucket) -> None:
        """Record the check of the claim, and wait."""
        folder = self._data_dir / "asked"
        folder.mkdir(exist_ok=True)
        (folder / bucket.hash).touch()
        begun = f"{tombstone_names.name(self._key.get(), user_hash(bucket.user_id))}.open"
        wait_for((self._data_dir / FORGOTTEN / begun).exists, "the forgetting has begun")


class PausingTombstones(TombstoneFiles):
    """Reads a generation, and returns it when the test allows it."""

    def generation(self, user_id: str) -> int:
        """Read, record the read, and wait for the file `<user>.go`."""
        generation = super().generation(user_id)
        folder = self._folder.with_name("asked")
        folder.mkdir(exist_ok=True)
        (folder / user_id).touch()
        wait_for((folder / f"{user_id}.go").exists, "the test lets the commit go on")
        return generation


class PausingStore(HookedStore):
    """Its commits pause between the last check of the claim and the write."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self.tombstones = PausingTombstones(data_dir)

    @contextmanager
    def around_commit(self, bucket: Bucket) -> Iterator[None]:
        """Record the end of the commit."""
        try:
            yield
        finally:
            (self._data_dir / "asked" / f"{bucket.user_id}.done").touch()
