"""What a store must be able to do, and the values it takes and returns. `store.class` names a class that does it.

A store keeps one document for each bucket (a project has one, too) with the version before it, its ledger and its said
layer; the sessions of each bucket, with what left their windows and their checkpoints; the tombstones of forgotten
users; the reading notes of each bucket; a random id of its own, and a secret key for hashes. Nothing outside this
package knows where or how. memd ships a store of JSON files, and one in PostgreSQL.

Two locks make a commit safe against everybody else, on any machine:

* the bucket's, exclusive: of two writers of one document the second finds that it has changed;
* the owner's (one for each user), shared by all commits of the user's documents and taken before the bucket's. A
  tombstone grows only under the exclusive one. So either the tombstone is there when a commit looks at its generation,
  or the document is there when the forgetting erases: nothing is written between the two. A commit that writes a
  member's words into a project's document holds the member's as well.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from memd.context import Bucket, is_single, loose
from memd.memory.document import Document
from memd.memory.ledger import Ledger
from memd.memory.said.changes import SaidChange
from memd.memory.said.turns import Said
from memd.memory.store.sessions import Sessions

Identities = Mapping[str, Sequence[str]]
"""Identities of messages, by thread id."""

NO_IDENTITIES: Identities = MappingProxyType({})

HALF_LIFE_S = 30 * 86_400.0
"""Seconds in which the heat of a fact falls to half."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A document as it was read, and what the commit compares. `document` is never changed in place."""

    document: Document
    revision: int

    content_hash: str | None
    """SHA-256 of the stored bytes; None when the bucket has no document yet."""

    known: frozenset[str] = frozenset()
    """Those of the identities asked for that the bucket has taken in already."""

    tombstone: Tombstone | None = None
    """The user's tombstone, read before the document."""

    @property
    def generation(self) -> int:
        """How often the user's tombstone had grown; 0 without one."""
        return self.tombstone.generation if self.tombstone else 0


class Speaker(NamedTuple):
    """A member whose words a commit adds to a project, and how often their tombstone had grown when they were read."""

    user_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased, or would be: documents, files in all, and the identities that their ledgers held."""

    documents: int = 0
    files: int = 0
    identities: frozenset[str] = frozenset()


class Cut(NamedTuple):
    """The moment of a wish: what the inbox accepted up to it is forgotten, what it accepts later is not.

    `ms`: by the server's clock, or the host's when the server was out of reach. `order`: of the last message that the
    inbox had accepted; None when it was out of reach.
    """

    ms: int
    order: int | None = None


@dataclass(frozen=True, slots=True)
class Wish:
    """A forgetting: of one agent's memory of a user, or of all that is known of them (None).

    `cut`: when it was made; None in what older versions wrote, and then it takes everything.
    """

    user_id: str
    agent_name: str | None = None
    cut: Cut | None = None

    def is_about(self, other: Wish) -> bool:
        """Whether both are to forget the same."""
        return (self.user_id, self.agent_name) == (other.user_id, other.agent_name)

    @property
    def bucket(self) -> Bucket | None:
        """The one bucket that is meant; None for all."""
        return None if self.agent_name is None else Bucket(self.user_id, self.agent_name)


class Wished(NamedTuple):
    """A wish that was made once, whether fulfilled or not, without the ids that it names.

    `scope`: the hash of the bucket that it was about, "" for all of the user. `at_ms`: its moment, as of its cut.
    `generation`: of the tombstone that recorded it.
    """

    scope: str
    at_ms: int
    generation: int


MOST_WISHED = 100
"""Wishes that a tombstone lists, the last ones."""


class Salted(NamedTuple):
    """Hashes of forgotten messages, and the salt that is in them."""

    salt: str
    hashes: frozenset[str]


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What was forgotten of one user. `generation` grows with each change; `open`: the wishes not yet fulfilled."""

    owner: str
    generation: int
    salt: str
    hashes: frozenset[str]
    open: tuple[Wish, ...] = ()
    emptied: frozenset[Wish] = frozenset()
    """The open wishes that the inbox has fulfilled."""

    erased: frozenset[Wish] = frozenset()
    """The open wishes whose documents are erased: what is stored of the user by now was written later."""

    older: tuple[Salted, ...] = ()
    """Hashes of further tombstones of the user, which other versions or other copies of the store have written."""

    wished: tuple[Wished, ...] = ()
    """The wishes so far. One that a backup does not list is younger than the backup."""

    def holds(self, bucket: Bucket, identity: str) -> bool:
        """Whether this message of the user was forgotten, for this bucket or for all."""
        names = (identity, loose(identity)) if is_single(identity) else (identity,)
        return any(
            _hash(salt, scope, name) in hashes
            for salt, hashes in ((self.salt, self.hashes), *self.older)
            for scope in ("", bucket.hash)
            for name in names
        )

    def grown(self, wish: Wish, identities: Iterable[str], *, begins: bool) -> Tombstone:
        """The tombstone with more identities, and with the wish if it `begins`; itself where that adds nothing."""
        hashes = self.hashes | self.hashed(identities, wish.bucket)
        if hashes == self.hashes and not begins:
            return self
        generation = self.generation + 1
        scope, at_ms = wish.bucket.hash if wish.bucket else "", wish.cut.ms if wish.cut else 0
        wished = (*self.wished, Wished(scope, at_ms, generation))[-MOST_WISHED:] if begins else self.wished
        return replace(self, hashes=hashes, generation=generation, wished=wished)

    def hashed(self, identities: Iterable[str], bucket: Bucket | None) -> set[str]:
        """The hashes of these identities, for one bucket or for all of the user's (None)."""
        scope = bucket.hash if bucket else ""
        names = {name for one in identities for name in ((one, loose(one)) if one.startswith("n") else (one,))}
        return {_hash(self.salt, scope, name) for name in names}


