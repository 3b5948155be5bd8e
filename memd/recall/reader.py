"""The reader: documents in, blocks and ranked facts out. What is derived from a document is kept while it is the same.

A change by whomever is seen by the next read: each read asks the store for the mark of every document it rests on.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.memory.document import Document
from memd.memory.store import CachedReader, open_store
from memd.recall.index import Index
from memd.recall.inject import Injection, inject, versioned
from memd.recall.memory import Memory, alone, merged
from memd.recall.search import Found, Wanted, check, places, rank
from memd.validation import check_identifier

if TYPE_CHECKING:
    import redis

MAX_BLOCKS = 8
"""Blocks kept of one memory, each of another budget."""


@dataclass
class _Kept:
    """A memory with what was made of it."""

    documents: tuple[Document, ...]
    memory: Memory
    blocks: dict[int | None, Injection] = field(default_factory=dict)

    @cached_property
    def index(self) -> Index:
        return Index(self.memory.facts)


class Reader:
    """Reads the memories of a data folder. Thread-safe."""

    def __init__(self, settings: Settings, server: Callable[[], redis.Redis]) -> None:
        self._settings = settings
        self._server = server
        self._store = open_store(settings)
        self._documents = CachedReader(self._store, settings.store)
        self._lock = threading.Lock()
        self._kept: OrderedDict[Bucket, _Kept] = OrderedDict()

    def injection(
        self,
        user_id: str,
        agent_name: str = DEFAULT_AGENT,
        max_tokens: int | None = None,
        query: str | None = None,
        *,
        include_pending: bool = False,
    ) -> Injection:
        """The block for the next prompt. Raises Rejected, StoreUnavailable, DocumentDamaged."""
        kept = self._look(_bucket(user_id, agent_name))
        if query is None:
            return self._block(kept, max_tokens)
        wanted = check(query, 500, (), None, None)
        found = rank(kept.memory, kept.index.similarities(wanted.query), wanted)
        first = list(places(found, kept.memory))
        return versioned(inject(kept.memory.document, self._settings.recall, max_tokens, first=first))

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

    def search(self, user_id: str, agent_name: str, wanted: Wanted, *, include_pending: bool = False) -> list[Found]:
        """The facts that answer. Raises Rejected, StoreUnavailable, DocumentDamaged."""
        kept = self._look(_bucket(user_id, agent_name))
        return rank(kept.memory, kept.index.similarities(wanted.query), wanted)[: wanted.limit]

    def document(self, user_id: str, agent_name: str = DEFAULT_AGENT) -> Document:
        """The whole document, read anew. Raises Rejected, StoreUnavailable, DocumentDamaged."""
        return self._store.load(_bucket(user_id, agent_name)).document

    def _block(self, kept: _Kept, max_tokens: int | None) -> Injection:
        block = kept.blocks.get(max_tokens)
        if block is None:
            block = versioned(inject(kept.memory.document, self._settings.recall, max_tokens))
            if len(kept.blocks) >= MAX_BLOCKS:
                kept.blocks.clear()
            kept.blocks[max_tokens] = block
        return block

    def _look(self, bucket: Bucket) -> _Kept:
        documents = tuple(map(self._documents.read, self._buckets(bucket)))
        with self._lock:
            kept = self._kept.get(bucket)
            if kept is not None and all(map(lambda a, b: a is b, kept.documents, documents)):
                self._kept.move_to_end(bucket)
                return kept
        kept = _Kept(documents, merged(*documents) if len(documents) > 1 else alone(documents[0]))
        with self._lock:
            self._kept[bucket] = kept
            self._kept.move_to_end(bucket)
            while len(self._kept) > self._settings.store.cache_documents:
                self._kept.popitem(last=False)
        return kept

    def _buckets(self, bucket: Bucket) -> tuple[Bucket, ...]:
        if bucket.agent_name == DEFAULT_AGENT or not self._settings.recall.with_user_memory:
            return (bucket,)
        return Bucket(bucket.user_id), bucket


def _bucket(user_id: str, agent_name: str) -> Bucket:
    return Bucket(
        check_identifier("user_id", user_id),
        check_identifier("agent_name", agent_name) if agent_name else DEFAULT_AGENT,
    )
