"""Blocks that are neither words nor tool rounds, for each provider: pictures translated, thoughts only for their own.

What a provider cannot read becomes a word in brackets, as it would refuse the whole request.
"""

from __future__ import annotations

import re
from typing import Any, Literal, NamedTuple

from memd.push.content import sort_of

Block = dict[str, Any]
Side = Literal["user", "assistant"]

_ANTHROPIC: dict[Side, frozenset[str]] = {
    "user": frozenset({"document", "search_result", "container_upload"}),
    "assistant": frozenset({"thinking", "redacted_thinking", "container_upload"}),
}
"""Blocks that Anthropic takes from each side, besides pictures and those of its own tools."""

_OWN_TOOLS = ("server_tool_use", "mcp_tool_use", "_tool_result")
"""How the types of the tools that Anthropic runs itself end."""

_SOURCES = ("base64", "url", "file")
_OPENAI = frozenset({"input_audio", "file"})
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,", re.ASCII)


class _Picture(NamedTuple):
    """An address, or data with their type."""

    url: str = ""
    media_type: str = ""
    data: str = ""


def is_thought(raw: Block) -> bool:
    """Whether a block is a thought of a model."""
    return sort_of(raw) == "thought"


def for_anthropic(raw: Block, side: Side) -> Block | None:
    """The block in Anthropic's shape; None for a thought of another model."""
    kind = raw.get("type")
    if isinstance(kind, str) and (kind in _ANTHROPIC[side] or (side == "assistant" and kind.endswith(_OWN_TOOLS))):
        return raw
    if is_thought(raw):
        return None
    source = raw.get("source")
    if side == "user" and kind == "image" and isinstance(source, dict) and source.get("type") in _SOURCES:
        return raw
    picture = _picture(raw) if side == "user" else None
    if picture is None:
        return _placeholder(raw)
    if picture.url:
        return {"type": "image", "source": {"type": "url", "url": picture.url}}
    source = {"type": "base64", "media_type": picture.media_type, "data": picture.data}
    return {"type": "image", "source": source}


def for_openai(raw: Block, *, words_only: bool) -> Block | None:
    """The block in OpenAI's shape; None for a thought. `words_only`: its place takes no files."""
    if is_thought(raw):
        return None
    if words_only:
        return _placeholder(raw)
    if (picture := _picture(raw)) is not None:
        if raw.get("type") == "image_url" and isinstance(raw.get("image_url"), dict):
            return raw
        url = picture.url or f"data:{picture.media_type};base64,{picture.data}"
        return {"type": "image_url", "image_url": {"url": url}}
    return raw if raw.get("type") in _OPENAI else _placeholder(raw)


def _picture(raw: Block) -> _Picture | None:
    """The picture of a block of Anthropic, OpenAI or LangChain."""
    inner = raw.get("source") if raw.get("type") == "image" else raw.get("image_url")
    fields = inner if isinstance(inner, dict) else raw
    url = inner if isinstance(inner, str) else fields.get("url")
    if isinstance(url, str) and (found := _DATA_URL.match(url)):
        return _Picture(media_type=found[1], data=url[found.end() :])
    if isinstance(url, str) and url:
        return _Picture(url) if raw.get("type") in ("image", "image_url", "input_image") else None
    media_type, data = fields.get("media_type") or fields.get("mime_type"), fields.get("data") or fields.get("base64")
    if raw.get("type") == "image" and isinstance(media_type, str) and isinstance(data, str):
        return _Picture(media_type=media_type, data=data)
    return None


def _placeholder(raw: Block) -> Block:
    """What a block is, in a word."""
    return {"type": "text", "text": f"[{raw.get('type') or next(iter(raw), 'block')}]"}
