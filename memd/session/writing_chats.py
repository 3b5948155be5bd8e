"""Writes turns as the arguments of a model call, in the shape of Anthropic or OpenAI.

Both get the strictest form that any of their servers asks for: the first message is the user's, roles alternate,
results stand directly behind their calls. The turns have to be `paired`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal

from msgspec.structs import replace

from memd.session.chat import ChatBlock, ChatTurn, Other, Text, ToolResult, ToolUse, json_text
from memd.session.other_blocks import Side, for_anthropic, for_openai, is_thought

Shape = Literal["anthropic", "openai"]

OPENING = "[Start of the conversation]"
"""Said in the user's place where a conversation begins with the assistant: no provider takes that."""

_ID = re.compile(r"[^a-zA-Z0-9_-]")


def written(turns: Sequence[ChatTurn], shape: Shape = "anthropic", system: str = "") -> dict[str, Any]:
    """The arguments of a call: `messages`, and `system` where the shape has it apart and there is one.

    `system`: the app's own system prompt, before the system turns. Anthropic's shape has one system prompt, so its
    system turns go there from wherever they are; OpenAI's stay in their place.
    """
    if shape == "anthropic":
        words = "\n\n".join(filter(None, [system, *(turn.text for turn in turns if turn.role == "system")]))
        return {"messages": list(_anthropic(turns)), **({"system": words} if words else {})}
    first = [{"role": "system", "content": system}] if system else []
    return {"messages": [*first, *_openai(turns)]}


def _named(turns: Sequence[ChatTurn]) -> Iterator[ChatTurn]:
    """The turns, with the name before the words of a user's turn where several people speak."""
    several = len({turn.name for turn in turns if turn.role == "user" and turn.kind == "said"}) > 1
    for turn in turns:
        is_named = several and turn.name and turn.role == "user"
        yield replace(turn, blocks=(Text(f"{turn.name}:"), *turn.blocks)) if is_named else turn


def _opened(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages behind one of the user."""
    is_open = False
    for message in messages:
        if not is_open and message["role"] not in ("user", "system"):
            yield {"role": "user", "content": OPENING}
        is_open = is_open or message["role"] != "system"
        yield message
    if not is_open:
        yield {"role": "user", "content": OPENING}


def _anthropic(turns: Sequence[ChatTurn]) -> Iterator[dict[str, Any]]:
    spoken = (turn for turn in _named(turns) if turn.role != "system" and _says_something(turn))
    sides = groupby(spoken, _side_of)
    return _opened(_message(side, list(turns)) for side, turns in sides)


def _says_something(turn: ChatTurn) -> bool:
    """Whether anything of a turn is left for Anthropic: not of one that is only a thought of another model."""
    if turn.blocks and not isinstance(turn.blocks[0], Other):  # the fast path: nearly all turns
        return True
    return any(not isinstance(block, Other) or for_anthropic(block.raw, _side_of(turn)) for block in turn.blocks)


def _side_of(turn: ChatTurn) -> Side:
    return "assistant" if turn.role == "assistant" else "user"


def _message(role: Side, turns: list[ChatTurn]) -> dict[str, Any]:
    blocks = [block for turn in turns for block in turn.blocks]
    if len(blocks) == 1 and isinstance(words := blocks[0], Text):
        return {"role": role, "content": words.text}
    if len(turns) > 1:
        blocks.sort(key=lambda block: not isinstance(block, ToolResult))  # Anthropic wants them first
    content = [written for block in blocks if (written := _anthropic_block(block, role))]
    if _is_thought(blocks[-1]):  # refused at the end of a message
        content.append({"type": "text", "text": "…"})
    return {"role": role, "content": content}


def _anthropic_block(block: ChatBlock, side: Side) -> dict[str, Any] | None:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolResult):
        content = [written for part in block.output if (written := _anthropic_block(part, side))]
        result = {"type": "tool_result", "tool_use_id": _ID.sub("_", block.tool_use_id), "content": content}
        return {**result, "is_error": True} if block.is_error else result
    if isinstance(block, ToolUse):
        given = block.input if isinstance(block.input, dict) else {"input": block.input}
        return {"type": "tool_use", "id": _ID.sub("_", block.id), "name": block.name, "input": given}
    return for_anthropic(block.raw, side)


def _openai(turns: Sequence[ChatTurn]) -> Iterator[dict[str, Any]]:
    spoken = (turn for turn in _named(turns) if not all(map(_is_thought, turn.blocks)))
    sides = groupby(spoken, lambda turn: turn.role)
    return _opened(message for role, side in sides for message in _side(role, list(side)))


def _side(role: str, turns: list[ChatTurn]) -> Iterator[dict[str, Any]]:
    blocks = [block for turn in turns for block in turn.blocks]
    if role == "tool":
        yield from (_openai_result(block) for block in blocks if isinstance(block, ToolResult))
        return
    if len(blocks) == 1 and isinstance(words := blocks[0], Text):
        yield {"role": role, "content": words.text}
        return
    content = _openai_content(blocks, words_only=role != "user")
    calls = [_openai_call(block) for block in blocks if isinstance(block, ToolUse)]
    if content or calls:
        yield {"role": role, "content": content or None, **({"tool_calls": calls} if calls else {})}


def _openai_content(blocks: Sequence[ChatBlock], *, words_only: bool) -> str | list[dict[str, Any]]:
    """The words as one text, or in parts where there are files among them, which only a user's message may have."""
    parts = [part for block in blocks if (part := _openai_block(block, words_only=words_only))]
    if all(part["type"] == "text" for part in parts):
        return "\n\n".join(part["text"] for part in parts)
    return parts


def _openai_block(block: ChatBlock, *, words_only: bool) -> dict[str, Any] | None:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    return for_openai(block.raw, words_only=words_only) if isinstance(block, Other) else None


def _openai_call(block: ToolUse) -> dict[str, Any]:
    function = {"name": block.name, "arguments": json_text(block.input)}
    return {"id": block.id, "type": "function", "function": function}


def _openai_result(block: ToolResult) -> dict[str, Any]:
    content = _openai_content(block.output, words_only=True)
    return {"role": "tool", "tool_call_id": block.tool_use_id, "content": content}


def _is_thought(block: ChatBlock) -> bool:
    return isinstance(block, Other) and is_thought(block.raw)
