"""One response of the Chat Completions API as a message of the Messages API, so that one reader serves both protocols.

What servers add is left out: reasoning, log probabilities, further choices.
"""

from __future__ import annotations

from typing import Any

from memd.extraction import failures

_STOP_REASONS = {
    "stop": "end_turn",
    "length": "max_tokens",
    "content_filter": "refusal",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
}


def as_message(body: dict[str, Any]) -> dict[str, Any]:
    """Content blocks, stop reason and usage of a completion. Raises ExtractionFailed for any other body."""
    choices = body.get("choices")
    choice: Any = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict) or not isinstance(choice.get("message"), dict):
        raise failures.unavailable("not_the_api")
    if failures.is_error(choice):  # a router's provider failed after the status was sent
        raise failures.from_status(200, choice, {})
    message, reason = choice["message"], choice.get("finish_reason")
    refused = isinstance(message.get("refusal"), str) and message["refusal"].strip()
    return {
        "content": _blocks(message),
        "stop_reason": "refusal" if refused else _STOP_REASONS.get(reason, reason) if isinstance(reason, str) else None,
        "usage": _usage(body.get("usage")),
    }


def _blocks(message: dict[str, Any]) -> list[Any]:
    """The text, as one string or in parts, and the arguments of tool calls."""
    content = message.get("content")
    blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else []
    if isinstance(content, list):
        blocks = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
    calls = message.get("tool_calls")
    older = {"function": message.get("function_call")}  # one call, in servers of an older version
    for call in [*(calls if isinstance(calls, list) else []), older]:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            blocks.append({"type": "tool_use", "input": function.get("arguments")})  # JSON as text
    return blocks


def _usage(value: object) -> dict[str, Any]:
    """The tokens under their names in the Messages API, where the input excludes cached tokens."""
    fields = value if isinstance(value, dict) else {}
    details = fields.get("prompt_tokens_details")
    details = details if isinstance(details, dict) else {}
    cached = _count(details.get("cached_tokens", fields.get("prompt_cache_hit_tokens")))
    written = _count(details.get("cache_write_tokens", fields.get("cache_creation_input_tokens")))
    return {
        "input_tokens": max(0, _count(fields.get("prompt_tokens")) - cached - written),
        "output_tokens": fields.get("completion_tokens"),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written,
    }


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
