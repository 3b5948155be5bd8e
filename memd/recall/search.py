"""Search: checks a search, and gives what answers it its score and its place in one list. Pure.

score = 0.5 similarity + 0.3 confidence + 0.2 scope, within what `order` allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Unpack

from memd.errors import Rejected
from memd.memory.document import Fact
from memd.memory.facts import ScopeKind, confidence_of, scope_of
from memd.memory.listing import FactFilter, SearchFilters, checked_filters
from memd.recall import order
from memd.recall.memories import Kind, Memory
from memd.recall.periods import NO_PERIOD, Period
from memd.recall.ranking import Indexed, Near

WEIGHTS = (0.5, 0.3, 0.2)
"""Weights of similarity, confidence and scope in the score."""

SCOPES: dict[ScopeKind, float] = {"session": 1.0, "project": 0.8, "user": 0.6}
"""The scope factor: the closer to the conversation, the higher."""

MAX_QUERY_CHARS = 20_000
MAX_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Found:
    """One fact that matches a query.

    `fact`: as in the document; of a reader's search with `status` and `lastUsedAt` (`memory.listing`). `score`: see the
    module; `order` may have lowered or raised it. `similarity`, `confidence`, `scope`: the factors, 0 to 1. `place`:
    its place in the memory. `agent_name`: the agent whose memory has it ("": the user's own).
    """

    fact: Fact
    score: float
    similarity: float
    confidence: float
    scope: float
    place: int
    kind: Kind = "fact"
    agent_name: str = ""

    @property
    def pending(self) -> bool:
        """Whether it is a message that is not extracted yet."""
        return self.kind == "pending"


class Hits(list[Found]):
    """What a search found, best first.

    `words_only`: empty, or why a search that should have gone by vectors too went by words alone: a code
    (E_EMBEDDER_TIMEOUT, E_VECTORS_NONE, …), a colon and a sentence.
    """

    def __init__(self, found: Iterable[Found] = (), words_only: str = "") -> None:
        super().__init__(found)
        self.words_only = words_only


@dataclass(frozen=True, slots=True)
class Search:
    """A checked search: the query, and the filters on facts."""

    query: str
    limit: int
    filters: FactFilter


def check(query: object, limit: object, **filters: Unpack[SearchFilters]) -> Search:
    """Check the arguments of a search. Raises Rejected."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise Rejected("E_LIMIT", f"limit must be a whole number from 1 to {MAX_LIMIT}", "limit", MAX_LIMIT)
    return Search(check_query(query), limit, checked_filters(**filters))


def everything(query: object) -> Search:
    """A search for every fact that matches a query. Raises Rejected."""
    return check(query, MAX_LIMIT)


def check_query(query: object) -> str:
    """Check a query. Raises Rejected."""
    if not isinstance(query, str):
        raise Rejected("E_QUERY_TYPE", "query must be text", "query")
    if len(query) > MAX_QUERY_CHARS:
        raise Rejected("E_QUERY_LENGTH", f"query has at most {MAX_QUERY_CHARS} characters", "query", MAX_QUERY_CHARS)
    if not query.strip():
        raise Rejected("E_QUERY_EMPTY", "query must not be empty", "query")
    return query


def rank(
    indexed: Indexed,
    search: Search,
    near: Near | None = None,
    without: frozenset[int] = frozenset(),
    period: Period = NO_PERIOD,
) -> list[Found]:
    """What answers a query, best first; equals keep the memory's order. The rest: `Indexed.answering`."""
    if period.alone:
        return list(islice(_said_in(period.strict(), indexed, search, without), search.limit))
    memory, times = indexed.memory, indexed.times
    known = indexed.answering(search.query, near, without, period)
    replaced = indexed.replaced
    order.inherit(replaced, known)
    facts = {place: memory.found[place] for place in known}
    scores = {place: _score(facts[place], answer.similarity) for place, answer in known.items()}
    order.replaced_below(scores, replaced)
    if not period.past:
        order.newer_first(scores, known, memory.facts, times, replaced)
    if memory.excerpts:
        order.excerpts_below(scores, known, times, len(memory.facts), indexed.names_in(search.query))
    ranked = sorted(scores, key=lambda place: (-scores[place], len(replaced.get(place, ())), place))
    taken = islice((place for place in ranked if search.filters.takes(facts[place])), search.limit)
    return [_hit(memory, place, facts[place], known[place].similarity, scores[place]) for place in taken]


def _said_in(period: Period, indexed: Indexed, search: Search, without: frozenset[int]) -> Iterator[Found]:
    """What was said in a period, the newest first, whatever its words; no score is above the one before."""
    memory, times = indexed.memory, indexed.times
    then = (place for place, time in enumerate(times) if time in period and place not in without)
    score = 1.0
    for place in sorted(then, key=lambda place: (-times[place], place)):
        if search.filters.takes(fact := memory.found[place]):
            score = min(score, _score(fact, 1.0))
            yield _hit(memory, place, fact, 1.0, score)


def _score(fact: Fact, similarity: float) -> float:
    return score_of(similarity, confidence_of(fact), _scope(fact))


def _scope(fact: Fact) -> float:
    return SCOPES[scope_of(fact).kind]


def _hit(memory: Memory, place: int, fact: Fact, similarity: float, score: float) -> Found:
    kind, agent = memory.kind_of(place), memory.agent_of(place)
    return Found(fact, score, similarity, confidence_of(fact), _scope(fact), place, kind, agent)


def score_of(similarity: float, confidence: float, scope: float) -> float:
    """The score of these factors."""
    return WEIGHTS[0] * similarity + WEIGHTS[1] * confidence + WEIGHTS[2] * scope
