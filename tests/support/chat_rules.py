"""What providers accept: the rules for which they refuse a request, at the strictest of their servers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC = {
    "user": {"text", "image", "document", "tool_result"},
    "assistant": {"text", "tool_use", "thinking", "redacted_thinking"},
}


def check_accepted(call: dict[str, Any], shape: str) -> None:
    """Fail where a provider of this shape would refuse the messages."""
    messages = call["messages"]
    assert messages
    if shape == "anthropic":
        _check_anthropic(messages)
        assert isinstance(call.get("system", ""), str)
        assert set(call) <= {"messages", "system"}
    else:
        _check_openai(messages)
        assert set(call) == {"messages"}


def _check_anthropic(messages: list[dict[str, Any]]) -> None:
    assert messages[0]["role"] == "user"
    assert all(first["role"] != second["role"] for first, second in pairwise(messages))
    ids: list[str] = []
    for number, message in enumerate(messages):
        assert set(message) == {"role", "content"}
        blocks = _blocks(message["content"])
        assert {block["type"] for block in blocks} <= _ANTHROPIC[message["role"]]
        assert all(block["text"].strip() for block in blocks if block["type"] == "text")
        assert message["role"] == "user" or "thinking" not in blocks[-1]["type"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert [block["type"] for block in blocks[: len(results)]] == ["tool_result"] * len(results)
        asked = _blocks(messages[number - 1]["content"]) if number else []
        assert sorted(results) == sorted(block["id"] for block in asked if block["type"] == "tool_use")
        for block in blocks:
            if block["type"] == "tool_use":
                assert _ID.fullmatch(block["id"])
                assert isinstance(block["input"], dict)
                assert number + 1 < len(messages)
                ids.append(block["id"])
    assert len(set(ids)) == len(ids)


def _check_openai(messages: list[dict[str, Any]]) -> None:
    spoken = [message for message in messages if message["role"] != "system"]
    assert spoken[0]["role"] == "user"
    waiting: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            waiting.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
            continue
        assert not waiting
        calls = message.get("tool_calls", [])
        waiting = {call["id"] for call in calls}
        assert len(waiting) == len(calls)
        assert all(isinstance(call["function"]["arguments"], str) for call in calls)
        assert message["content"] or calls
        parts = message["content"] if isinstance(message["content"], list) else []
        assert not parts or message["role"] == "user"
        assert {part["type"] for part in parts} <= {"text", "image_url", "input_audio", "file"}
    assert not waiting
    assert all(a["role"] != b["role"] or a["role"] == "tool" for a, b in pairwise(messages))


def _blocks(content: Any) -> list[dict[str, Any]]:
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    assert blocks
    return blocks