def _hash(salt: str, scope: str, name: str) -> str:
    # SHA-1, as the server's functions know no other; without the salt there is nothing to compare a guess with.
    return hashlib.sha1(f"{salt}:{scope}:{name}".encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Access:
    """How a fact was found so far: last time (Unix seconds), number of times, and its heat at the last one."""

    last: float
    count: int
    heat: float

    def at(self, now: float) -> float:
        """The heat now: each access counts 1 when it happens, and half of that after each half-life."""
        return self.heat * math.pow(0.5, max(0.0, now - self.last) / HALF_LIFE_S)

    def again(self, now: float) -> Access:
        """After one more access."""
        return Access(max(now, self.last), self.count + 1, self.at(now) + 1.0)


@dataclass(frozen=True, slots=True)
class Accesses:
    """The accesses of one memory's facts, by fact id, as of `now` (Unix seconds)."""

    by_fact: Mapping[str, Access]
    now: float

    def heat(self, fact_id: str) -> float:
        """The heat of a fact: 0 when it was never found, 1 when just now for the first time, 0.5 when 30 days ago."""
        access = self.by_fact.get(fact_id)
        return access.at(self.now) if access else 0.0


NO_ACCESSES = Accesses(MappingProxyType({}), 0.0)
"""The accesses of a memory without reading notes."""


class Tombstones(Protocol):
    """The tombstones of a store: salted hashes of what was forgotten, kept when documents and inbox are gone.

    Every method raises StoreUnavailable, and DocumentDamaged for a tombstone that cannot be read: that stops its
    user's contexts and never lets them through. Writes are durable.
    """

    def find(self, user_id: str) -> Tombstone | None:
        """The tombstone of a user; None when nothing was ever forgotten."""
        ...

    def begin(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Write the wish and these identities down, before anything is removed. Waits for running commits to end.

        It takes the place of an open wish about the same. When it raises, the wish may be written down all the same,
        and a worker fulfils it.
        """
        ...

    def extend(self, wish: Wish, identities: Iterable[str]) -> Tombstone:
        """Add identities found while forgetting. Waits for running commits to end."""
        ...

    def note(self, wish: Wish, done: Literal["emptied", "erased"]) -> None:
        """The inbox is emptied, or the documents are erased, for this open wish. Nothing when it is not open."""
        ...

    def close(self, wish: Wish) -> None:
        """The wish is fulfilled; a later one about the same stays open."""
        ...

    def unfinished(self) -> list[Wish]:
        """The wishes of all users that are not yet fulfilled."""
        ...

    def owners(self) -> list[str]:
        """The hashes (`user_hash`) of all users with a tombstone."""
        ...

    def of(self, owner: str) -> Tombstone | None:
        """The tombstone of the user with this hash."""
        ...


class ReadingNotes(Protocol):
    """How often and how lately each fact was found. A hint for eviction: it may be lost, and is never a promise."""

    def note(self, bucket: Bucket, fact_ids: Iterable[str], now: float) -> bool:
        """Note that these facts were found at `now` (Unix seconds); False when the store refuses. Raises nothing."""
        ...

    def read(self, bucket: Bucket, now: float, fact_ids: Collection[str] | None = None) -> Accesses:
        """The accesses of a memory's facts; none when the notes cannot be read. Raises nothing.

        `fact_ids`: of these at least; None: of all.
        """
        ...

    def forget(self, user_id: str, agent_name: str | None) -> None:
        """Remove the notes of one agent's memory of the user, or of all of them (None). Raises StoreUnavailable."""
        ...


@runtime_checkable
class Store(Protocol):
    """Keeps one document for each bucket, and the tombstones and reading notes. Safe to use from many threads."""

    @property
    def tombstones(self) -> Tombstones:
        """The tombstones of all users."""
        ...

    @property
    def reading_notes(self) -> ReadingNotes:
        """The reading notes of all memories."""
        ...

    @property
    def sessions(self) -> Sessions:
        """The sessions of all users."""
        ...

    def load(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """The bucket's document (an empty one when there is none), the known ones of `identities`, and the tombstone.

        A store may keep the identities outside the document, whose `ledger` is empty then: `known` decides.
        Raises StoreUnavailable, DocumentTooNew, DocumentDamaged.
        """
        ...

    def peek(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """The document for a reader: like `load`, but a damaged one is left alone; its last good version is returned.

        Without the tombstone. Raises DocumentTooNew, StoreUnavailable.
        """
        ...

    def inspect(self, bucket: Bucket) -> None:
        """Read the document and change nothing, not even a document that is damaged.

        Raises DocumentDamaged with the place of what is wrong, DocumentTooNew, StoreUnavailable.
        """
        ...

    def read_ledger(self, bucket: Bucket, document: Document) -> Ledger:
        """The whole ledger that belongs to a document as loaded: identities by thread. For exports, as it may be large.

        It may be that of a newer document. Raises StoreUnavailable.
        """
        ...

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
        """Replace what was loaded by `document`, durably and all at once.

        `said`: a change of the said layer, which becomes visible in the same step; None leaves the layer as it is. The
        document's `said` field is the store's own: the caller hands it on as it was loaded.
        `taken`: the identities that this takes in, recorded in the same step. The document's `ledger` has them too; a
        store that keeps them elsewhere leaves the ledger out of what it writes.
        `still_ours` is called while both locks are held, or right before the transaction that takes them: whatever
        another writer commits in between is a Conflict.
        Raises ClaimLost when `still_ours` is false, or when anything of the `speaker` was forgotten since; Conflict
        when the stored document is not `loaded` any more, or when anything of the user was forgotten since;
        StoreUnavailable. Each time nothing has changed, except that a store may be unable to tell (StoreUnavailable):
        the next `load` tells.
        """
        ...

    def read_said(self, bucket: Bucket, document: Document, last_bytes: int | None = None) -> Said:
        """The said layer that belongs to a document as loaded; an empty one when it has none.

        `last_bytes`: only what stands whole in so many bytes at its end, which is all that is read; None: all of it.
        Where a commit has replaced the layer since, it may be that of the newer document. Raises StoreUnavailable.
        """
        ...

    def sync(self, bucket: Bucket) -> None:
        """Make sure that what `load` returns survives a power cut, whoever wrote it. Raises StoreUnavailable."""
        ...

    def probe(self, bucket: Bucket) -> None:
        """Write something durably where the bucket's document is kept, and leave nothing. Raises StoreUnavailable.

        Called before a model is asked when a write has failed: a reply that cannot be stored costs tokens for nothing.
        """
        ...

    def marks(self, buckets: Sequence[Bucket]) -> list[Hashable]:
        """For each bucket a cheap value that changes whenever the stored document does; None without a document.

        They are asked for together, once for each read. Raises StoreUnavailable.
        """
        ...

    def sweep(self) -> int:
        """Remove what crashes left behind; returns how many pieces. Called when a worker starts.

        Raises StoreUnavailable.
        """
        ...

    def agents(self, user_id: str) -> list[str]:
        """The agents that have a memory of this user, sorted; the user's own memory is not one of them."""
        ...

    def users(self) -> Iterator[str]:
        """The users that have a memory, in no order."""
        ...

    def projects(self) -> Iterator[str]:
        """The projects that have a document, or a grave, in no order. Raises StoreUnavailable."""
        ...

    def changed_ns(self, user_id: str) -> int:
        """When a document of this user last changed, in nanoseconds since 1970; 0 without any.

        Raises StoreUnavailable.
        """
        ...

    def changes(self) -> Mapping[str, int]:
        """All users with `changed_ns`, which may lag behind what other programs wrote. Raises StoreUnavailable."""
        ...

    def fact_count(self, bucket: Bucket) -> int | None:
        """How many facts the document has, at little cost; None for a damaged one. Raises StoreUnavailable."""
        ...

    def erase(
        self,
        user_id: str,
        agent_name: str | None,
        *,
        dry_run: bool = False,
        still_wanted: Callable[[], bool] = lambda: True,
    ) -> Erased:
        """Remove an agent's memory of a user, or all documents of the user (None), old versions and temps included.

        `still_wanted` is called while no document of the user can be written; nothing is erased when it is false.
        Their sessions go as well, and their identities count as those of a ledger. Idempotent. Of a shared store only
        the sessions go, as nobody knows whose a fact is. Raises StoreUnavailable.
        """
        ...

    def read_id(self) -> str | None:
        """The random id of this store; None when it has none yet. Raises StoreUnavailable."""
        ...

    def make_id(self) -> str:
        """The id of this store, made durably when it has none yet. Raises StoreUnavailable."""
        ...

    def pseudonym(self, plain: str) -> str:
        """The name in log lines for a user, bucket or key, given the plain hash that the inbox uses.

        It is a hash with a secret key, which the store makes once and keeps, and which no other account can read.
        Empty while the key cannot be read. Raises nothing.
        """
        ...

    def close(self) -> None:
        """Close what is open, such as connections; the store opens it again when it is used. For a process that forks.

        Raises nothing.
        """
        ...


class Entry(NamedTuple):
    """A file or folder of a store. `leftover`: a temp file that a crash left, or a damaged document set aside."""

    path: Path
    stat: os.stat_result
    leftover: Literal["", "temp", "damaged"]


@runtime_checkable
class FileStore(Protocol):
    """A store of files: its marks wait for nothing, and its commits may leave something behind when they are killed."""

    def sweep_said(self, bucket: Bucket) -> int:
        """Remove what killed commits left of the said layer; returns how many files. Raises StoreUnavailable."""
        ...

    def entries(self) -> Iterator[Entry]:
        """The files and folders of the store, in no order. Raises OSError."""
        ...
