"""The reader's cache: a document is parsed once and kept until the store says that it has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from sys import getsizeof
from typing import Any, Generic, TypeVar

from memd.config import Settings
from memd.context import Bucket
from memd.memory.archive_proofs import for_readers
from memd.memory.document import Document, facts_of
from memd.memory.packed import PackedFacts, pack
from memd.memory.store.protocol import FileStore, Store

SHARED_KEY_CHARS = 64
"""Parsed objects share their keys up to this length (orjson caches them), so only longer ones are counted."""

OVERHEAD = 1.2
"""Bytes that the process grows by for each byte of objects: the allocator rounds and leaves gaps (1.13 measured)."""

D = TypeVar("D")


@dataclass
class _CachedDocument(Generic[D]):
    """A cached document, and maybe what a reader derived from it. `size`: bytes of both, estimated."""

    mark: Hashable
    document: Document
    document_size: int
    size: int
    derived: D | None = None


class CachedReader(Generic[D]):
    """Reads documents and caches them with the values derived from them. Thread-safe.

    It keeps `store.cache_documents` documents at most and `recall.cache_mb` megabytes by estimate; the least recently
    used go first. Every read asks the store for the document's mark, so it notices changes by other processes and
    editors.
    """

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._is_local = isinstance(store, FileStore)
        self._most = settings.store.cache_documents
        self._most_bytes = settings.recall.cache_mb * 1_000_000 / OVERHEAD
        self._lock = threading.Lock()
        self._entries: OrderedDict[Bucket, _CachedDocument[D]] = OrderedDict()
        self._bytes = 0

    def read(self, bucket: Bucket) -> Document:
        """The bucket's document without ledger and archive, which are most of its size and which only writers need.

        Of the archive it has the names of the turns that prove its facts.

        Its facts are packed (see `memd.memory.packed`). Callers must not change it, as all readers share it.
        Raises as `Store.load` does.
        """
        return self.read_all((bucket,))[0]

    def read_all(self, buckets: Sequence[Bucket]) -> tuple[Document, ...]:
        """The documents of several buckets, whose marks are asked for together."""
        # The marks are taken first: after a change in between, the next read loads again.
        return tuple(map(self._read, buckets, self._store.marks(buckets)))

    def _read(self, bucket: Bucket, mark: Hashable) -> Document:
        kept = self._look(bucket, mark)
        if kept is not None:
            return kept
        document = _readable(self._store.peek(bucket).document)
        size = size_of(document)
        with self._lock:
            self._drop(bucket)
            self._entries[bucket] = _CachedDocument(mark, document, size, size)
            self._bytes += size
            self._evict()
        return document

    def at_hand(self, buckets: Sequence[Bucket]) -> tuple[Document | None, ...]:
        """The documents that are kept and have not changed; none of a store that may have to wait for an answer.

        Raises StoreUnavailable.
        """
        if not self._is_local:
            return (None,) * len(buckets)
        return tuple(map(self._look, buckets, self._store.marks(buckets)))

    def derived(self, bucket: Bucket) -> D | None:
        """The value last attached to the bucket's document, if both are still cached."""
        with self._lock:
            entry = self._entries.get(bucket)
            return entry.derived if entry else None

    def attach(self, bucket: Bucket, document: Document, derived: D, size: int) -> None:
        """Keep a value of so many bytes with the document that it was derived from, unless that is gone by now."""
        with self._lock:
            entry = self._entries.get(bucket)
            if entry is None or entry.document is not document:
                return
            entry.derived = derived
            self._bytes += entry.document_size + size - entry.size
            entry.size = entry.document_size + size
            self._evict()

    def _look(self, bucket: Bucket, mark: Hashable) -> Document | None:
        with self._lock:
            entry = self._entries.get(bucket)
            if entry is None or entry.mark != mark:
                return None
            self._entries.move_to_end(bucket)
            return entry.document

    def _evict(self) -> None:
        while self._entries and (len(self._entries) > self._most or self._bytes > self._most_bytes):
            self._drop(next(iter(self._entries)))

    def _drop(self, bucket: Bucket) -> None:
        entry = self._entries.pop(bucket, None)
        if entry is not None:
            self._bytes -= entry.size


def size_of(value: Any) -> int:
    """The bytes that parsed JSON takes in memory, by estimate."""
    size = getsizeof(value)
    if isinstance(value, dict):
        size += sum(map(size_of, value.values()))
        size += sum(getsizeof(key) for key in value if len(key) > SHARED_KEY_CHARS)
    elif isinstance(value, list | PackedFacts):
        size += sum(map(size_of, value))
    return size


def _readable(document: Document) -> Document:
    read = {name: value for name, value in document.items() if name not in {"ledger", "archive"}}
    return {**read, **for_readers(document), "facts": PackedFacts(map(pack, facts_of(document)))}
