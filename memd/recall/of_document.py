"""Reading one document that is in no store: gives the same block as a reader of the store."""

from __future__ import annotations

from memd.config import RecallSettings
from memd.memory.document import Document
from memd.recall.index import Index, similarities
from memd.recall.inject import inject
from memd.recall.memories import alone
from memd.recall.search import everything, places, rank


def injection(document: Document, settings: RecallSettings, query: str | None = None) -> str:
    """The block for the next prompt at the default budget, facts that match a query first. Raises Rejected."""
    if not query:
        return inject(document, settings)
    memory = alone(document)
    hits = rank(memory, similarities(query, [Index(memory.facts)]), everything(query))
    return inject(document, settings, first=list(places(hits, memory)))
