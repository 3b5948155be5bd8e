"""The reader's cache: documents parsed once, for as long as the store says that they have not changed."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable

from memd.config import StoreSettings
from memd.context import Bucket
from memd.memory.document import Document
from memd.memory.store.protocol import Store


class CachedReader:
    """Reads documents, the least recently used ones forgotten beyond `cache_documents`. Thread-safe.

    Notices changes by whomever (another process, a hand) with one `stat` a read.
    """

    def __init__(self, store: Store, settings: StoreSettings) -> None:
        self._store = store
        self._cap = settings.cache_documents
        self._lock = threading.Lock()
        self._kept: OrderedDict[Bucket, tuple[Hashable, Document]] = OrderedDict()

    def read(self, bucket: Bucket) -> Document:
        """The bucket's document without ledger and archive, which only writers need and which are most of its size.

        It is shared with every other reader: callers must not change it. Raises as `load`.
        """
        # The mark is taken first: a change in between makes the next read load again, never keep what is old.
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
        """The document if it is kept and has not changed: for who must not wait for a file. Raises StoreUnavailable."""
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
