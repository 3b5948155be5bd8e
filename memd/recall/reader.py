"""The reader: documents in, blocks and ranked facts out. What is derived from a document is kept while it is the same.

A change by whomever is seen by the next read: each read asks the store for the mark of every document it rests on.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from memd.config import RecallSettings, Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.memory.document import Document
from memd.memory.facts import content_of, id_of
from memd.memory.store.json_store import CachedReader, open_store
from memd.recall.index import Index, similarities
from memd.recall.inject import Injection, Lines, inject, versioned
from memd.recall.memories import Memory, alone, merged, with_pending
from memd.recall.pending import Pending, PendingMessages
from memd.recall.search import Found, Wanted, places, rank
from memd.recall.vectors import Vectors, fused, load_embedder

if TYPE_CHECKING:
    import redis

MAX_BLOCKS = 8
"""Blocks kept of one memory, each of another budget."""


@dataclass
class _Kept:
    """A memory with what was made of it. Made twice when two threads are first at once, which does no harm."""

    documents: tuple[Document, ...]
    memory: Memory
    settings: RecallSettings
    blocks: dict[int | None, Injection] = field(default_factory=dict)

    @cached_property
    def index(self) -> Index:
        return Index(self.memory.facts)

    @cached_property
    def lines(self) -> Lines:
        return Lines(self.memory.document, self.settings)

    def rests_on(self, documents: tuple[Document, ...]) -> bool:
        """Whether these very documents are the ones it was made of."""
        return len(documents) == len(self.documents) and all(
            ours is theirs for ours, theirs in zip(self.documents, documents, strict=True)
        )


class Reader:
    """Reads the memories of a data folder. Thread-safe. `server`: called only for what is pending."""

    def __init__(self, settings: Settings, server: Callable[[], redis.Redis]) -> None:
        self._settings = settings
        self._store = open_store(settings)
        self._documents = CachedReader(self._store, settings.store)
        self._pending = PendingMessages(settings, server, self._store)
        self._lock = threading.Lock()
        self._kept: OrderedDict[Bucket, _Kept] = OrderedDict()

    def injection(
        self, bucket: Bucket, max_tokens: int | None, wanted: Wanted | None, *, include_pending: bool
    ) -> Injection:
        """The block for the next prompt, the facts that are wanted first. Raises StoreUnavailable, DocumentDamaged."""
        kept = self._look(bucket)
        if wanted is None and not include_pending:
            return self._block(kept, max_tokens)
        first: list[int] = []
        if wanted is not None:
            near = self._similarities(wanted.query, kept.memory, [kept.index])
            first = list(places(rank(kept.memory, near, wanted), kept.memory))
        said = [pending.text for pending in self._said(bucket)] if include_pending else []
        return versioned(inject(kept.lines, self._settings.recall, max_tokens, first=first, pending=said))

    def at_hand(self, bucket: Bucket, max_tokens: int | None = None) -> Injection | None:
        """The block if it was made before and nothing has changed since: costs a `stat`. Raises StoreUnavailable."""
        with self._lock:
            kept = self._kept.get(bucket)
            if kept is not None:
                self._kept.move_to_end(bucket)
        block = kept.blocks.get(max_tokens) if kept else None
        if kept is None or block is None:
            return None
        documents = map(self._documents.at_hand, self._buckets(bucket))
        same = all(here is there for here, there in zip(documents, kept.documents, strict=True))
        return block if same else None

    def search(self, bucket: Bucket, wanted: Wanted, *, include_pending: bool) -> list[Found]:
        """The facts that answer, best first. Raises StoreUnavailable, DocumentDamaged, EmbedderFailed."""
        kept = self._look(bucket)
        memory, indexes = kept.memory, [kept.index]
        if include_pending:
            memory = with_pending(memory, self._said(bucket))
            indexes.append(Index(memory.facts[memory.pending :], like=kept.index))
        near = self._similarities(wanted.query, memory, indexes)
        answer = rank(memory, near, wanted)[: wanted.limit]
        self._touch(bucket, answer)
        return answer

    def document(self, bucket: Bucket) -> Document:
        """The whole document, read anew. Raises StoreUnavailable, DocumentDamaged."""
        return self._store.load(bucket).document

    @cached_property
    def _vectors(self) -> Vectors | None:
        name = self._settings.recall.embedder
        return Vectors(load_embedder(name)) if name else None

    def _similarities(self, query: str, memory: Memory, indexes: Sequence[Index]) -> dict[int, float]:
        """By words; with an embedder by vectors too, both rankings fused."""
        by_words = similarities(query, indexes)
        if self._vectors is None:
            return by_words
        return fused([by_words, self._vectors.similarities(query, list(map(content_of, memory.facts)))])

    def _block(self, kept: _Kept, max_tokens: int | None) -> Injection:
        block = kept.blocks.get(max_tokens)
        if block is None:
            block = versioned(inject(kept.lines, self._settings.recall, max_tokens))
            if len(kept.blocks) >= MAX_BLOCKS:
                kept.blocks.clear()
            kept.blocks[max_tokens] = block
        return block

    def _said(self, bucket: Bucket) -> list[Pending]:
        return self._pending.read(self._buckets(bucket))

    def _touch(self, bucket: Bucket, found: Sequence[Found]) -> None:
        """Note what was found, for each memory apart."""
        now = time.time()
        for one in self._buckets(bucket):
            ids = [id_of(hit.fact) for hit in found if hit.agent_name == one.agent_name and not hit.pending]
            if ids and self._store.reading_notes.note(one, ids, now) and self._store.mark(one) is None:
                self._store.reading_notes.forget(*one)  # forgotten between the two: what was just noted goes as well

    def _look(self, bucket: Bucket) -> _Kept:
        documents = tuple(map(self._documents.read, self._buckets(bucket)))
        with self._lock:
            kept = self._kept.get(bucket)
            if kept is not None and kept.rests_on(documents):
                self._kept.move_to_end(bucket)
                return kept
        memory = merged(*documents) if len(documents) > 1 else alone(documents[0])
        kept = _Kept(documents, memory, self._settings.recall)
        with self._lock:
            self._kept[bucket] = kept
            self._kept.move_to_end(bucket)
            while len(self._kept) > self._settings.store.cache_documents:
                self._kept.popitem(last=False)
        return kept

    def _buckets(self, bucket: Bucket) -> tuple[Bucket, ...]:
        """The memories that a reader of this bucket sees, the user's own first."""
        if bucket.agent_name == DEFAULT_AGENT or not self._settings.recall.with_user_memory:
            return (bucket,)
        return Bucket(bucket.user_id), bucket
