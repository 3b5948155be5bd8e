"""Places: which facts a read sees besides those that hold everywhere: a conversation's, a project's. Pure.

Nothing of a place that a read does not name is in its memory, and so in none of its scores, counts or versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from memd.memory import scoped
from memd.memory.document import Document, Fact, facts_of
from memd.memory.facts import Scope, content_of, evidence_of, person_of, valid_until
from memd.memory.packed import PackedFacts
from memd.memory.projects.proofs import digest_of
from memd.memory.projects.rights import may
from memd.memory.scoped import Places
from memd.memory.text import normal_key
from memd.push.times import moment
from memd.recall.inject import PROJECT_FIELD
from memd.recall.layers import Excerpt
from memd.recall.memories import Memory


def readable(project: Document, *, of_member: bool) -> Document:
    """A project's document as a member reads it, or anybody else of its app: the latter sees what is public."""
    if of_member:
        return project
    facts = [fact for fact in facts_of(project) if is_public(fact)]
    return {**project, "facts": PackedFacts(facts) if isinstance(facts_of(project), PackedFacts) else facts}


def is_public(fact: Fact) -> bool:
    """Whether any token of the project's app may read a fact."""
    return may("app", "read", "public" if fact.get("visibility") == "public" else "members")


def with_project(memory: Memory, project: Document, now: datetime) -> Memory:
    """The memory with the facts that a project's members share after its own; what it says already is left out."""
    known = {normal_key(content_of(fact)) for fact in memory.facts}
    facts, ends = _current(facts_of(project), now)
    shared = [fact for fact in facts if normal_key(content_of(fact)) not in known]
    if memory.good_until is not None:
        ends.append(memory.good_until)
    return replace(
        memory,
        document={**memory.document, "facts": PackedFacts([*memory.facts, *shared]), PROJECT_FIELD: project},
        agents=memory.agents + ("",) * len(shared),
        good_until=min(ends, default=None),
    )


def without_shared(excerpts: Iterable[Excerpt], project: Document, user_id: str) -> tuple[Excerpt, ...]:
    """The excerpts of a user's turns on which no fact of the project rests."""
    quoted = {entry.get("message") for fact in facts_of(project) for entry in evidence_of(fact)}
    return tuple(excerpt for excerpt in excerpts if digest_of(user_id, excerpt.turn.id) not in quoted)


def _current(facts: Iterable[Fact], now: datetime) -> tuple[list[Fact], list[datetime]]:
    """The facts whose time is not over, and when their times end."""
    kept: list[Fact] = []
    ends: list[datetime] = []
    for fact in facts:
        end = moment(valid_until(fact))
        if end is None or end > now:
            kept.append(fact)
            ends += [] if end is None else [end]
    return kept, ends


def visible(documents: Sequence[Document], places: Places) -> list[Document]:
    """The user's documents with the facts of these places among their own; what they say already is left out."""
    return [_visible(document, places.scopes) for document in documents]


def _visible(document: Document, scopes: frozenset[Scope]) -> Document:
    own = facts_of(document)
    known = set(map(_says, own))
    more = [fact for fact in scoped.within(document, scopes) if _says(fact) not in known]
    return {**document, "facts": PackedFacts([*own, *more])} if more else document


def _says(fact: Fact) -> tuple[str, str]:
    return person_of(fact), normal_key(content_of(fact))
