"""The scripted month of one user: conversations, and what a good but imperfect model answered to each.

The model speaks of facts by the names that the script gives them; which id each has, only a run knows.
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
"""What the model names when it means a fact that was never stored."""


@dataclass(frozen=True)
class Conversation:
    """One conversation, the answer recorded for it, and what memd must refuse and cut out of it, by reason."""

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
    """What the user said in a conversation, as it was pushed."""
    return [message["content"] for message in talk.messages if message["role"] == "user"]


def contents(*names: str) -> list[str]:
    """What the facts with these names say."""
    pieces = (one for talk in conversations() for part in _NAMED for one in talk.answer.get(part, ()))
    by_name = {piece["name"]: piece["content"] for piece in pieces}
    return [by_name[name] for name in names]


_NAMED = ("newFacts", "mergedFacts")


class Names:
    """What the script calls the facts."""

    def __init__(self) -> None:
        self._contents: dict[str, str] = {}

    def resolved(self, answer: dict[str, Any], document: Document) -> dict[str, Any]:
        """The answer as the wire wants it, with the ids that the document has for the names."""
        for piece in (*answer["newFacts"], *answer.get("mergedFacts", ())):
            self._contents[piece["name"]] = piece["content"]
        ids = {fact["content"]: fact["id"] for fact in (*document["archive"], *document["facts"])}
        return {part: self._part(pieces, ids) for part, pieces in answer.items()}

    def of(self, facts: list[dict[str, Any]]) -> list[str]:
        """What the script calls these facts; those of the same words have the name that came first."""
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
