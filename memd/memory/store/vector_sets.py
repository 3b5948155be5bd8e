"""Vectors of facts, as every store keeps them: by fact and content, so that none outlives what it was made of.

A vector is made after the commit of its fact. It is written only while the very fact is there, under the same locks as
a commit, and leaves in the step that removes or changes the fact. A vector that is missing is made up for later.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from memd.context import Bucket
from memd.errors import ConfigError
from memd.memory.document import Document, Fact
from memd.memory.facts import content_of, id_of
from memd.memory.scoped import all_facts
from memd.memory.store.protocol import Loaded, Store

KEY_BYTES = 16
NUMBER_BYTES = 2
"""Vectors have length 1 and are kept as half-precision floats, little-endian: cosines change by less than 0.001."""


def vector_key(fact: Fact) -> bytes:
    """The name of a fact's vector: a hash of its id and its content."""
    name = id_of(fact).encode(errors="surrogatepass")
    content = content_of(fact).encode(errors="surrogatepass")
    return hashlib.sha256(len(name).to_bytes(4, "little") + name + content).digest()[:KEY_BYTES]


def embeddable(document: Document) -> dict[bytes, str]:
    """The facts that get a vector, oldest first: the content of each by the name of its vector.

    Those that a search can find: neither doubtful nor archived ones.
    """
    return {vector_key(fact): content for fact in all_facts(document) if (content := content_of(fact))}


def gone(before: Document, after: Document) -> list[bytes]:
    """The names of the vectors whose facts a commit removes or changes."""
    stays = {(id_of(fact), content_of(fact)) for fact in all_facts(after)}
    return [vector_key(fact) for fact in all_facts(before) if (id_of(fact), content_of(fact)) not in stays]


class VectorSet(NamedTuple):
    """Vectors of one embedder. `records`: for each its name and its numbers, one after the other."""

    embedder: bytes
    dimensions: int
    records: bytes = b""

    @classmethod
    def of(cls, embedder: bytes, dimensions: int, vectors: Iterable[tuple[bytes, bytes]]) -> VectorSet:
        """A set of these vectors, each with its name."""
        return cls(embedder, dimensions, b"".join(name + numbers for name, numbers in vectors))

    @property
    def record_bytes(self) -> int:
        """The bytes of one record."""
        return KEY_BYTES + NUMBER_BYTES * self.dimensions

    @property
    def is_whole(self) -> bool:
        """Whether it consists of whole records."""
        return self.dimensions > 0 and len(self.records) % self.record_bytes == 0

    @property
    def size(self) -> int:
        """How many vectors there are."""
        return len(self.records) // self.record_bytes

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """The name and the numbers of each vector."""
        for start in range(0, len(self.records), self.record_bytes):
            yield self.records[start : start + KEY_BYTES], self.records[start + KEY_BYTES : start + self.record_bytes]

    def names(self) -> frozenset[bytes]:
        """The names of the vectors."""
        places = range(0, len(self.records), self.record_bytes)
        return frozenset(self.records[start : start + KEY_BYTES] for start in places)

    def only(self, names: Collection[bytes]) -> VectorSet:
        """The vectors of these names."""
        return VectorSet.of(self.embedder, self.dimensions, (item for item in self.items() if item[0] in names))

    def is_like(self, other: VectorSet) -> bool:
        """Whether the vectors of both may be compared."""
        return (self.embedder, self.dimensions) == (other.embedder, other.dimensions)


class Cosines(NamedTuple):
    """How near vectors are to another one. `names`: of the vectors, one after the other."""

    names: bytes = b""
    values: Sequence[float] = ()


Compare = Callable[[Sequence[Bucket], bytes, bytes], Cosines]
"""Given buckets, an embedder's name and a vector of it: the cosine of each vector of these memories that this embedder
has made. Raises StoreUnavailable."""


class VectorStore(Protocol):
    """The vectors of a store. Every method raises StoreUnavailable."""

    def marks(self, buckets: Sequence[Bucket]) -> list[Hashable]:
        """For each bucket a cheap value that changes whenever vectors are written; None without any."""
        ...

    def read(self, bucket: Bucket) -> VectorSet | None:
        """The vectors of a memory; None without any, or where they do not fit its document."""
        ...

    def held(self, bucket: Bucket, embedder: bytes) -> frozenset[bytes]:
        """The names of the vectors that this embedder has made."""
        ...

    def comparing(self) -> Compare | None:
        """How the store compares vectors where they lie; None for one that leaves it to the reader."""
        ...

    def write(self, bucket: Bucket, loaded: Loaded, vectors: VectorSet) -> int:
        """Add vectors of facts that are still there, and remove all of other facts and other embedders.

        `loaded`: the document that they were made of. Returns how many were added. Raises Conflict when anything of the
        user was forgotten since; DocumentDamaged.
        """
        ...


@runtime_checkable
class KeepsVectors(Protocol):
    """A store that keeps vectors; one of your own need not."""

    @property
    def vectors(self) -> VectorStore:
        """The vectors of all memories."""
        ...


def vectors_of(store: Store) -> VectorStore:
    """The vectors of a store. Raises ConfigError for a store that keeps none."""
    if not isinstance(store, KeepsVectors):
        raise ConfigError("setting vectors.url: the store that store.class names keeps no vectors")
    return store.vectors
