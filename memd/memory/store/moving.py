"""What a store must be able to do so that its content can be moved: copied to another store, or into a backup.

A memory, a session, a tombstone is read whole and written whole, in the bytes that the store of JSON files has,
whatever the store: so what two stores hold is compared byte for byte. Nothing here judges what it carries.

A store is sealed while it is moved. A sealed store is read as ever and refuses every commit, edit and forgetting, each
under the locks that it takes anyway: when `set_seal` has returned, no write is under way, and none follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from memd.context import Bucket, Key
from memd.memory.store.protocol import Access, Tombstone


class Seal(NamedTuple):
    """Why a store takes no writes: it is the source or the target of a copy. `other`: the id of the other store."""

    role: Literal["source", "target"]
    other: str


class MovedMemory(NamedTuple):
    """A document with all that belongs to it."""

    document: bytes
    """As its file has it, the ledger inside."""

    previous: bytes | None
    """The version before, in the same form; None without one."""

    said: bytes
    """The lines of the said layer that the document names."""

    changed_us: int
    """When the document was written, in microseconds since 1970. It is handed on, and makes no difference."""

    def differs(self, other: MovedMemory | None) -> bool:
        """Whether the other one holds anything else."""
        return other is None or self[:-1] != other[:-1]


class MovedCheckpoint(NamedTuple):
    """A checkpoint of a session. `made_us`: microseconds since 1970."""

    id: str
    data: bytes
    made_us: int
    archived: bool


class MovedSession(NamedTuple):
    """A session with all that belongs to it. `saved_us`: microseconds since 1970, by which it leaves one day."""

    state: bytes | None
    """As its file has it; None where only checkpoints are left."""

    lines: bytes
    checkpoints: tuple[MovedCheckpoint, ...]
    """By id."""

    saved_us: int


class Moving(Protocol):
    """The content of a store, piece by piece. Every method raises StoreUnavailable.

    A bucket without a user and without a project is the memory of a store that all users share.
    """

    def buckets(self) -> Iterator[Bucket]:
        """Everything that has a document or a session, each once."""
        ...

    def threads(self, bucket: Bucket) -> list[str]:
        """The threads of a bucket that have a session, or checkpoints."""
        ...

    def memory(self, bucket: Bucket) -> MovedMemory | None:
        """The document of a bucket, read in one piece; None without one.

        Raises DocumentDamaged and DocumentTooNew, as nobody could say what such bytes are in another store.
        """
        ...

    def session(self, key: Key) -> MovedSession | None:
        """The session of a key, read in one piece; None without one. Raises DocumentDamaged."""
        ...

    def put_memory(self, bucket: Bucket, memory: MovedMemory | None) -> None:
        """Make this the document of the bucket, also of a sealed store; None removes whatever is left."""
        ...

    def put_session(self, key: Key, session: MovedSession | None) -> None:
        """Make this the session of the key, also of a sealed store; None removes it."""
        ...

    def put_tombstone(self, owner: str, tombstone: Tombstone | None) -> None:
        """Make this the tombstone of the user with this hash, also of a sealed store; None: nothing was forgotten."""
        ...

    def put_notes(self, bucket: Bucket, accesses: Mapping[str, Access]) -> None:
        """Make these the reading notes of the bucket, also of a sealed store."""
        ...

    def seal(self) -> Seal | None:
        """The seal of the store; None without one."""
        ...

    def set_seal(self, seal: Seal | None) -> None:
        """Seal the store, or take its seal off. Waits for the writes that are under way."""
        ...


@runtime_checkable
class MovableStore(Protocol):
    """A store whose content can be moved."""

    @property
    def moving(self) -> Moving:
        """Its content."""
        ...
