"""The upkeep of one memory's said layer: what is past its days goes, and what older gates judged is judged anew."""

from __future__ import annotations

from datetime import datetime

from memd.config import Settings
from memd.context import Bucket
from memd.errors import Conflict
from memd.memory.document import Document, revised, said_file_of
from memd.memory.said.changes import Rewrite, rewrite
from memd.memory.said.excerpts import GATES_VERSION, judged
from memd.memory.said.taking import first_kept, young
from memd.memory.said.turns import NOTHING_SAID
from memd.memory.store.protocol import FileStore, Store, load_to_read
from memd.memory.store.said_reader import keeps_said
from memd.push.times import iso


def tend(store: Store, bucket: Bucket, settings: Settings, now: datetime) -> bool:
    """Bring a memory's layer up to date; returns whether anything changed. A writer that is faster leaves it for later.

    Where turns are no longer kept, the whole layer goes. Raises as `Store.load` and `Store.commit` do.
    """
    swept = store.sweep_said(bucket) if isinstance(store, FileStore) else 0
    if not _is_due(load_to_read(store, bucket).document, settings, now):
        return swept > 0
    loaded = store.load(bucket)
    if loaded.tombstone is not None and loaded.tombstone.open:  # a worker erases it with the rest
        return False
    document = revised(loaded.document, iso(now))
    try:
        store.commit(
            bucket, loaded, document, lambda: True, said=_renewed(store, bucket, loaded.document, settings, now)
        )
    except Conflict:  # a conversation was stored just now; the next round looks again
        return False
    return True


def _is_due(document: Document, settings: Settings, now: datetime) -> bool:
    held = said_file_of(document)
    if not held.file:
        return False
    is_old = "" < held.since < first_kept(settings.said, now)
    return is_old or held.gates != GATES_VERSION or not keeps_said(settings)


def _renewed(store: Store, bucket: Bucket, document: Document, settings: Settings, now: datetime) -> Rewrite:
    if not keeps_said(settings):
        return rewrite(NOTHING_SAID)
    said = young(store.read_said(bucket, document), settings.said, now)
    turns = [turn if turn.gates == GATES_VERSION else judged(turn, ()) for turn in said.turns]
    return rewrite(said.replaced(turns))
