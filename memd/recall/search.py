"""Search: ranks the facts that match a query. Pure: `reader` does the reading.

score = 0.5 similarity + 0.3 confidence + 0.2 scope. A replaced fact never ranks above its replacement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memd.errors import Rejected
from memd.memory.document import Fact
from memd.memory.facts import category_of, confidence_of, created_at, id_of, replaces, scope_of, updated_at
from memd.push.times import moment
from memd.recall.memories import Memory

WEIGHTS = (0.5, 0.3, 0.2)
"""Weights of similarity, confidence and scope in the score."""

SCOPES = {"session": 1.0, "thread": 1.0, "project": 0.8, "user": 0.6}
"""The scope factor: the closer to the conversation, the higher. A fact without a scope is about the user."""

MAX_QUERY_CHARS = 20_000
MAX_LIMIT = 500


@dataclass(frozen=True, slots=True)
class Found:
    """One fact that matches a query.

    `fact`: as in the document; shared with the cache, so it must not be changed. `score`: see the module; a replaced
    fact has at most the score of its replacement. `similarity`, `confidence`, `scope`: the factors, 0 to 1. `pending`:
    it is a message not extracted yet. `agent_name`: the agent whose memory has it ("": the user's own).
    """

    fact: Fact
    score: float
    similarity: float
    confidence: float
    scope: float
    pending: bool = False
    agent_name: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """A checked search: the query, and the filters on facts."""

    query: str
    limit: int
    categories: frozenset[str]
    since: datetime | None
    until: datetime | None

    def takes(self, fact: Fact) -> bool:
        """Whether a fact passes the filters; one without a readable time is outside every period."""
        if self.categories and category_of(fact) not in self.categories:
            return False
        if self.since is None and self.until is None:
            return True
        time = _time_of(fact)
        return (
            time is not None
            and (self.since is None or time >= self.since)
            and (self.until is None or time < self.until)
        )


def check(query: object, limit: object, categories: Collection[str], since: object, until: object) -> Search:
    """Check the arguments of a search. Raises Rejected."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise Rejected("E_LIMIT", f"limit must be a whole number from 1 to {MAX_LIMIT}", "limit", MAX_LIMIT)
    if isinstance(categories, str) or not all(isinstance(name, str) for name in categories):
        raise Rejected("E_CATEGORIES", "categories must be a list of names", "categories")
    return Search(check_query(query), limit, frozenset(categories), _time("since", since), _time("until", until))


def everything(query: object) -> Search:
    """A search for every fact that matches a query. Raises Rejected."""
    return check(query, MAX_LIMIT, (), None, None)


def check_query(query: object) -> str:
    """Check a query. Raises Rejected."""
    if not isinstance(query, str):
        raise Rejected("E_QUERY_TYPE", "query must be text", "query")
    if len(query) > MAX_QUERY_CHARS:
        raise Rejected("E_QUERY_LENGTH", f"query has at most {MAX_QUERY_CHARS} characters", "query", MAX_QUERY_CHARS)
    if not query.strip():
        raise Rejected("E_QUERY_EMPTY", "query must not be empty", "query")
    return query


def rank(memory: Memory, similarities: Mapping[int, float], search: Search) -> list[Found]:
    """The facts with a similarity, best first; equals keep the order of the memory."""
    known = dict(similarities)
    successors = _inherit(memory, known)
    hits = {place: _hit(memory, place, similarity) for place, similarity in known.items()}
    for old, news in successors.items():
        if old in hits:
            ceiling = min(hits[new].score for new in news)
            hits[old] = replace(hits[old], score=min(hits[old].score, ceiling))
    order = sorted(hits, key=lambda place: (-hits[place].score, len(successors.get(place, ())), place))
    return [hits[place] for place in order if search.takes(memory.facts[place])]


def _hit(memory: Memory, place: int, similarity: float) -> Found:
    fact = memory.facts[place]
    confidence = confidence_of(fact)
    scope = SCOPES.get(scope_of(fact), SCOPES["user"])
    score = score_of(similarity, confidence, scope)
    return Found(fact, score, similarity, confidence, scope, place >= memory.pending, memory.agents[place])


def score_of(similarity: float, confidence: float, scope: float) -> float:
    """The score of these factors."""
    return WEIGHTS[0] * similarity + WEIGHTS[1] * confidence + WEIGHTS[2] * scope


def _inherit(memory: Memory, similarities: dict[int, float]) -> dict[int, set[int]]:
    """For each replaced fact that is still there, all facts that replaced it, directly or in several steps.

    They match whatever the replaced fact matches: they get at least its similarity.
    """
    newer = _newer(memory)
    later = {old: _reachable(old, newer) for old in newer}
    # Facts that replace each other in a circle, which only a hand-edited file can contain, are equals.
    successors = {old: {new for new in news if old not in later.get(new, ())} for old, news in later.items()}
    for old, news in successors.items():
        for new in news:
            if old in similarities:
                similarities[new] = max(similarities.get(new, 0.0), similarities[old])
    return {old: news for old, news in successors.items() if news}


def _reachable(start: int, newer: Mapping[int, list[int]]) -> set[int]:
    """The places reachable from `start`, in one or several steps."""
    reached: set[int] = set()
    queue = [start]
    while queue:
        for new in newer.get(queue.pop(), ()):
            if new not in reached:
                reached.add(new)
                queue.append(new)
    return reached


def _newer(memory: Memory) -> dict[int, list[int]]:
    """For each replaced fact, the places of the facts that replace it."""
    newer: dict[int, list[int]] = {}
    replacing = [(place, names) for place, fact in enumerate(memory.facts) if (names := replaces(fact))]
    if not replacing:
        return newer
    places = {id_of(fact): place for place, fact in enumerate(memory.facts)}
    for new, names in replacing:
        for name in names:
            if name in places:
                newer.setdefault(places[name], []).append(new)
    return newer


def _time_of(fact: Fact) -> datetime | None:
    """When a fact was learned or last changed."""
    return moment(updated_at(fact)) or moment(created_at(fact))


def _time(name: str, value: object) -> datetime | None:
    time = value if isinstance(value, datetime) else moment(value)
    if value is not None and time is None:
        raise Rejected(f"E_{name.upper()}", f"{name} must be a time in ISO 8601", name)
    if time is None or time.tzinfo:
        return time
    return time.replace(tzinfo=UTC)


def places(hits: Iterable[Found], memory: Memory) -> Iterator[int]:
    """The places of the facts in the memory."""
    known = {id(fact): place for place, fact in enumerate(memory.facts)}
    return (known[id(hit.fact)] for hit in hits)
