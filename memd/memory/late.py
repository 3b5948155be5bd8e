"""Late: what was said earlier than what the memory has already, and arrives only now. It replaces nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memd.memory.document import Fact, archive_of
from memd.memory.draft import Draft
from memd.memory.duplicates import key_of
from memd.memory.facts import content_of, id_of, person_of
from memd.memory.opposing import opposes
from memd.memory.sayings import CLOSE, Saying, earlier, end_of, of_fact
from memd.push.times import iso, moment

_TIMES = ("saidAt", "lastConfirmedAt", "updatedAt", "createdAt")


def successor(draft: Draft, content: str, person: str, said: Saying, replaced: Sequence[str]) -> str | None:
    """The fact that was said later than a new one and has its place: one that the new one would replace, or one that
    says the opposite of the same person. None: the new one may be added.
    """
    named = [draft.facts[fact_id] for fact_id in replaced if fact_id in draft.known and fact_id in draft.facts]
    later = next((fact for fact in named if earlier(said, of_fact(fact))), None) or next(
        (
            fact
            for fact in _maybe_later(draft.facts.values(), said)
            if person_of(fact) == person and opposes(content, content_of(fact)) and earlier(said, of_fact(fact))
        ),
        None,
    )
    return None if later is None else id_of(later)


def is_over(draft: Draft, fact: Fact, said: Saying) -> bool:
    """Whether the archive has a fact that says the same, and the user said later than this that it is over."""
    ends = [entry for entry in (*archive_of(draft.old), *draft.archived) if earlier(said, end_of(entry))]
    return bool(ends) and key_of(fact) in {key_of(entry) for entry in ends}


def _maybe_later(facts: Iterable[Fact], said: Saying) -> Iterable[Fact]:
    """The fast path: the facts that have any time as late as this; when nothing arrives late, none has."""
    time = moment(said.at)
    edge = iso(time - CLOSE) if time else ""
    return (fact for fact in facts if edge and any(str(fact.get(name, "")) >= edge for name in _TIMES))
