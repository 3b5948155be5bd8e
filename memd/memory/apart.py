"""Facts that stand apart from those of a document, in a field of their own: nothing injects, searches or sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from memd.memory.document import Document, Fact


def facts_in(document: Document, field: str) -> list[Fact]:
    """The facts of a field, oldest first; entries without an id or a content are skipped."""
    entries = document.get(field)
    return [entry for entry in entries if _is_fact(entry)] if isinstance(entries, list) else []


def with_facts_in(document: Document, field: str, facts: Sequence[Fact]) -> Document:
    """The document with these facts in the field; without the field when there are none."""
    left = {name: value for name, value in document.items() if name != field}
    return {**left, field: list(facts)} if facts else left


def _is_fact(entry: Any) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("content"), str) and isinstance(entry.get("id"), str)
