"""Turns: one form for messages in the formats of OpenAI, Anthropic and LangChain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Kind = Literal["user", "assistant", "tool", "system"]

_KINDS: dict[str, Kind] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "aimessagechunk": "assistant",
    "humanmessagechunk": "user",
    "tool": "tool",
    "function": "tool",
    "system": "system",
    "developer": "system",
}
"""Roles and LangChain types; any other role belongs to the framework, like system."""

_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text"})
_CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "function_call"})
_PLAIN = frozenset({"role", "type", "content", "id", "created_at"})
"""The fields of a message that is only text, as most are."""

_RESULT_SUFFIX = "tool_result"


class Turn(NamedTuple):
    """One message: who speaks, the text, and what it carried besides text."""

    kind: Kind
    text: str
    calls_tools: bool
    hidden: bool
    has_files: bool
    id: Any
    created_at: Any


def to_turn(message: Mapping[str, Any]) -> Turn:
    """The turn of a validated message."""
    kind = _KINDS.get(str(message.get("role") or message.get("type")).lower(), "system")
    content = message.get("content")
    if isinstance(content, str) and _PLAIN.issuperset(message):
        return Turn(
            kind,
            content,
            calls_tools=False,
            hidden=False,
            has_files=False,
            id=message.get("id"),
            created_at=message.get("created_at"),
        )
    extra = _mapping(message.get("additional_kwargs"))
    blocks = _blocks(content)
    types = [str(block.get("type", "text")) for block in blocks]
    if kind == "user" and types and all(name.endswith(_RESULT_SUFFIX) for name in types):
        kind = "tool"  # Anthropic sends tool results as a user's turn
    return Turn(
        kind=kind,
        text="\n".join(_text(block) for block in blocks if block.get("type", "text") in _TEXT_BLOCKS),
        calls_tools=_calls(message) or _calls(extra) or not _CALL_BLOCKS.isdisjoint(types),
        hidden=bool(extra.get("hide_from_ui") or message.get("hide_from_ui")),
        has_files=any(name not in _TEXT_BLOCKS and not name.endswith(_RESULT_SUFFIX) for name in types),
        id=message.get("id"),
        created_at=message.get("created_at"),
    )


def _blocks(content: Any) -> list[Mapping[str, Any]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [{"type": "text", "text": part} if isinstance(part, str) else _mapping(part) for part in content or ()]


def _text(block: Mapping[str, Any]) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else ""


def _calls(fields: Mapping[str, Any]) -> bool:
    return bool(fields.get("tool_calls") or fields.get("function_call"))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
