"""The scripted month of one user: conversations, each with the reply of a good but imperfect model.

The model refers to facts by the names of the script; their ids differ from run to run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memd.evaluation.made_secrets import with_tokens
from memd.memory.document import Document

DATA = Path(__file__).parents[1] / "data" / "month" / "conversations.jsonl"
USER = "lin"
NOBODY = "fact_ffffffff"
"""The model's name for a fact that was never stored."""


@dataclass(frozen=True)
class Conversation:
    """One conversation, its recorded reply, and the counts that memd must refuse and redact, by reason."""

    thread: str
    at: datetime
    messages: list[dict[str, Any]]
    answer: dict[str, Any]
    refused: dict[str, int]
    redacted: int


def conversations() -> Iterator[Conversation]:
    """The conversations in order."""
    for line in DATA.read_text(encoding="utf-8").splitlines():
        fields = json.loads(with_tokens(line))
        yield Conversation(**{**fields, "at": datetime.fromisoformat(fields["at"])})


def said(talk: Conversation) -> list[str]:
    """The user's messages of a conversation, as pushed."""
    return [message["content"] for message in talk.messages if message["role"] == "user"]


def contents(*names: str) -> list[str]:
    """The contents of the facts with these names."""
    pieces = (one for talk in conversations() for part in _NAMED for one in talk.answer.get(part, ()))
    by_name = {piece["name"]: piece["content"] for piece in pieces}
    return [by_name[name] for name in names]


_NAMED = ("newFacts", "mergedFacts")


class Names:
    """The script's names of the facts."""

    def __init__(self) -> None:
        self._contents: dict[str, str] = {}

    def resolved(self, answer: dict[str, Any], document: Document) -> dict[str, Any]:
        """The reply in its wire format, with the document's ids in place of the names."""
        for piece in (*answer["newFacts"], *answer.get("mergedFacts", ())):
            self._contents[piece["name"]] = piece["content"]
        ids = {fact["content"]: fact["id"] for fact in (*document["archive"], *document["facts"])}
        return {part: self._part(pieces, ids) for part, pieces in answer.items()}

    def of(self, facts: list[dict[str, Any]]) -> list[str]:
        """The script's names of these facts; facts with the same words have the first name."""
        names: dict[str, str] = {}
        for name, content in self._contents.items():
            names.setdefault(content, name)
        return [names[fact["content"]] for fact in facts]

    def _part(self, pieces: Any, ids: dict[str, str]) -> Any:
        if isinstance(pieces, dict):
            return pieces
        return [
            {field: self._value(value, ids) for field, value in piece.items() if field != "name"} for piece in pieces
        ]

    def _value(self, value: Any, ids: dict[str, str]) -> Any:
        if isinstance(value, list):
            return [self._value(one, ids) for one in value]
        if isinstance(value, str) and value.startswith("@"):
            return ids.get(self._contents[value[1:]], NOBODY)
        return value
