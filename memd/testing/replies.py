"""Replies of the model server: scripted ones, and the default of one fact for each new user message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memd.context import estimate_tokens
from memd.extraction.prompt import parse_messages

UPDATE_PARTS: dict[str, Any] = {"summaries": {}, "newFacts": [], "confirmedFacts": [], "retiredFacts": []}

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}

QUOTE_CHARS = 1_000
"""Only this much of a longer message is quoted."""


@dataclass(frozen=True)
class Reply:
    """One reply. `body`: its exact bytes; None: the responder's answer, with this stop_reason."""

    status: int = 200
    body: bytes | None = None
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


def message_body(text: str, request: dict[str, Any], stop_reason: str, cached: bool) -> bytes:
    """A response of the Messages API with one text block. Tokens are estimated; the system blocks count as cached."""
    prefix = estimate_tokens(json.dumps(request.get("system", ""), ensure_ascii=False))
    rest = estimate_tokens(json.dumps(request.get("messages", ""), ensure_ascii=False))
    answer = {
        "id": "msg_test",
        "type": "message",
        "role": "assistant",
        "model": request.get("model", ""),
        "content": [{"type": "text", "text": text}],
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            "input_tokens": rest,
            "output_tokens": estimate_tokens(text),
            "cache_creation_input_tokens": 0 if cached else prefix,
            "cache_read_input_tokens": prefix if cached else 0,
        },
    }
    return json.dumps(answer, ensure_ascii=False).encode()


def error_body(status: int, message: str) -> bytes:
    """The API's error envelope for a status."""
    kind = ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
