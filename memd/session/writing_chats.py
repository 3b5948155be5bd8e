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

from memd.push.content import sort_of
from memd.session.chat import ChatBlock, ChatTurn, Other, Text, ToolResult, ToolUse, json_text

Shape = Literal["anthropic", "openai"]

OPENING = "[Start of the conversation]"
"""Said in the user's place where a conversation begins with the assistant: no provider takes that."""

_OPENAI_BLOCKS = frozenset({"image_url", "input_audio", "file"})
_ID = re.compile(r"[^a-zA-Z0-9_-]")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.A)


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
    spoken = (turn for turn in _named(turns) if turn.role != "system")
    sides = groupby(spoken, lambda turn: "assistant" if turn.role == "assistant" else "user")
    return _opened(_message(role, list(side)) for role, side in sides)


def _message(role: str, turns: list[ChatTurn]) -> dict[str, Any]:
    blocks = [block for turn in turns for block in turn.blocks]
    if len(blocks) == 1 and isinstance(words := blocks[0], Text):
        return {"role": role, "content": words.text}
    if len(turns) > 1:
        blocks.sort(key=lambda block: not isinstance(block, ToolResult))  # Anthropic wants them first
    content = [_anthropic_block(block) for block in blocks]
    if _is_thought(blocks[-1]):  # refused at the end of a message
        content.append({"type": "text", "text": "…"})
    return {"role": role, "content": content}


def _anthropic_block(block: ChatBlock) -> dict[str, Any]:
    if isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolResult):
        content = [_anthropic_block(part) for part in block.output]
        result = {"type": "tool_result", "tool_use_id": _ID.sub("_", block.tool_use_id), "content": content}
        return {**result, "is_error": True} if block.is_error else result
    if isinstance(block, ToolUse):
        given = block.input if isinstance(block.input, dict) else {"input": block.input}
        return {"type": "tool_use", "id": _ID.sub("_", block.id), "name": block.name, "input": given}
    return _image_for_anthropic(block.raw) or (block.raw if _is_anthropic(block.raw) else _placeholder(block.raw))


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
    if not isinstance(block, Other) or _is_thought(block):
        return None
    part = _image_for_openai(block.raw) or (block.raw if block.raw.get("type") in _OPENAI_BLOCKS else None)
    return _placeholder(block.raw) if part is None or words_only else part


def _openai_call(block: ToolUse) -> dict[str, Any]:
    function = {"name": block.name, "arguments": json_text(block.input)}
    return {"id": block.id, "type": "function", "function": function}


def _openai_result(block: ToolResult) -> dict[str, Any]:
    content = _openai_content(block.output, words_only=True)
    return {"role": "tool", "tool_call_id": block.tool_use_id, "content": content}


def _image_for_anthropic(raw: dict[str, Any]) -> dict[str, Any] | None:
    """OpenAI's block of an image as one of Anthropic."""
    image = raw.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    if not isinstance(url, str):
        return None
    data = _DATA_URL.match(url)
    source = (
        {"type": "base64", "media_type": data[1], "data": url[data.end() :]} if data else {"type": "url", "url": url}
    )
    return {"type": "image", "source": source}


def _image_for_openai(raw: dict[str, Any]) -> dict[str, Any] | None:
    """Anthropic's block of an image as one of OpenAI."""
    source = raw.get("source")
    if raw.get("type") != "image" or not isinstance(source, dict):
        return None
    url = source.get("url") or f"data:{source.get('media_type')};base64,{source.get('data')}"
    return {"type": "image_url", "image_url": {"url": url}}


def _is_anthropic(raw: dict[str, Any]) -> bool:
    return isinstance(raw.get("type"), str) and raw["type"] not in _OPENAI_BLOCKS


def _is_thought(block: ChatBlock) -> bool:
    return isinstance(block, Other) and sort_of(block.raw) == "thought"


def _placeholder(raw: dict[str, Any]) -> dict[str, Any]:
    """What a block is, for a provider that cannot read it."""
    return {"type": "text", "text": f"[{raw.get('type') or next(iter(raw), 'block')}]"}
