"""Edits: a person's changes to a document. Pure functions: nothing is mutated, refusals raise Rejected.

An edited fact has source `manual` and confidence 1.0; the model cannot change it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memd.config import ApplySettings
from memd.memory import removed
from memd.memory.document import Document, Fact, archive_of, complete, facts_of, revised
from memd.memory.duplicates import Key, key_of
from memd.memory.facts import (
    MANUAL,
    archive_reason,
    archived,
    by_id,
    content_of,
    id_of,
    is_manual,
    person_of,
    replaced_by,
)
from memd.memory.hand import steps
from memd.memory.hand.steps import Author, Edited
from memd.memory.purge import purge
from memd.memory.said.removal import remove_turns
from memd.memory.said.turns import NOTHING_SAID, Said, Turn
from memd.push.times import iso

PERSON = Author(MANUAL, 1.0)


def add(document: Document, content: str, category: str | None, now: datetime, settings: ApplySettings) -> Edited:
    """Add a fact about the user. An existing fact that says the same becomes manual; a removed fact may return.

    Raises Rejected.
    """
    document = complete(document)
    clean = steps.checked_text(content, settings, "E_FACT")
    chosen = steps.checked_category(category, settings)
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
        clean = steps.checked_text(content, settings, "E_FACT")
        steps.check_unsaid(document, clean, fact)
    return _rewritten(document, fact, clean, steps.checked_category(category, settings), iso(now), settings)


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
    facts, archive = facts_of(document), archive_of(document)
    named = [fact for fact in facts if id_of(fact) == fact_id]
    keys = _keys(named)
    if not named:
        named = [entry for entry in archive if id_of(entry) == fact_id]
        keys = _keys(named) - _keys(facts)
    if not named:
        raise steps.unknown_fact()
    ids = {fact_id} | _merges(archive, fact_id)
    gone, kept = _parted(facts, ids, keys)
    old, entries = _parted(archive, ids, keys)
    alive = _keys(kept)
    dead = [fact for fact in (*gone, *old) if key_of(fact) not in alive]
    turns = remove_turns(said, dead)
    tombstones = removed.buried(document, dead, iso(now), turns.hashes)
    left = revised(document, iso(now), facts=kept, archive=entries, removed=tombstones)
    return RemovedFact(purge(left, dead, iso(now)), fact_id, turns.change, tuple(dead), turns.turns)


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


def _keys(facts: list[Fact]) -> set[Key]:
    return set(map(key_of, facts))


def _merges(archive: list[Fact], fact_id: str) -> set[str]:
    """The ids of merges that contain a fact, and of facts that it was merged from, over several steps."""
    merged = {(id_of(entry), replaced_by(entry)) for entry in archive if archive_reason(entry) == "merged"}
    above, below = {fact_id}, {fact_id}
    for _ in merged:
        above |= {into for source, into in merged if source in above}
        below |= {source for source, into in merged if into in below}
    return above | below - {""}


def _parted(facts: list[Fact], ids: set[str], keys: set[Key]) -> tuple[list[Fact], list[Fact]]:
    """The facts with one of these ids or keys, and the others."""
    gone = [fact for fact in facts if id_of(fact) in ids or key_of(fact) in keys]
    taken = set(map(id, gone))
    return gone, [fact for fact in facts if id(fact) not in taken]
