"""Reading one document that is in no store: gives the same block as a reader of the store."""

from __future__ import annotations

from datetime import datetime

from memd.config import RecallSettings
from memd.memory.document import Document
from memd.recall.edges import period_of
from memd.recall.inject import Lines, inject
from memd.recall.memories import alone
from memd.recall.ranking import Indexed
from memd.recall.search import everything, rank


def injection(document: Document, settings: RecallSettings, now: datetime, query: str | None = None) -> str:
    """The block for the next prompt at `now`, at the default budget, what answers a query first. Raises Rejected."""
    memory = alone(document, now)
    lines = Lines(memory.document, settings)
    if not query:
        return inject(lines, settings)
    indexed = Indexed(memory)
    hits = rank(indexed, everything(query), period=period_of(query, now, indexed))
    return inject(lines, settings, first=[hit.place for hit in hits])
