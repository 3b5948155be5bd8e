"""The reader's cache: a document is parsed once and kept until the store says that it has changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from memd.config import StoreSettings
from memd.context import Bucket
from memd.memory.document import Document
from memd.memory.store.protocol import Store


class CachedReader:
    """Reads documents and keeps the `cache_documents` most recently used. Thread-safe.

    Every read asks the store for the document's mark, so it notices changes by other processes and editors.
    """

    def __init__(self, store: Store, settings: StoreSettings) -> None:
        self._store = store
        self._cap = settings.cache_documents
        self._lock = threading.Lock()
        self._kept: OrderedDict[Bucket, tuple[Hashable, Document]] = OrderedDict()

    def read(self, bucket: Bucket) -> Document:
        """The bucket's document without ledger and archive, which are most of its size and which only writers need.

        Callers must not change it, as all readers share it. Raises as `Store.load` does.
        """
        # The mark is taken first: after a change in between, the next read loads again.
        mark = self._store.mark(bucket)
        kept = self._look(bucket, mark)
        if kept is not None:
            return kept
        document = _readable(self._store.load(bucket).document)
        with self._lock:
            self._kept[bucket] = (mark, document)
            self._kept.move_to_end(bucket)
            while len(self._kept) > self._cap:
                self._kept.popitem(last=False)
        return document

    def at_hand(self, bucket: Bucket) -> Document | None:
        """The document if it is kept and has not changed; never waits for a file. Raises StoreUnavailable."""
        return self._look(bucket, self._store.mark(bucket))

    def _look(self, bucket: Bucket, mark: Hashable) -> Document | None:
        with self._lock:
            kept = self._kept.get(bucket)
            if kept is None or kept[0] != mark:
                return None
            self._kept.move_to_end(bucket)
            return kept[1]


def _readable(document: Document) -> Document:
    return {name: value for name, value in document.items() if name not in {"ledger", "archive"}}
