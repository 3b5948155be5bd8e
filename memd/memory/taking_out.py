"""Taking facts out of a document with all their versions, leaving tombstones. Pure: nothing is mutated."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from memd.memory import doubtful, refused, removed, scoped, suspended
from memd.memory.document import Document, Fact, archive_of, facts_of
from memd.memory.duplicates import Key, key_of
from memd.memory.facts import archive_reason, id_of, replaced_by
from memd.memory.purge import purge


class TakenOut(NamedTuple):
    """The document without these facts. `facts`: all that went, whose content is to be purged everywhere else."""

    document: Document
    facts: tuple[Fact, ...]
    found: bool
    """Whether any of the ids named a fact."""


def take_out(document: Document, ids: Collection[str]) -> TakenOut:
    """Take facts out, active, archived, suspended, doubtful, refused or scoped, with their versions in the archive.

    Facts that say the same of the same person go with them, and merges that they went into or were made of.
    """
    facts, archive, held = facts_of(document), archive_of(document), suspended.facts_of(document)
    doubted, unkept = doubtful.facts_of(document), refused.facts_of(document)
    elsewhere = scoped.facts_of(document)
    wanted, keys, found = set(ids), set[Key](), False
    for fact_id in ids:
        named = [fact for fact in (*facts, *held, *doubted, *unkept, *elsewhere) if id_of(fact) == fact_id]
        of_named = _keys(named)
        if not named:
            named = [entry for entry in archive if id_of(entry) == fact_id]
            of_named = _keys(named) - _keys(facts)
        found = found or bool(named)
        wanted |= _merges(archive, fact_id) if named else set()
        keys |= of_named
    gone, kept = _parted(facts, wanted, keys)
    old, entries = _parted(archive, wanted, keys)
    waiting, still = _parted(held, wanted, keys)
    unsure, unclear = _parted(doubted, wanted, keys)
    never, others = _parted(unkept, wanted, keys)
    passing, staying = _parted(elsewhere, wanted, keys)
    alive = _keys(kept)
    dead = [fact for fact in (*gone, *old, *waiting, *unsure, *never, *passing) if key_of(fact) not in alive]
    left = {**document, "facts": kept, "archive": entries}
    left = suspended.with_facts(left, still) if waiting else left
    left = doubtful.with_facts(left, unclear) if unsure else left
    left = scoped.with_facts(left, staying) if passing else left
    return TakenOut(refused.with_facts(left, others) if never else left, tuple(dead), found)


def buried(document: Document, facts: Sequence[Fact], now: str, turns: Sequence[str]) -> Document:
    """The document with tombstones of these facts, which have left it, and their content purged from all other texts.

    `turns`: the hashes of the turns that went with them, or that proved them.
    """
    return purge({**document, "removed": removed.buried(document, facts, now, turns)}, facts, now)


def _keys(facts: Iterable[Fact]) -> set[Key]:
    return set(map(key_of, facts))


def _merges(archive: list[Fact], fact_id: str) -> set[str]:
    """The ids of merges that contain a fact, and of facts that it was merged from, over several steps."""
    merged = {(id_of(entry), replaced_by(entry)) for entry in archive if archive_reason(entry) == "merged"}
    above, below = {fact_id}, {fact_id}
    for _ in merged:
        above |= {into for source, into in merged if source in above}
        below |= {source for source, into in merged if into in below}
    return above | below - {""}


def _parted(facts: Iterable[Fact], ids: set[str], keys: set[Key]) -> tuple[list[Fact], list[Fact]]:
    """The facts with one of these ids or keys, and the others."""
    gone = [fact for fact in facts if id_of(fact) in ids or key_of(fact) in keys]
    taken = set(map(id, gone))
    return gone, [fact for fact in facts if id(fact) not in taken]
