"""Ids of facts."""

from __future__ import annotations

from collections.abc import Container

from memd.context import digest
from memd.memory.document import Document, agent_of, user_of


def new_id(document: Document, revision: int, content: str, index: int, used: Container[str]) -> str:
    """`fact_` and 8 hex digits, not in `used`; the same input gives the same id."""
    fields = ("fact", user_of(document), agent_of(document), str(revision), content, str(index))
    salt = 0
    while (fact_id := "fact_" + digest(*fields, str(salt), size=4)) in used:
        salt += 1
    return fact_id
