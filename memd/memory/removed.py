"""Removed facts: a fact that a person removed never returns by extraction or import; only a person may add it again.

The document keeps a tombstone for each: `{"hash", "removedAt", "threads"}`, oldest first, without the text.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from memd.context import digest
from memd.memory.document import Document, Fact, Tombstone, tombstones_of
from memd.memory.facts import content_of, threads_of
from memd.memory.text import normal_key

MAX_REMOVED = 1_000
"""Tombstones kept, about 100 bytes each; a full memory has 300 facts by default."""


def fact_hash(content: str) -> str:
    """The hash of a removed fact; contents that differ in width, case, punctuation or spacing share one."""
    return digest("removed", normal_key(content))


def hashes(document: Document) -> frozenset[str]:
    """The hashes of the facts that were removed from this document."""
    return frozenset(tombstone["hash"] for tombstone in tombstones_of(document))


def refusal(removed: Container[str], content: str) -> str | None:
    """`removed` when a person took this fact out; the first argument is what `hashes` returns."""
    return "removed" if removed and fact_hash(content) in removed else None


def buried(document: Document, facts: Iterable[Fact], now: str) -> list[Tombstone]:
    """The tombstones after these facts were removed; the oldest go when there are too many."""
    new: dict[str, Tombstone] = {}
    for fact in facts:
        name = fact_hash(content_of(fact))
        threads = [*new.get(name, {}).get("threads", ()), *threads_of(fact)]
        new[name] = {"hash": name, "removedAt": now, "threads": list(dict.fromkeys(threads))}
    kept = [tombstone for tombstone in tombstones_of(document) if tombstone["hash"] not in new]
    return [*kept, *new.values()][-MAX_REMOVED:]


def imported(document: Document, facts: Iterable[Fact], tombstones: Iterable[Tombstone]) -> list[Tombstone]:
    """The tombstones with those of an import before them; one whose fact is in the memory stays away."""
    held = hashes(document) | {fact_hash(content_of(fact)) for fact in facts}
    new = [tombstone for tombstone in tombstones if tombstone["hash"] not in held]
    return [*new, *tombstones_of(document)][-MAX_REMOVED:]


def lifted(document: Document, content: str) -> Document:
    """The document without the tombstone of this fact; the same object when it has none."""
    name = fact_hash(content)
    tombstones = tombstones_of(document)
    kept = [tombstone for tombstone in tombstones if tombstone["hash"] != name]
    return document if len(kept) == len(tombstones) else {**document, "removed": kept}
