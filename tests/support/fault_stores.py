"""Stores whose commits halt: their process freezes, or they wait for a file."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memd.config import StoreSettings
from memd.context import Bucket
from memd.errors import StoreUnavailable
from memd.memory.document import Document
from memd.memory.said.changes import SaidChange
from memd.memory.store.protocol import NO_IDENTITIES, Identities, Loaded, Speaker
from support import STORE, wait_for

if TYPE_CHECKING or STORE != "postgres":
    from memd.memory.store.json_store import JsonStore

    KeptStore = JsonStore
else:
    from memd.memory.store.postgres import PostgresStore

    KeptStore = PostgresStore


class HookedStore(KeptStore):
    """A store with hooks around its commits, and inside them between the last check of the claim and the write."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self._data_dir = data_dir

    def commit(
        self,
        bucket: Bucket,
        loaded: Loaded,
        document: Document,
        still_ours: Callable[[], bool],
        taken: Identities = NO_IDENTITIES,
        said: SaidChange | None = None,
        speaker: Speaker | None = None,
    ) -> Loaded:
        """Commit, with the hooks."""

        def ask_then_act() -> bool:
            ours = still_ours()
            self.within_commit(bucket)
            return ours

        with self.around_commit(bucket):
            return super().commit(bucket, loaded, document, ask_then_act, taken, said, speaker)

    def within_commit(self, bucket: Bucket) -> None:
        """Called after the check of the claim: with files the locks are held, with PostgreSQL not yet."""

    @contextmanager
    def around_commit(self, bucket: Bucket) -> Iterator[None]:
        """Entered before the locks are taken; left when the commit has ended."""
        yield


class FreezingStore(HookedStore):
    """Its process freezes in the first commit, and holds no other lock meanwhile."""

    _turn = threading.Lock()

    @contextmanager
    def around_commit(self, bucket: Bucket) -> Iterator[None]:
        """Commit when it is its turn."""
        with self._turn:
            yield

    def within_commit(self, bucket: Bucket) -> None:
        """Freeze, unless a process has already frozen."""
        marker = self._data_dir / "in-commit"
        if not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGSTOP)


class HangingStore(HookedStore):
    """Every commit waits for the file `go`."""

    def within_commit(self, bucket: Bucket) -> None:
        """Wait for the file."""
        (self._data_dir / "in-commit").touch()
        wait_for((self._data_dir / "go").exists, "the test lets commits go on", timeout_s=60)


class WritingDownStore(HookedStore):
    """Records each load and commit with its bucket."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self._steps = data_dir / "steps"

    def load(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """Load."""
        self._write_down("load")
        return super().load(bucket, identities)

    @contextmanager
    def around_commit(self, bucket: Bucket) -> Iterator[None]:
        """Record a commit that has succeeded."""
        yield
        self._write_down("commit")

    def _write_down(self, step: str) -> None:
        with self._steps.open("a") as file:
            file.write(f"{step}:{os.getpid()}\n")


class FullStore(KeptStore):
    """Its disk is full."""

    def probe(self, bucket: Bucket) -> None:
        """Refuse."""
        raise StoreUnavailable("E_STORE_ENOSPC: No space left on device")
