"""Nearness: how near the stored vectors of a memory's facts are to a query's. Exact: every fact is compared, by the
store where it can (pgvector), else here.

While the words are searched, embedder and store work. Where the embedder fails or is late, the search goes by words
alone and says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from memd.config import Settings
from memd.context import Bucket
from memd.errors import EmbedderFailed
from memd.memory.document import Fact
from memd.memory.store.protocol import Store
from memd.memory.store.vector_sets import KEY_BYTES, Cosines, VectorSet, vector_key, vectors_of
from memd.recall.embedding import Embedding
from memd.recall.ranking import FLOOR
from memd.recall.vectors import load_numpy

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

NO_VECTORS = "E_VECTORS_NONE: no fact of this memory has a vector yet; `memd vectors rebuild` makes them"
OTHER_VECTORS = "E_VECTORS_OTHER: the vectors are another embedder's; `memd vectors rebuild` makes them anew"

NAME_COST = 180
"""Bytes of a name and its places."""


@dataclass(frozen=True, slots=True)
class Aligned:
    """The vectors of a memory's facts: `places` has the place of each fact in `facts`, by the name of its vector.

    Where the store leaves the comparing to us, `matrix` has the vectors, in the order of `places`, and `marks` those of
    the stored ones. `reason`: why there are none.
    """

    facts: Sequence[Fact]
    places: Mapping[bytes, int]
    marks: Sequence[Hashable] = ()
    matrix: NDArray[numpy.float32] | None = None
    reason: str = ""
    orders: dict[bytes, Sequence[int]] = field(default_factory=dict, compare=False)
    """By names in a row, as the store gave them last: their places, -1 for facts that are not here."""

    def places_of(self, names: bytes) -> Sequence[int]:
        """The places of the facts whose vectors have these names, which come one after the other."""
        found = self.orders.get(names)
        if found is None:
            starts = range(0, len(names), KEY_BYTES)
            found = [self.places.get(names[start : start + KEY_BYTES], -1) for start in starts]
            self.orders.clear()  # the store keeps an order until it writes
            self.orders[names] = found
        return found

    @property
    def bytes_taken(self) -> int:
        """The bytes that it takes, by estimate."""
        return NAME_COST * len(self.places) + (int(self.matrix.nbytes) if self.matrix is not None else 0)


@dataclass(frozen=True, slots=True)
class AskedVector:
    """A query under way: its vector, and what the store finds where it compares."""

    vector: Future[bytes]
    found: Future[Cosines] | None = None


class Comparison:
    """A comparison under way, which is waited for at its first use. Its use raises as `Nearness.cosines`."""

    def __init__(self, wait: Callable[[], tuple[dict[int, float], str]]) -> None:
        self._wait = wait

    def cosines(self) -> dict[int, float]:
        """The cosine of each fact that has a vector to the query, by its place; empty if there are none."""
        return self._done[0]

    def words_only(self) -> str:
        """Why there are none; else empty."""
        return self._done[1]

    @cached_property
    def _done(self) -> tuple[dict[int, float], str]:
        return self._wait()


class Nearness:
    """Compares queries with stored vectors. Raises ConfigError without the extra `embeddings`."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._numpy = load_numpy("vectors.url")
        self._vectors = vectors_of(store)
        self._embedding = Embedding(settings.vectors)
        self._shift = FLOOR - settings.vectors.min_cosine

    def ask(self, query: str, buckets: Sequence[Bucket]) -> AskedVector:
        """Begin to embed a query, and then to compare it with the vectors of these memories where the store does it.

        Begun before the memory is read, the statement is on its way while this thread waits for the document: once it
        searches the words, another thread of this process hardly gets a turn.
        """
        vector, compare = self._embedding.query(query), self._vectors.comparing()
        if compare is None:
            return AskedVector(vector)
        found: Future[Cosines] = Future()

        def find() -> None:
            try:
                found.set_result(compare(buckets, self._embedding.name, self._embedding.of_query(vector)))
            except BaseException as error:  # noqa: BLE001  (who waits for it gets it)
                found.set_exception(error)

        threading.Thread(target=find, name="cosines", daemon=True).start()
        return AskedVector(vector, found)

    def aligned(self, kept: Aligned | None, buckets: Sequence[Bucket], facts: Sequence[Fact]) -> Aligned:
        """The vectors of these facts, which are in these buckets: `kept` if nothing has changed since.

        Raises StoreUnavailable.
        """
        compares = self._vectors.comparing() is not None
        marks = () if compares else self._vectors.marks(buckets)
        if kept is not None and kept.facts is facts and kept.marks == marks:
            return kept
        places = {vector_key(fact): place for place, fact in enumerate(facts)}
        return Aligned(facts, places) if compares else self._read(facts, places, marks, buckets)

    def cosines(self, asked: AskedVector, aligned: Aligned, buckets: Sequence[Bucket]) -> tuple[dict[int, float], str]:
        """The cosine of each fact that has a vector to the query; or why there is none.

        They are shifted so that `vectors.min_cosine` is the ranking's FLOOR, which changes nothing else.
        Raises StoreUnavailable.
        """
        if not aligned.facts:
            return {}, ""
        if aligned.reason:
            return {}, aligned.reason
        try:
            if aligned.matrix is not None:
                return self._compared(aligned.places, aligned.matrix, self._embedding.of_query(asked.vector))
            found = asked.found.result() if asked.found is not None else Cosines()
        except EmbedderFailed as error:
            return {}, str(error)
        places = aligned.places_of(found.names)
        near = {place: value + self._shift for place, value in zip(places, found.values, strict=True) if place >= 0}
        if near:
            return near, ""
        return {}, OTHER_VECTORS if any(mark is not None for mark in self._vectors.marks(buckets)) else NO_VECTORS

    def _compared(
        self, places: Mapping[bytes, int], matrix: NDArray[numpy.float32], target: bytes
    ) -> tuple[dict[int, float], str]:
        np = self._numpy
        numbers = np.frombuffer(target, dtype="<f2").astype(np.float32)
        if numbers.size != matrix.shape[1]:
            return {}, OTHER_VECTORS
        # Not by `@`: its threads wait for each other where the machine is busy, and one is as fast.
        near: list[float] = (np.einsum("ij,j->i", matrix, numbers) + self._shift).tolist()
        return dict(zip(places.values(), near, strict=True)), ""

    def _read(
        self, facts: Sequence[Fact], places: Mapping[bytes, int], marks: Sequence[Hashable], buckets: Sequence[Bucket]
    ) -> Aligned:
        """The stored vectors of these facts, in a matrix."""
        np = self._numpy
        found = [one for bucket in buckets if (one := self._vectors.read(bucket)) is not None]
        ours = [one for one in found if one.embedder == self._embedding.name and one.is_like(found[-1])]
        rows: dict[bytes, NDArray[numpy.float16]] = {}
        for one in ours:
            rows.update(self._rows(one))
        placed = {name: place for name, place in places.items() if name in rows}
        if not placed:
            return Aligned(facts, {}, marks, reason=OTHER_VECTORS if found and not ours else NO_VECTORS)
        return Aligned(facts, placed, marks, np.array([rows[name] for name in placed], dtype=np.float32))

    def _rows(self, vectors: VectorSet) -> dict[bytes, NDArray[numpy.float16]]:
        """The numbers by the name of the vector."""
        np = self._numpy
        form = np.dtype([("name", f"V{KEY_BYTES}"), ("numbers", "<f2", (vectors.dimensions,))])
        records = np.frombuffer(vectors.records, dtype=form)
        return {name.tobytes(): numbers for name, numbers in zip(records["name"], records["numbers"], strict=True)}
