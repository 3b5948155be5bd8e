"""LangGraph: the items of a store, as `[item.dict() for item in store.search(prefix, limit=…)]`, the items that
LangGraph's server returns (`{"items": [...]}`), or the rows of the table `store` (SQLite, PostgreSQL).

A value is whatever its app put there. Its text is the fact; a value without a text is read field by field.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import orjson

from memd.context import DEFAULT_AGENT
from memd.memory.document import Fact
from memd.memory.hand.formats.parcels import ImportContents, Parcel, entries, first_entry, refuse, text_at

PAGE = 10
"""Items that `store.search()` returns unless it is called with another `limit`."""

NOTES = (f"LangGraph's search() returns {PAGE} items unless it is called with a higher limit: there may be more",)

TEXTS = ("content", "text", "memory", "fact", "data", "value", "summary")
"""The fields in which an app keeps a memory's text, the first of them that is text. LangMem nests it: its
`{"kind": "Memory", "content": {"content": …}}`."""

MAX_FIELDS = 50
"""Fields of one value that are read as facts."""


def recognises(value: Any) -> bool:
    """Whether the items have a namespace (or a prefix), and a value."""
    first = first_entry(value, "items")
    return "value" in first and ("namespace" in first or "prefix" in first)


def read(value: Any, user_id: str) -> ImportContents:
    """One parcel: the items of namespaces that name the user, or all when there is one namespace only."""
    items = entries(value, "items")
    refused: Counter[str] = Counter()
    facts = [fact for item in _own(items, user_id, refused) for fact in _facts(item, refused)]
    parcel = Parcel("langgraph", None, DEFAULT_AGENT, tuple(facts), refused=refused)
    return ImportContents("langgraph", (parcel,), notes=NOTES if len(items) == PAGE else ())


def _own(items: list[dict[str, Any]], user_id: str, refused: Counter[str]) -> list[dict[str, Any]]:
    """Nobody must get another user's memories: where namespaces differ, only those that name the user count."""
    namespaces = [_namespace(item, number) for number, item in enumerate(items)]
    if len(set(namespaces)) <= 1:
        return items
    own = [item for item, namespace in zip(items, namespaces, strict=True) if user_id in namespace]
    if not own:
        refuse(
            "E_IMPORT_OWNER",
            "the items have several namespaces, and none of them names this user: import the items of one namespace",
            "items",
        )
    refused["other_namespace"] += len(items) - len(own)
    return own


def _namespace(item: dict[str, Any], number: int) -> tuple[str, ...]:
    """The parts of an item's namespace; in the rows of a table they are joined by dots."""
    parts = item.get("namespace", item.get("prefix"))
    if isinstance(parts, str):
        return tuple(parts.split("."))
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        refuse("E_IMPORT_SHAPE", f"items[{number}].namespace must be a list of texts", f"items[{number}].namespace")
    return tuple(parts)


def _facts(item: dict[str, Any], refused: Counter[str]) -> Iterator[Fact]:
    value = item["value"] if isinstance(item.get("value"), dict) else _parsed(item.get("value"))
    nested = value.get("content")
    inner = nested if isinstance(nested, dict) else value
    fields: Fact = {"category": text_at(inner, "category", "memory_type") or text_at(value, "category", "memory_type")}
    fields |= {"createdAt": item.get("created_at"), "updatedAt": item.get("updated_at")}
    if text := text_at(inner, *TEXTS):
        yield {**fields, "content": text}
        return
    said = [f"{name}: {_words(entry)}" for name, entry in inner.items() if _words(entry)][:MAX_FIELDS]
    refused["no_text"] += not said
    yield from ({**fields, "content": sentence} for sentence in said)


def _words(value: object) -> str:
    """A scalar, or a list of scalars, in words; "" for anything else."""
    if isinstance(value, bool) or value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_words, value)))
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _parsed(value: object) -> dict[str, Any]:
    """The value of a table's row, which is JSON as text; empty when it is no object."""
    try:
        found = orjson.loads(value) if isinstance(value, str) else None
    except orjson.JSONDecodeError:  # a plain text
        found = {"text": value}
    return found if isinstance(found, dict) else {}
