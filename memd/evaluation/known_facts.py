"""Known facts in saved replies: `{"fact": its words}` replaces an id, so that a reply fits every run.

Ids differ from run to run; the words of a fact do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from memd.extraction.short_ids import short_ids
from memd.memory.document import Document, facts_of
from memd.memory.duplicates import Contents
from memd.memory.facts import content_of, id_of, person_of

_ONE = frozenset({"id"})
_MANY = frozenset({"replaces", "sources", "facts"})
"""The fields of an update with a list of ids of known facts."""

_GONE = object()

NEAR = 0.8
"""Least similarity (see `memory.duplicates`) of a fact to the words of a reply when no fact has exactly these."""


def with_words(update: Any, document: Document) -> Any:
    """The update with `{"fact": words}` in place of each id that the document knows."""
    contents = {id_of(fact): content_of(fact) for fact in facts_of(document)}
    names = contents | {short: contents[fact_id] for fact_id, short in short_ids(contents).items()}

    def word(name: Any) -> Any:
        return {"fact": names[name]} if isinstance(name, str) and name in names else name

    def walk(value: Any, field: str) -> Any:
        if isinstance(value, Mapping):
            return {name: walk(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [word(inner) if field in _MANY else walk(inner, field) for inner in value]
        return word(value) if field in _ONE else value

    return walk(update, "")


def merges_of(update: Any) -> dict[str, list[Any]]:
    """The sources of each merged fact of an update, by its words."""
    merged = update.get("mergedFacts") if isinstance(update, Mapping) else None
    entries = [entry for entry in merged or () if isinstance(entry, Mapping)]
    return {entry["content"]: entry["sources"] for entry in entries if {"content", "sources"} <= set(entry)}


def without_merges(update: Any, document: Document, merges: Mapping[str, list[Any]]) -> Any:
    """The update with the sources of a merged fact in its place, where this document has no such fact.

    A run that did not ask for the merge has the sources apart; whoever saw them so would have named each.
    """
    known = {content_of(fact) for fact in facts_of(document)}

    def parts(name: Any, seen: tuple[str, ...] = ()) -> list[Any]:
        words = name.get("fact") if isinstance(name, Mapping) and set(name) == {"fact"} else None
        if not isinstance(words, str) or words in known or words in seen or words not in merges:
            return [name]
        return [part for source in merges[words] for part in parts(source, (*seen, words))]

    def items(value: Any) -> list[Any]:
        if isinstance(value, Mapping) and "id" in value:
            return [{**value, "id": part} for part in parts(value["id"])]
        return parts(value) if isinstance(value, Mapping) and set(value) == {"fact"} else [walk(value)]

    def walk(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: walk(inner) for name, inner in value.items()}
        return [item for inner in value for item in items(inner)] if isinstance(value, list) else value

    return walk(update)


def with_ids(update: Any, document: Document) -> Any:
    """The update with the ids of this document. References to facts that the document does not have are left out."""
    names = _Names(document)

    def walk(value: Any) -> Any:
        if isinstance(value, Mapping):
            if set(value) == {"fact"}:
                return names.id(value["fact"])
            fields = {name: walk(inner) for name, inner in value.items()}
            return _GONE if _GONE in fields.values() else fields
        if isinstance(value, list):
            return [inner for inner in map(walk, value) if inner is not _GONE]
        return value

    return walk(update)


class _Names:
    """Finds facts by their words."""

    def __init__(self, document: Document) -> None:
        self._facts = facts_of(document)
        self._contents = Contents(self._facts, NEAR)

    def id(self, words: Any) -> Any:
        if not isinstance(words, str):
            return _GONE
        exact = next((id_of(fact) for fact in self._facts if content_of(fact) == words), None)
        persons = dict.fromkeys(map(person_of, self._facts))
        near = (self._contents.same(words, person) or self._contents.near(words, person) for person in persons)
        return exact or next(filter(None, near), _GONE)
