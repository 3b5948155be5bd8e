"""Redis' agent-memory-server: long-term memories as its search returns them, `{"memories": [...], "total": …}`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from memd.context import DEFAULT_AGENT
from memd.memory.document import Fact
from memd.memory.hand.formats.parcels import ImportContents, Parcel, entries, first_entry, named_otherwise, of_user

CATEGORIES = {"episodic": "event"}
"""Its types of memory as categories; the others name none."""


def recognises(value: Any) -> bool:
    """Whether it is a list of records with a text and a type."""
    first = first_entry(value, "memories")
    return isinstance(first.get("text"), str) and bool({"memory_type", "memory_hash", "session_id"} & first.keys())


def read(value: Any, user_id: str) -> ImportContents:
    """One parcel. Records of the type `message` are turns of a conversation, not memories."""
    items = entries(value, "memories")
    refused: Counter[str] = Counter()
    facts: list[Fact] = []
    for item in of_user(items, user_id, refused):
        if item.get("memory_type") == "message":
            refused["conversation_message"] += 1
        elif not isinstance(item.get("text"), str):
            refused["no_text"] += 1
        else:
            facts.append(_fact(item))
    parcel = Parcel("redis", None, DEFAULT_AGENT, tuple(facts), refused=refused)
    return ImportContents("redis", (parcel,), notes=(*named_otherwise(items, user_id), *_missing(value, len(items))))


def _fact(item: dict[str, Any]) -> Fact:
    kind = item.get("memory_type")
    return {
        "content": item["text"],
        "category": CATEGORIES.get(kind) if isinstance(kind, str) else None,
        "createdAt": item.get("created_at"),
        "updatedAt": item.get("updated_at"),
        "source": item.get("session_id"),
    }


def _missing(value: Any, count: int) -> Iterator[str]:
    """What says that this is only a page."""
    page = value if isinstance(value, dict) else {}
    total, following = page.get("total"), page.get("next_offset")
    if following is not None or (isinstance(total, int) and total > count):
        of = f" of {total:,}" if isinstance(total, int) else ""
        yield f"this is one page, {count:,}{of} memories: import its other pages, too (limit and offset of the search)"
