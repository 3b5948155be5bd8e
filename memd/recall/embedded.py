"""Makes the vectors of facts: those that are missing, or that another embedder has made. Each call may be repeated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket, of_project
from memd.errors import EmbedderFailed, EmbedderRefused
from memd.memory.store.protocol import Loaded, Store
from memd.memory.store.vector_sets import VectorSet, embeddable, vectors_of
from memd.recall.embedding import Embedding

HARMLESS = "memd"
"""A text that no embedder refuses whose settings are right."""

AT_ONCE = 512
"""Vectors that are written together at least, where there are as many: each write replaces a whole file."""

AGAIN_S = 1.0
"""Seconds before a batch is asked for again; doubled with each further time."""


@dataclass(frozen=True, slots=True)
class VectorCounts:
    """The vectors of a memory: of how many facts there are any, and how many are missing."""

    facts: int
    missing: int


@dataclass(frozen=True, slots=True)
class Made:
    """What was made: vectors written, and facts whose text the embedder refuses by itself."""

    written: int = 0
    refused: int = 0
    left: int = 0
    """Facts without a vector that were not tried."""


class Embedded:
    """Makes vectors for the memories of a store. Blocks. Raises ConfigError without `vectors.url`."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._store = store
        self._vectors = vectors_of(store)
        self._batch = settings.vectors.batch
        self._embedding = Embedding(settings.vectors)
        self.name = self._embedding.name
        """Names the embedder, as its vectors do."""

    @property
    def compared_by(self) -> str:
        """Who compares vectors: `pgvector` in the database, else `memd`. Raises StoreUnavailable."""
        return "memd" if self._vectors.comparing() is None else "pgvector"

    def look(self, bucket: Bucket) -> VectorCounts:
        """How many vectors a memory has. Raises StoreUnavailable, DocumentTooNew."""
        facts = embeddable(self._store.peek(bucket).document)
        held = self._vectors.held(bucket, self.name)
        return VectorCounts(len(facts), len(facts.keys() - held))

    def make(
        self,
        bucket: Bucket,
        *,
        most: int | None = None,
        tries: int = 1,
        anew: bool = False,
        wait: Callable[[float], object] = time.sleep,
    ) -> Made:
        """Make the vectors that are missing, the newest facts first, and remove those of facts that are gone.

        `most`: batches at most. `tries`: how often a batch is asked for. `anew`: also those that are there.
        What was written before a failure stays. Raises EmbedderFailed, StoreUnavailable, DocumentDamaged, Conflict.
        """
        loaded = self._store.load(bucket)
        if loaded.tombstone is not None and loaded.tombstone.open:  # a worker erases it
            return Made()
        facts = embeddable(loaded.document)
        held = self._vectors.held(bucket, self.name)
        missing = [name for name in reversed(facts) if anew or name not in held]
        if held - facts.keys():
            self._sweep(bucket, loaded)
        batches = [missing[start : start + self._batch] for start in range(0, len(missing), self._batch)]
        chosen = batches[:most]
        waiting: list[tuple[bytes, bytes]] = []
        written = refused = 0
        try:
            for names in chosen:
                vectors = list(self._asked(names, facts, tries, wait))
                refused += len(names) - len(vectors)
                if len(waiting) >= AT_ONCE or (waiting and vectors and len(waiting[0][1]) != len(vectors[0][1])):
                    written += self._write(bucket, loaded, waiting)
                    waiting = []
                waiting += vectors
        finally:
            written += self._write(bucket, loaded, waiting)
        return Made(written, refused, len(missing) - sum(map(len, chosen)))

    def _sweep(self, bucket: Bucket, loaded: Loaded) -> None:
        """Remove vectors of facts that are gone: a document was changed by an editor, or restored."""
        found = self._vectors.read(bucket)
        if found is not None:
            self._vectors.write(bucket, loaded, found._replace(records=b""))

    def _write(self, bucket: Bucket, loaded: Loaded, vectors: Sequence[tuple[bytes, bytes]]) -> int:
        if not vectors:
            return 0
        dimensions = len(vectors[0][1]) // 2
        return self._vectors.write(bucket, loaded, VectorSet.of(self.name, dimensions, vectors))

    def _asked(
        self, names: Sequence[bytes], facts: dict[bytes, str], tries: int, wait: Callable[[float], object]
    ) -> Iterator[tuple[bytes, bytes]]:
        """The vectors of these facts. Of texts that are refused together each half is tried by itself."""
        for left in range(tries - 1, -1, -1):
            try:
                vectors = self._embedding.of_texts([facts[name] for name in names], again=left < tries - 1)
            except EmbedderRefused:
                self._embedding.of_texts([HARMLESS])  # refused as well, it is not the texts
                if len(names) > 1:
                    middle = len(names) // 2
                    yield from self._asked(names[:middle], facts, tries, wait)
                    yield from self._asked(names[middle:], facts, tries, wait)
                return
            except EmbedderFailed:
                if not left:
                    raise
                wait(AGAIN_S * 2 ** (tries - 1 - left))
            else:
                yield from zip(names, vectors, strict=True)
                return


def buckets_of(store: Store, user_id: str | None = None, *, shared: bool = False) -> Iterator[Bucket]:
    """The buckets of one user, or all buckets of a store, the projects' included. `shared`: the store has no users.

    Raises StoreUnavailable.
    """
    every = iter(("",)) if shared else store.users()
    for user in every if user_id is None else (user_id,):
        for agent in (DEFAULT_AGENT, *store.agents(user)):
            yield Bucket(user, agent)
    if user_id is None:
        yield from map(of_project, store.projects())
