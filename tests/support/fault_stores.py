"""Stores whose commits stand still: frozen with their process, or until a file says that they may go on."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

from memd.config import StoreSettings
from memd.context import Bucket
from memd.memory.document import Document
from memd.memory.store.json_store import JsonStore
from memd.memory.store.protocol import NO_IDENTITIES, Identities, Loaded
from support import wait_for


class _MarkingStore(JsonStore):
    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self._marker = data_dir / "in-commit"
        self._go = data_dir / "go"

    def commit(
        self,
        bucket: Bucket,
        loaded: Loaded,
        document: Document,
        still_ours: Callable[[], bool],
        taken: Identities = NO_IDENTITIES,
    ) -> Loaded:
        """Commit, but stand still once the claim was found to be ours, with the lock held."""

        def asked() -> bool:
            ours = still_ours()
            self._stand_still()
            return ours

        return super().commit(bucket, loaded, document, asked, taken)

    def _stand_still(self) -> None:
        raise NotImplementedError


class FreezingStore(_MarkingStore):
    """Its process freezes in the first commit there is, and holds no other lock meanwhile."""

    _turn = threading.Lock()

    def commit(
        self,
        bucket: Bucket,
        loaded: Loaded,
        document: Document,
        still_ours: Callable[[], bool],
        taken: Identities = NO_IDENTITIES,
    ) -> Loaded:
        """Commit when it is its turn."""
        with self._turn:
            return super().commit(bucket, loaded, document, still_ours, taken)

    def _stand_still(self) -> None:
        if not self._marker.exists():
            self._marker.touch()
            os.kill(os.getpid(), signal.SIGSTOP)


class HangingStore(_MarkingStore):
    """Every commit hangs until the file `go` is there."""

    def _stand_still(self) -> None:
        self._marker.touch()
        wait_for(self._go.exists, "the test lets commits go on", timeout_s=60)


class WritingDownStore(JsonStore):
    """Writes down each load and commit, and whose it was."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self._steps = data_dir / "steps"

    def load(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """Load."""
        self._write_down("load")
        return super().load(bucket, identities)

    def commit(
        self,
        bucket: Bucket,
        loaded: Loaded,
        document: Document,
        still_ours: Callable[[], bool],
        taken: Identities = NO_IDENTITIES,
    ) -> Loaded:
        """Commit."""
        done = super().commit(bucket, loaded, document, still_ours, taken)
        self._write_down("commit")
        return done

    def _write_down(self, step: str) -> None:
        with self._steps.open("a") as file:
            file.write(f"{step}:{os.getpid()}\n")
