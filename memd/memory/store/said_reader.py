"""Reading the said layer: the one way for everybody who shows turns."""

from __future__ import annotations

from datetime import datetime

from memd.config import Settings
from memd.context import Bucket
from memd.memory.document import Document
from memd.memory.said.taking import young
from memd.memory.said.turns import NOTHING_SAID, Said
from memd.memory.store.protocol import Store


def keeps_said(settings: Settings) -> bool:
    """Whether turns are kept: not when they are switched off, and not in a store that all users share."""
    return settings.said.enabled and not settings.store.shared


def read_said(
    store: Store,
    bucket: Bucket,
    document: Document,
    settings: Settings,
    now: datetime,
    *,
    last_bytes: int | None = None,
) -> Said:
    """The turns that belong to a document as loaded, without those past their days, removed from disk or not.

    `last_bytes`: only what stands whole in so many bytes at the layer's end; no more is read. Raises StoreUnavailable.
    """
    if not keeps_said(settings) or "said" not in document:
        return NOTHING_SAID
    return young(store.read_said(bucket, document, last_bytes), settings.said, now)
