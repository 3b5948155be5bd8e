"""What a store must be able to do. JSON files are the one that memd ships; others are named in `store.class`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memd.context import Bucket
from memd.memory.document import Document


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document as it was read. `file_hash` is None when there is none yet; `document` is never changed in place."""

    document: Document
    revision: int
    file_hash: str | None


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, or would be: documents, files in all, and the identities that their ledgers held."""

    documents: int = 0
    files: int = 0
    identities: frozenset[str] = frozenset()


@runtime_checkable
class Store(Protocol):
    """Keeps one document for each bucket. Safe to use from many threads."""

    def load(self, bucket: Bucket) -> Loaded:
        """The bucket's document, an empty one when there is none.

        Raises StoreUnavailable, DocumentTooNew, DocumentDamaged.
        """
        ...

    def commit(self, bucket: Bucket, loaded: Loaded, document: Document, still_ours: Callable[[], bool]) -> Loaded:
        """Replace what was loaded, durably and all at once.

        `still_ours` is asked under the lock, right before the write. Raises ClaimLost when it says no, Conflict when
        the stored document is not `loaded` any more, StoreUnavailable; each time nothing has changed.
        """
        ...

    def sync(self, bucket: Bucket) -> None:
        """Make sure that what `load` answers survives a power cut, whoever wrote it. Raises StoreUnavailable."""
        ...

    def mark(self, bucket: Bucket) -> Hashable:
        """A cheap value that changes whenever the stored document does. Raises StoreUnavailable."""
        ...

    def sweep(self) -> int:
        """Remove what crashes left behind; how many pieces. Called when a worker starts. Raises StoreUnavailable."""
        ...

    def agents(self, user_id: str) -> list[str]:
        """The agents that have a memory of this user, sorted; the user's own memory is not one of them."""
        ...

    def users(self) -> Iterator[str]:
        """The users that have a memory, in no order."""
        ...

    def erase(self, user_id: str, agent_name: str | None, *, dry_run: bool = False) -> Erased:
        """Remove an agent's memory of a user, or all that there is of them (None), old versions and temps included.

        Idempotent. A shared store erases nothing, as nobody knows whose a fact is. Raises StoreUnavailable.
        """
        ...


@runtime_checkable
class Inspected(Protocol):
    """A store whose documents people may change with an editor, so that they can be wrong."""

    def inspect(self, bucket: Bucket) -> None:
        """Read the document and change nothing, not even one that is damaged.

        Raises DocumentDamaged with the place of what is wrong, DocumentTooNew, StoreUnavailable.
        """
        ...
