"""The two protocols of the model server: the same reply and the same error, each as its API words them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from memd.context import estimate_tokens

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

FINISH_REASONS = {
    "end_turn": "stop",
    "max_tokens": "length",
    "refusal": "content_filter",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
}


class Dialect(NamedTuple):
    """One protocol: the path of its calls, and how it words a reply and an error."""

    path: str
    reply: Callable[[str, dict[str, Any], str, bool], bytes]
    """The body for a text, the JSON of a request, a stop reason of the Messages API, and whether it is cached."""

    error: Callable[[int, str], bytes]
    prefix: Callable[[Mapping[str, Any]], str]
    """The part of a request that an endpoint would cache."""


def message_body(text: str, request: dict[str, Any], stop_reason: str, cached: bool) -> bytes:
    """A response of the Messages API with one text block. Tokens are estimated; the system blocks count as cached."""
    prefix = estimate_tokens(_system(request))
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
    """The error envelope of the Messages API for a status."""
    kind = ERROR_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def completion_body(text: str, request: dict[str, Any], stop_reason: str, cached: bool) -> bytes:
    """A response of the Chat Completions API. Its prompt tokens include the cached ones."""
    prefix = estimate_tokens(_first(request))
    rest = estimate_tokens(json.dumps(list(request.get("messages", ""))[1:], ensure_ascii=False))
    message = {"role": "assistant", "content": text, "refusal": None}
    answer = {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1_790_000_000,
        "model": request.get("model", ""),
        "choices": [{"index": 0, "message": message, "finish_reason": FINISH_REASONS.get(stop_reason, stop_reason)}],
        "usage": {
            "prompt_tokens": prefix + rest,
            "completion_tokens": estimate_tokens(text),
            "total_tokens": prefix + rest + estimate_tokens(text),
            "prompt_tokens_details": {"cached_tokens": prefix if cached else 0},
        },
    }
    return json.dumps(answer, ensure_ascii=False).encode()


def chat_error_body(status: int, message: str) -> bytes:
    """The error envelope of the Chat Completions API: its type and code say less than the status."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()


def _system(request: Mapping[str, Any]) -> str:
    return json.dumps(request.get("system", ""), ensure_ascii=False)


def _first(request: Mapping[str, Any]) -> str:
    messages = request.get("messages") or [""]
    return json.dumps(messages[0], ensure_ascii=False)


MESSAGES = Dialect("/v1/messages", message_body, error_body, _system)
CHAT = Dialect("/v1/chat/completions", completion_body, chat_error_body, _first)
DIALECTS = {dialect.path: dialect for dialect in (MESSAGES, CHAT)}
