"""Disputes: a fact of a project names those that it contradicts and may not replace (`disputes`). Pure."""

from __future__ import annotations

from collections.abc import Collection

from memd.memory.document import Document, Fact, facts_of
from memd.memory.facts import id_of


def disputed_with(document: Document, fact: Fact) -> set[str]:
    """The ids of the facts that a fact disputes, and of those that dispute it."""
    present = {id_of(one): one for one in facts_of(document)}
    mine = {one for one in fact.get("disputes", ()) if one in present}
    return mine | {name for name, one in present.items() if id_of(fact) in one.get("disputes", ())}


def without_disputes(document: Document, gone: Collection[str]) -> Document:
    """The document without disputes with facts that are gone."""
    return {**document, "facts": [_without(fact, gone) for fact in facts_of(document)]}


def _without(fact: Fact, gone: Collection[str]) -> Fact:
    held = fact.get("disputes", ())
    disputes = [one for one in held if one not in gone]
    if len(disputes) == len(held):
        return fact
    rest = {name: value for name, value in fact.items() if name != "disputes"}
    return {**rest, "disputes": disputes} if disputes else rest
