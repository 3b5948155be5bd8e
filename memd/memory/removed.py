"""Removed facts: a fact that a person removed never returns by extraction or import; only a person may add it again.

The document keeps a tombstone for each: `{"hash", "removedAt", "threads", "turns"}`, oldest first, without the text. It
holds for facts about the same person. Hashes of older versions name nobody: they hold for facts about everybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memd.context import digest
from memd.memory import suspended
from memd.memory.document import Document, Fact, Tombstone, revision_of, tombstones_of
from memd.memory.facts import content_of, person_of, threads_of
from memd.memory.text import names, normal_key

MAX_REMOVED = 1_000
"""Tombstones kept, about 100 bytes each; a full memory has 300 facts by default."""


def fact_hash(content: str, person: str = "") -> str:
    """The hash of a removed fact about this person (folded; "": the user).

    Contents that differ in width, case, punctuation or spacing share one, and so does a sentence that names the person
    with one that does so without a subject.
    """
    key = normal_key(content)
    return digest("removed", key, "" if names(key, person) else person)


def _hashes_of(content: str, person: str) -> frozenset[str]:
    """The hashes under which a fact may be removed: its own, and those that older versions wrote."""
    key = normal_key(content)
    return frozenset((fact_hash(content, person), digest("removed", key, person), digest("removed", key)))


def hashes(document: Document, *, said_anew: bool = False) -> frozenset[str]:
    """The hashes of the facts that were removed from this document, or are suspended in it.

    `said_anew`: what the user says now; facts that a wish to forget everything suspended may be told again.
    """
    waiting = suspended.facts_of(document)
    if said_anew:
        waiting = [fact for fact in waiting if fact.get(suspended.WHY) != suspended.ALL]
    held = (fact_hash(content_of(fact), person_of(fact)) for fact in waiting)
    return frozenset((*(tombstone["hash"] for tombstone in tombstones_of(document)), *held))


def turn_hashes(document: Document) -> frozenset[str]:
    """The hashes (`turn_hash`) of the turns that were removed with a fact, and that no append or import brings back."""
    entries = (tombstone.get("turns") for tombstone in tombstones_of(document))
    return frozenset(name for names in entries if isinstance(names, list) for name in names if isinstance(name, str))


def refusal(removed: frozenset[str], content: str, person: str = "") -> str | None:
    """`removed` when a person took this fact about this person out; the first argument is what `hashes` returns."""
    return "removed" if removed and not removed.isdisjoint(_hashes_of(content, person)) else None


def buried(document: Document, facts: Iterable[Fact], now: str, turns: Sequence[str] = ()) -> list[Tombstone]:
    """The tombstones after these facts were removed; the oldest go when there are too many.

    `turns`: the hashes of the turns that went with them, or that proved them; the last tombstone keeps them.
    """
    new: dict[str, Tombstone] = {}
    for fact in facts:
        name = fact_hash(content_of(fact), person_of(fact))
        threads = [*new.get(name, {}).get("threads", ()), *threads_of(fact)]
        new[name] = {"hash": name, "removedAt": now, "threads": list(dict.fromkeys(threads))}
    if new and turns:
        new[next(reversed(new))]["turns"] = list(turns)
    kept = [tombstone for tombstone in tombstones_of(document) if tombstone["hash"] not in new]
    return [*kept, *new.values()][-MAX_REMOVED:]


def marked(document: Document, now: str) -> list[Tombstone]:
    """The tombstones with one more, which names nothing: with it the store keeps no older copy of the document."""
    name = digest("removed mark", str(revision_of(document)), now)
    return [*tombstones_of(document), {"hash": name, "removedAt": now, "threads": []}][-MAX_REMOVED:]


def turns_buried(document: Document, turns: Sequence[str], now: str) -> list[Tombstone]:
    """The tombstones after turns were removed for a fact of another memory of the user, which this one may keep."""
    return [
        *tombstones_of(document),
        {"hash": digest("removed turns", *turns), "removedAt": now, "turns": list(turns)},
    ][-MAX_REMOVED:]


def imported(document: Document, facts: Iterable[Fact], tombstones: Iterable[Tombstone]) -> list[Tombstone]:
    """The tombstones with those of an import before them; one whose fact is in the memory stays away."""
    held = hashes(document).union(*(_hashes_of(content_of(fact), person_of(fact)) for fact in facts))
    new = [tombstone for tombstone in tombstones if tombstone["hash"] not in held]
    return [*new, *tombstones_of(document)][-MAX_REMOVED:]


def lifted(document: Document, content: str, person: str = "") -> Document:
    """The document without the tombstones of this fact; the same object when it has none."""
    names = _hashes_of(content, person)
    tombstones = tombstones_of(document)
    kept = [tombstone for tombstone in tombstones if tombstone["hash"] not in names]
    return document if len(kept) == len(tombstones) else {**document, "removed": kept}
