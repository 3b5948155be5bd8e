"""Sessions in a store: what `Store.sessions` must be able to do, and the values it takes and returns.

A session is one JSON object, its state, which a save replaces whole; lines that only grow, what left the window and is
not in the said layer; and checkpoints. It belongs to the bucket of its key: a forgetting takes it with the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from memd.context import Bucket, Key

State = dict[str, Any]
"""The state of a session or of a checkpoint: JSON values. The fields `revision` and `lines` are the store's own."""

MAX_STATE_BYTES = 16 * 1024 * 1024
"""The largest state. A window of the default size takes a hundredth of it; images in the window take more."""

MAX_LINES_BYTES = 16 * 1024 * 1024
"""What the lines of a session may take. Beyond it the oldest quarter goes."""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """A session as it was read, and what the next save compares. `state`: None when there is none."""

    state: State | None
    content_hash: str | None
    generation: int
    """How often the user's tombstone had grown."""

    @property
    def revision(self) -> int:
        """How often the session was saved; 0 for one that was never saved, or that another system has written."""
        found = self.state.get("revision") if self.state else 0
        return found if type(found) is int and found >= 0 else 0


class SessionEntry(NamedTuple):
    """A stored session in a list: its thread, when it was saved last (ISO 8601), its revision, and its bytes in all."""

    thread_id: str
    saved_at: str
    revision: int
    bytes: int


class CheckpointEntry(NamedTuple):
    """A checkpoint in a list, and when it was made (ISO 8601)."""

    id: str
    at: str


class Sessions(Protocol):
    """The sessions of a store. Safe to use from many threads and processes. Every method raises StoreUnavailable."""

    def load(self, key: Key) -> StoredSession:
        """The session of a key. A file that is none is set aside, and the session counts as new.

        Raises DocumentTooNew for one that a newer version wrote.
        """
        ...

    def save(self, key: Key, loaded: StoredSession, state: State, lines: Sequence[bytes] = ()) -> StoredSession:
        """Replace what was loaded, durably and all at once, and add these lines (each without a line break).

        Raises SessionChanged when somebody else has saved it since, SessionForgotten when a forgetting took it, and
        Rejected for a state over MAX_STATE_BYTES. Each time nothing has changed.
        """
        ...

    def lines(self, key: Key, loaded: StoredSession) -> Iterator[bytes]:
        """The lines of the session, oldest first."""
        ...

    def entries(self, bucket: Bucket) -> list[SessionEntry]:
        """The sessions of a bucket, the one saved last first."""
        ...

    def remove(self, key: Key) -> bool:
        """Remove a session with its lines and checkpoints; whether there was one."""
        ...

    def put_checkpoint(self, key: Key, loaded: StoredSession, checkpoint_id: str, state: State) -> None:
        """Write a checkpoint durably. Raises SessionForgotten, and Rejected as `save`."""
        ...

    def checkpoints(self, key: Key) -> list[CheckpointEntry]:
        """The checkpoints of a session, oldest first, without those in the archive."""
        ...

    def checkpoint(self, key: Key, checkpoint_id: str) -> State | None:
        """The state of a checkpoint, also of one in the archive; None when there is none."""
        ...

    def archive(self, key: Key, checkpoint_ids: Sequence[str]) -> int:
        """Move checkpoints to the archive, from which they leave with time; returns how many were moved."""
        ...

    def expire(self, bucket: Bucket, before: datetime) -> int:
        """Remove sessions not saved since, and archived checkpoints older than that; returns how many."""
        ...
