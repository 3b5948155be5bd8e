"""Reading one document that is in no store, with what was said: gives the same block as a reader of the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from memd.config import RecallSettings
from memd.memory.archive_proofs import archive_proofs
from memd.memory.document import Document, agent_of, facts_of
from memd.memory.said.turns import NOTHING_SAID, Said
from memd.recall.edges import period_of
from memd.recall.inject import Lines, inject
from memd.recall.layers import Excerpt, Layer, around_excerpts, around_facts, excerpts_of
from memd.recall.memories import alone, with_excerpts
from memd.recall.periods import Period
from memd.recall.ranking import Indexed
from memd.recall.search import Found, everything, rank


def indexed(document: Document, now: datetime, said: Said = NOTHING_SAID, *, excerpts: bool = True) -> Indexed:
    """The memory at `now` with its index. `excerpts` False: what was said finds facts, but is not found itself."""
    memory = alone(document, now)
    layers = [Layer(said, agent_of(document))]
    found = excerpts_of(layers, facts_of(document), archive_proofs(document)) if excerpts else ()
    around = [*around_facts(layers, memory.facts), *around_excerpts(layers, found)]
    return Indexed(with_excerpts(memory, found), around)


def ranked(memory: Indexed, query: str, period: Period, cosines: Mapping[int, float] | None = None) -> list[Found]:
    """What answers a query about this period, best first; `cosines` as in `Indexed.answering`. Raises Rejected."""
    return rank(memory, everything(query), cosines, memory.left_out((), past=period.past), period)


def shown(memory: Indexed, hits: Sequence[Found]) -> list[int | Excerpt]:
    """The hits as `inject` takes them: facts by their places, and excerpts."""
    return [memory.memory.shown(hit.place) for hit in hits]


def injection(
    document: Document, settings: RecallSettings, now: datetime, query: str | None = None, said: Said = NOTHING_SAID
) -> str:
    """The block for the next prompt at `now`, at the default budget, what answers a query first. Raises Rejected."""
    if not query:
        return inject(Lines(alone(document, now).document, settings), settings)
    memory = indexed(document, now, said, excerpts=bool(settings.excerpt_tokens))
    hits = ranked(memory, query, period_of(query, now, memory))
    return inject(Lines(memory.memory.document, settings), settings, first=shown(memory, hits))
