"""Parts that may die at any step: a store with its tombstones, and a client. Only forked children choose a step."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import redis

from memd.config import StoreSettings
from memd.context import Bucket
from memd.memory.store.protocol import Erased, Tombstone, Wish
from memd.memory.store.tombstone import TombstoneFiles
from support.fault_stores import HookedStore


class Steps:
    """How many steps this process still makes before it kills itself; negative: it never does."""

    left = -1


def step() -> None:
    """One step of a forgetting or a drain; at the chosen one the process dies."""
    if Steps.left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    Steps.left -= Steps.left > 0


class SteppingClient(redis.Redis):
    """A client that may die before and after each command."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute it, between two steps."""
        step()
        reply = super().execute_command(*args, **options)  # type: ignore[no-untyped-call]  # redis-py's gap
        step()
        return reply


class SteppingTombstones(TombstoneFiles):
    """Tombstones whose writer may die before and after each file."""

    def _write_open(self, tombstone: Tombstone) -> None:
        step()
        super()._write_open(tombstone)
        step()

    def _grow(self, wish: Wish, identities: Any, *, begins: bool) -> Tombstone:
        grown = super()._grow(wish, identities, begins=begins)
        step()
        return grown


class SteppingStore(HookedStore):
    """A store whose writer may die around each commit and each erasing."""

    def __init__(self, data_dir: Path, settings: StoreSettings) -> None:
        super().__init__(data_dir, settings)
        self.tombstones = SteppingTombstones(data_dir)

    def within_commit(self, bucket: Bucket) -> None:
        """Maybe die before the write."""
        step()

    @contextmanager
    def around_commit(self, bucket: Bucket) -> Iterator[None]:
        """Maybe die after the write."""
        yield
        step()

    def erase(self, user_id: str, agent_name: str | None, **options: Any) -> Erased:
        """Erase, between two steps."""
        step()
        erased = super().erase(user_id, agent_name, **options)
        step()
        return erased
