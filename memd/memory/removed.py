"""Removed facts: what a person took out does not come back by extraction or import; only a hand may add it again.

The document's field `removed` holds `{"hash", "removedAt", "threads"}`, oldest first: what it is known by, no text.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

from memd.context import digest
from memd.memory.document import Document, Fact
from memd.memory.text import normal_key

FIELD = "removed"

MAX_REMOVED = 1_000
"""Tombstones kept, ten times the facts of a full memory at default settings; about 100 bytes each."""


def fact_hash(content: str) -> str:
    """What a removed fact is known by: the same for all contents that differ in width, case, punctuation, spacing."""
    return digest("removed", normal_key(content))


def hashes(document: Document) -> frozenset[str]:
    """What the facts removed from this document are known by."""
    return frozenset(entry["hash"] for entry in document.get(FIELD, ()))


def refusal(known: Container[str], content: str) -> str | None:
    """`removed` when the fact was taken out by hand; `known` as `hashes` gives them."""
    return "removed" if known and fact_hash(content) in known else None


def buried(document: Document, facts: Iterable[Fact], now: str) -> list[dict[str, Any]]:
    """The tombstones once these facts were removed at `now`: the oldest go when there are too many."""
    new: dict[str, dict[str, Any]] = {}
    for fact in facts:
        name = fact_hash(fact["content"])
        threads = [*new.get(name, {}).get("threads", ()), *_threads(fact)]
        new[name] = {"hash": name, "removedAt": now, "threads": list(dict.fromkeys(threads))}
    kept = [entry for entry in document.get(FIELD, ()) if entry["hash"] not in new]
    return [*kept, *new.values()][-MAX_REMOVED:]


def lifted(document: Document, content: str) -> Document:
    """The document that may hold this fact again; the same one when it may already."""
    name = fact_hash(content)
    entries = document.get(FIELD, ())
    kept = [entry for entry in entries if entry["hash"] != name]
    return document if len(kept) == len(entries) else {**document, FIELD: kept}


def _threads(fact: Fact) -> list[str]:
    """The threads of a fact's evidence."""
    pieces = fact.get("evidence")
    named = [piece.get("thread") for piece in pieces if isinstance(piece, dict)] if isinstance(pieces, list) else []
    return [thread for thread in named if isinstance(thread, str)]
