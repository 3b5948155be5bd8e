"""Replies of the model server: scripted ones, and the default of one fact for each new user message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.extraction.prompt import parse_messages

UPDATE_PARTS: dict[str, Any] = {"summaries": {}, "newFacts": [], "confirmedFacts": [], "retiredFacts": []}

QUOTE_CHARS = 1_000
"""Only this much of a longer message is quoted."""


@dataclass(frozen=True)
class Reply:
    """One reply. `body`: its exact bytes; else `text`: of the model, or of an error; else the responder's answer."""

    status: int = 200
    body: bytes | None = None
    text: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stop_reason: str = "end_turn"
    delay_s: float = 0.0
    drop_after: int | None = None
    """Close the connection after this many bytes of the body; 0: before the status line."""
    drip: tuple[int, float] | None = None
    """(bytes, seconds): send the body in chunks of this many bytes, with a pause after each."""


class Refused(Exception):
    """Raised by a responder to answer with the API's error envelope, as a real endpoint does for some content."""

    def __init__(self, status: int, message: str = "scripted") -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def facts_from_messages(request: dict[str, Any]) -> dict[str, Any]:
    """The default responder: each new user message becomes one fact with exactly its text as content and quote.

    So the final documents of a run can be computed from what was pushed.
    """
    prompt = request["messages"][-1]["content"]
    return {
        "newFacts": [
            {
                "content": message.content[:QUOTE_CHARS],
                "category": "context",
                "confidence": 0.9,
                "scope": "user",
                "durability": "durable",
                "authority": "descriptive",
                "evidence": [{"message": message.number, "quote": message.content[:QUOTE_CHARS]}],
            }
            for message in parse_messages(prompt)
            if message.role == "user"
        ]
    }
