"""Late: what was said earlier than what the memory has already, and arrives only now. It replaces nothing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from memd.memory.document import Fact, archive_of
from memd.memory.draft import Draft
from memd.memory.duplicates import Contents, key_of
from memd.memory.facts import content_of, id_of
from memd.memory.opposing import Opposite
from memd.memory.sayings import Saying, earlier, end_of, of_fact
from memd.memory.text import normal_key
from memd.memory.whom import whom_of


def successor(draft: Draft, contents: Contents, fact: Fact, said: Saying, replaced: Sequence[str]) -> str | None:
    """The fact that was said later than a new one and has its place: one that the new one would replace, or one that
    says the opposite of the same person. None: the new one may be added.

    `contents`: those of the draft's facts.
    """
    opposite = Opposite(content_of(fact))
    named = (fact_id for fact_id in replaced if fact_id in draft.known and fact_id in draft.facts)
    alike = contents.maybe_alike(opposite.alike, whom_of(fact))
    others = (id_of(other) for other in alike if opposite.of(normal_key(content_of(other))))
    return next((fact_id for fact_id in chain(named, others) if earlier(said, of_fact(draft.facts[fact_id]))), None)


def is_over(draft: Draft, fact: Fact, said: Saying) -> bool:
    """Whether the archive has a fact that says the same, and the user said later than this that it is over."""
    ends = [entry for entry in (*archive_of(draft.old), *draft.archived) if earlier(said, end_of(entry))]
    return bool(ends) and key_of(fact) in {key_of(entry) for entry in ends}
