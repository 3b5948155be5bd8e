"""The upkeep of one memory, also of a user who says nothing any more.

What was said and is past its days goes, what older gates judged is judged anew, doubtful facts leave when they are too
old for anybody to decide, and so do sessions that nobody goes on with.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from memd.config import Settings
from memd.context import Bucket
from memd.errors import Conflict
from memd.memory import doubtful
from memd.memory.document import Document, revised, said_file_of
from memd.memory.said.changes import Rewrite, rewrite
from memd.memory.said.excerpts import GATES_VERSION, judged
from memd.memory.said.taking import first_kept, young
from memd.memory.said.turns import NOTHING_SAID
from memd.memory.store.protocol import FileStore, Store
from memd.memory.store.said_reader import keeps_said
from memd.push.times import iso


def tend(store: Store, bucket: Bucket, settings: Settings, now: datetime) -> bool:
    """Bring a memory up to date; returns whether anything changed. A writer that is faster leaves it for later.

    Where turns are no longer kept, the whole said layer goes. Raises as `Store.load` and `Store.commit` do.
    """
    swept = store.sweep_said(bucket) if isinstance(store, FileStore) else 0
    swept += store.sessions.expire(bucket, now - timedelta(days=settings.session.keep_days))
    found = store.peek(bucket).document
    if not _is_due(found, settings, now) and not doubtful.has_old(found, now):
        return swept > 0
    loaded = store.load(bucket)
    if loaded.tombstone is not None and loaded.tombstone.open:  # a worker erases it with the rest
        return False
    said = _renewed(store, bucket, loaded.document, settings, now) if _is_due(found, settings, now) else None
    document = revised(doubtful.without_old(loaded.document, now), iso(now))
    try:
        store.commit(bucket, loaded, document, lambda: True, said=said)
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
