"""Turns: one form for messages in the formats of OpenAI, Anthropic, Gemini, Bedrock, AI SDK and LangChain.

docs/wire.md lists the shapes. Validation asks `unwrapped` and `kind_of`, so what it lets pass is read here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from memd.push.content import Block, ends_in_words, listed, sort_of, text_of
from memd.push.strict_json import refuse

Kind = Literal["user", "assistant", "tool", "system", "reasoning"]

ROLES: dict[str, Kind] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "bot": "assistant",
    "chatbot": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "ipython": "tool",
    "system": "system",
    "developer": "system",
    "data": "system",
    "remove": "system",
    "reasoning": "reasoning",
}
"""Roles and LangChain types. Class names have `Message`, `Chunk` or both behind them."""

ITEMS: dict[str, Kind] = {
    "mcp_list_tools": "tool",
    "mcp_approval_request": "tool",
    "mcp_approval_response": "tool",
    "compaction": "system",
}
"""Items of OpenAI Responses, which have a type and no role."""

CALL, OUTPUT = "_call", "_call_output"
"""How the types of the other items end: `function_call`, `web_search_call`, `shell_call_output` and the like."""

MAX_ROLE_CHARS = 64

UNKNOWN = "unknown_block"
"""The kind under which blocks are counted that memd does not know: they are not read."""

_PLAIN = frozenset({"role", "type", "content", "id", "created_at", "name"})
"""The fields of a message that is only text, as most are."""


class RawTurn(NamedTuple):
    """One message: who speaks, the text, and what it carried besides text."""

    kind: Kind
    text: str
    calls_tools: bool
    hidden: bool
    has_files: bool
    id: Any
    created_at: Any
    name: Any = None
    """Who speaks, where the message says so."""

    cut: tuple[tuple[str, str], ...] = ()
    """The blocks that were cut out, each with its kind; of an unknown block not its content, but its type."""

    @property
    def has_unknown(self) -> bool:
        """Whether it has blocks that memd does not know."""
        return any(kind == UNKNOWN for kind, _ in self.cut)


def unwrapped(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message itself where LangChain wraps it: `messages_to_dict` under `data`, `dumpd` under `kwargs`."""
    if "data" in message and isinstance(data := message["data"], Mapping) and message.keys() <= {"type", "data"}:
        return {"type": message.get("type"), **data}
    if "lc" in message and isinstance(kwargs := message.get("kwargs"), Mapping):
        path = message.get("id")
        return {"type": path[-1] if isinstance(path, list) and path else None, **kwargs}
    return message


def kind_of(message: Mapping[str, Any]) -> Kind:
    """Who speaks in an unwrapped message. Raises Rejected for a role that memd does not know."""
    name = message.get("role") or message.get("type")
    if not isinstance(name, str) or len(name) > MAX_ROLE_CHARS:
        sentence = f"a message needs a role (or LangChain's type) of 1 to {MAX_ROLE_CHARS} characters"
        refuse("E_ROLE", sentence, "role", MAX_ROLE_CHARS)
    if plain := ROLES.get(name):  # the fast path: as nearly all are written
        return plain
    role = name.lower().removesuffix("chunk").removesuffix("message")
    kind = ROLES.get(role)
    if kind is None and not message.get("role"):
        kind = _kind_of_item(role)
    if kind is None:
        refuse("E_ROLE", "a message has a role that memd does not know; docs/wire.md lists the known ones", "role")
    return kind


def name_in(message: Mapping[str, Any], kind: Kind) -> Any:
    """The speaker's name in an unwrapped message of the user or the assistant. Elsewhere `name` is that of a tool."""
    speaks = kind == "user" or (kind == "assistant" and not str(message.get("type")).endswith(CALL))
    return message.get("name") if speaks else None


def to_turn(message: Mapping[str, Any]) -> RawTurn:
    """The turn of a message. Raises Rejected for content of a wrong type, and for a role that memd does not know."""
    content = message.get("content")
    if isinstance(content, str) and _PLAIN.issuperset(message):  # and so not wrapped
        role = message.get("role")
        kind = (ROLES.get(role) if isinstance(role, str) else None) or kind_of(message)
        name = name_in(message, kind) if "name" in message else None
        no = False
        return RawTurn(kind, content, no, no, no, message.get("id"), message.get("created_at"), name)
    message = unwrapped(message)
    content, parts = message.get("content"), message.get("parts")
    if content is not None and not isinstance(content, (str, list)):
        refuse("E_CONTENT_TYPE", "content must be text or a list of blocks", "content")
    if parts is not None and not isinstance(parts, list):
        refuse("E_CONTENT_TYPE", "parts must be a list", "parts")
    kind = kind_of(message)
    if kind == "user" and "content" not in message and "parts" not in message:
        refuse("E_CONTENT_MISSING", "a user's message needs content or parts", "content")
    name = name_in(message, kind)
    blocks = _blocks(message)
    sorts = set(map(sort_of, blocks))
    if kind == "user" and sorts == {"result"}:
        kind = "tool"  # Anthropic, Bedrock and Gemini send tool results as a user's turn
    return RawTurn(
        kind=kind,
        text="\n".join(_words(message)),
        calls_tools=_calls(message) or (kind == "assistant" and not ends_in_words(blocks)),
        hidden=is_hidden(message),
        has_files="file" in sorts,
        id=message.get("id"),
        created_at=message.get("created_at"),
        name=name,
        cut=tuple(
            (UNKNOWN, str(block.get("type"))[:MAX_ROLE_CHARS]) for block in blocks if sort_of(block) == "unknown"
        ),
    )


def is_hidden(message: Mapping[str, Any]) -> bool:
    """Whether the app hides a message from people, and it is not the user's answer to a form (flags of DeerFlow)."""
    extra = _mapping(message.get("additional_kwargs"))
    if not (extra.get("hide_from_ui") or message.get("hide_from_ui")):
        return False
    answer = _mapping(extra.get("human_input_response") or message.get("human_input_response"))
    return answer.get("kind") != "human_input_response"


def _words(message: Mapping[str, Any]) -> list[str]:
    """The texts of an unwrapped message. Where it has `parts` and a text as `content`, they say the same."""
    content = message.get("content")
    if isinstance(content, str) and content:
        return [content]
    return [text_of(block) for block in _blocks(message) if sort_of(block) == "text"]


def _kind_of_item(name: str) -> Kind | None:
    if name.endswith(CALL):
        return "assistant"
    return "tool" if name.endswith(OUTPUT) else ITEMS.get(name)


def _blocks(message: Mapping[str, Any]) -> list[Block]:
    """The blocks of `parts` (Gemini, AI SDK) and `content`, the latter unless both have words and it is a text."""
    parts, content = message.get("parts"), message.get("content")
    if parts is None and isinstance(calls := message.get("toolInvocations"), list):  # AI SDK before it had parts
        parts = [{"type": "tool-invocation", "toolInvocation": call} for call in calls]
    if content is None and isinstance(message.get("audio"), Mapping):  # OpenAI Chat's spoken reply
        content = [{"type": "output_audio", **message["audio"]}]
    blocks = listed(parts)
    if isinstance(content, str) and any(map(text_of, blocks)):
        return blocks
    return blocks + listed(content)


def _calls(message: Mapping[str, Any]) -> bool:
    """Whether a message calls tools beside its blocks: OpenAI's and LangChain's fields, and items of Responses."""
    extra = _mapping(message.get("additional_kwargs"))
    if any(fields.get(name) for fields in (message, extra) for name in ("tool_calls", "function_call")):
        return True
    return not message.get("role") and str(message.get("type")).endswith(CALL)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
