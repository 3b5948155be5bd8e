"""Replies of a model that calls a tool, in the shape of the Chat Completions API."""

from __future__ import annotations

import json
from typing import Any


def calling(tool: str, given: dict[str, Any]) -> bytes:
    """The body of a reply that calls this tool."""
    call = {"id": "call_1", "type": "function", "function": {"name": tool, "arguments": json.dumps(given)}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    return json.dumps(
        {
            "id": "chatcmpl-test",
            "object": "chat.completion",
            "created": 1_790_000_000,
            "model": "test",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
    ).encode()


def system_of(body: dict[str, Any]) -> str:
    """The words of a request's system messages."""
    return "\n".join(_words(message) for message in body["messages"] if message["role"] in ("system", "developer"))


def results_of(body: dict[str, Any]) -> list[str]:
    """The results of tools in a request."""
    return [_words(message) for message in body["messages"] if message["role"] == "tool"]


def _words(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())
