"""mem0: what `get_all()` returns, `{"results": [...]}` or the plain list. mem0 returns it in pages, without a word."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from memd.context import DEFAULT_AGENT
from memd.memory.document import Fact
from memd.memory.hand.formats.parcels import ImportContents, Parcel, entries, named_otherwise, of_user

PAGE = 20
"""Memories that `Memory.get_all()` returns unless it is called with another `top_k`."""


def recognises(value: Any) -> bool:
    """Whether it is a list of any kind, or an object with `results`; other lists are recognised before this one."""
    return isinstance(value, list) or (isinstance(value, dict) and isinstance(value.get("results"), list))


def read(value: Any, user_id: str) -> ImportContents:
    """One parcel."""
    items = entries(value, "results")
    refused: Counter[str] = Counter()
    facts: list[Fact] = []
    for item in of_user(items, user_id, refused):
        if not isinstance(item.get("memory"), str):
            refused["no_text"] += 1
        else:
            facts.append(_fact(item))
    parcel = Parcel("mem0", None, DEFAULT_AGENT, tuple(facts), refused=refused)
    return ImportContents("mem0", (parcel,), notes=(*named_otherwise(items, user_id), *_missing(value, len(items))))


def _fact(item: dict[str, Any]) -> Fact:
    """A memory of mem0 as a fact; `imports` fills in what is absent."""
    metadata = item["metadata"] if isinstance(item.get("metadata"), dict) else {}
    categories = item.get("categories")
    listed = categories[0] if isinstance(categories, list) and categories else None
    return {
        "id": item.get("id"),
        "content": item["memory"],
        "category": metadata.get("category", listed),
        "createdAt": item.get("created_at"),
        "updatedAt": item.get("updated_at"),
        "source": item.get("run_id"),
    }


def _missing(value: Any, count: int) -> Iterator[str]:
    """What says that this is only a page."""
    page = value if isinstance(value, dict) else {}
    total = page.get("count")
    if page.get("next") or page.get("previous"):
        of = f" of {total:,}" if isinstance(total, int) else ""
        yield f"this is one page of mem0's answer, {count:,}{of} memories: import its other pages, too (page=2, …)"
    elif count == PAGE and total is None:
        yield f"mem0's get_all() returns {PAGE} memories unless it is called with a higher top_k: there may be more"
