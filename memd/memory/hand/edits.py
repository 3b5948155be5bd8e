"""Edits: a person's changes to a document. Pure functions: nothing is mutated, refusals raise Rejected.

An edited fact has source `manual` and confidence 1.0; the model cannot change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memd.config import ApplySettings
from memd.memory import removed, suspended, taking_out
from memd.memory.document import Document, Fact, complete, facts_of, revised
from memd.memory.facts import (
    MANUAL,
    USER_SCOPE,
    archived,
    by_id,
    content_of,
    id_of,
    is_manual,
    person_of,
    scope_of,
    with_id,
)
from memd.memory.hand import steps
from memd.memory.hand.steps import Author, Edited
from memd.memory.said.removal import remove_turns
from memd.memory.said.turns import NOTHING_SAID, Said, Turn
from memd.memory.scoped import MAX_OF_SCOPE, of_scope, with_facts_of
from memd.push.times import iso

PERSON = Author(MANUAL, 1.0)


def add(document: Document, content: str, category: str | None, now: datetime, settings: ApplySettings) -> Edited:
    """Add a fact about the user. An existing fact that says the same becomes manual; a removed fact may return.

    Raises Rejected.
    """
    document = complete(document)
    clean = steps.checked_by_hand(content, settings)
    chosen = steps.checked_category(category, settings, clean)
    same = steps.saying(document, clean)
    if same is not None:
        return _rewritten(document, by_id(document)[same], clean, chosen, iso(now), settings)
    if sum(map(is_manual, facts_of(document))) >= settings.max_facts:
        steps.refuse("E_MEMORY_FULL", f"a memory has at most {settings.max_facts} manual facts; remove one", "content")
    return steps.with_new_fact(removed.lifted(document, clean), clean, chosen, PERSON, iso(now))


def edit(
    document: Document,
    fact_id: str,
    content: str | None,
    category: str | None,
    now: datetime,
    settings: ApplySettings,
) -> Edited:
    """Change a fact's words, its category, or both; the archive keeps the old version. Raises Rejected, FactUnknown."""
    document = complete(document)
    fact = steps.existing(document, fact_id)
    if content is None and category is None:
        steps.refuse("E_EDIT_EMPTY", "an edit needs a content, a category, or both", "content")
    if content is None:
        clean = content_of(fact)
    else:
        clean = steps.checked_by_hand(content, settings)
        steps.check_unsaid(document, clean, fact)
    return _rewritten(document, fact, clean, steps.checked_category(category, settings, clean), iso(now), settings)


@dataclass(frozen=True, slots=True)
class RemovedFact(Edited):
    """The document after a removal. `facts`: all that went with the fact; `turns`: the turns that went."""

    facts: tuple[Fact, ...] = ()
    turns: tuple[Turn, ...] = ()


def remove(document: Document, fact_id: str, now: datetime, said: Said = NOTHING_SAID) -> RemovedFact:
    """Remove a fact with all its versions in the archive, and leave a tombstone. Raises Rejected, FactUnknown.

    `said`: the document's said layer, which loses the turns that proved the fact or say the same.

    Facts that say the same of the same person are removed with it, and merges that it went into or was made of. Its
    content is purged from all other texts (`memory.purge`), so that no copy is left.
    """
    document = complete(document)
    steps.check_id(fact_id)
    left, dead, found = taking_out.take_out(document, {fact_id})
    if not found:
        raise steps.unknown_fact()
    turns = remove_turns(said, dead)
    left = taking_out.buried(revised(left, iso(now)), dead, iso(now), turns.hashes)
    return RemovedFact(left, fact_id, turns.change, dead, turns.turns)


def restore(document: Document, fact_id: str, now: datetime, settings: ApplySettings) -> Edited:
    """Take a suspended fact back. Raises Rejected, FactUnknown."""
    document = complete(document)
    steps.check_id(fact_id)
    held = suspended.facts_of(document)
    fact = with_id(held, fact_id)
    if fact is None:
        raise steps.unknown_fact()
    steps.check_unsaid(document, content_of(fact), fact)
    scope = scope_of(fact)
    if len(of_scope(document, scope)) >= (settings.max_facts if scope == USER_SCOPE else MAX_OF_SCOPE):
        steps.refuse("E_MEMORY_FULL", f"the memory is full ({settings.max_facts} facts); remove one", "fact_id")
    left = suspended.with_facts(document, [other for other in held if other is not fact])
    left = with_facts_of(left, scope, [*of_scope(left, scope), suspended.restored(fact)])
    return Edited(revised(left, iso(now)), fact_id)


def remove_from_said(document: Document, facts: Sequence[Fact], now: datetime, said: Said) -> RemovedFact:
    """Take the turns of facts that were removed from another memory of the user out of this one's said layer."""
    turns = remove_turns(said, facts)
    if not turns.turns:
        return RemovedFact(document, "")
    document = complete(document)
    tombstones = removed.turns_buried(document, turns.hashes, iso(now))
    return RemovedFact(revised(document, iso(now), removed=tombstones), "", turns.change, (), turns.turns)


def _rewritten(
    document: Document, fact: Fact, content: str, category: str | None, now: str, settings: ApplySettings
) -> Edited:
    new = steps.reworded(fact, content, category, PERSON, now)
    if new == {**fact, "updatedAt": now}:
        return Edited(document, id_of(fact))
    if content != content_of(fact):
        new = steps.without_proof(new)
    lifted = removed.lifted(document, content, person_of(fact))
    return steps.superseded(lifted, fact, new, archived(fact, "edited", now), now, settings)
