"""Content: the blocks of a message, in the formats of all providers, sorted by what they carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

Sort = Literal["text", "call", "result", "answered", "thought", "mark", "file", "unknown"]
"""`answered`: a tool call that nobody but the provider answers, or that carries its result. `mark`: says nothing, such
as the start of a step. `unknown`: a type or a field that memd has not heard of; whose words it holds is open.
"""

Block = Mapping[str, Any]

_TYPES: dict[str, Sort] = {
    # Words: Anthropic, OpenAI Chat, AI SDK and LangChain; OpenAI Responses
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    # Tool calls: Anthropic
    "tool_use": "call",
    "server_tool_use": "answered",
    "mcp_tool_use": "answered",
    # LangChain, OpenAI and AI SDK; code of Gemini in LangChain
    "tool_call": "call",
    "tool_call_chunk": "call",
    "invalid_tool_call": "call",
    "server_tool_call": "answered",
    "server_tool_call_chunk": "answered",
    "function_call": "call",
    "tool-call": "call",
    "executable_code": "answered",
    # Speech with its transcript, or without: OpenAI Realtime and LangChain
    "input_audio": "file",
    "output_audio": "file",
    "audio": "file",
    # Files: Anthropic, OpenAI, AI SDK, LangChain
    "image": "file",
    "image_url": "file",
    "input_image": "file",
    "document": "file",
    "file": "file",
    "input_file": "file",
    "text-plain": "file",
    "media": "file",
    "video": "file",
    "video_url": "file",
    "input_video": "file",
    "computer_screenshot": "file",
    "container_upload": "file",
    "search_result": "file",
    "source-url": "file",
    "source-document": "file",
    # Results
    "tool-result": "result",
    "tool-error": "result",
    "server_tool_result": "result",
    "code_execution_result": "result",
    # Thoughts and marks
    "thinking": "thought",
    "redacted_thinking": "thought",
    "reasoning": "thought",
    "reasoning_content": "thought",
    "reasoning-file": "thought",
    "step-start": "mark",
    "refusal": "mark",
}
"""Blocks with a `type`. Any type that is not here and has none of the prefixes and suffixes below is unknown."""

_SPEECH = frozenset({"input_audio", "output_audio", "audio"})
"""Blocks whose `transcript`, where they have one, is their text."""

_DATA = "data-"
"""Data of an AI SDK's app, beside the words."""

_TOOLS: dict[Sort, int] = {"call": 1, "result": -1, "answered": 0}
"""What a block adds to the calls that wait for their results."""

_RESULT_SUFFIX = "tool_result"
"""Anthropic's `tool_result`, `web_search_tool_result` and the like."""

_ANSWERED_SUFFIX = "_call"
"""Tools that OpenAI runs, with their results: `web_search_call`, `mcp_call` and the like."""

_KEYS: dict[str, Sort] = {
    # Gemini in both spellings; Bedrock Converse
    "functionCall": "call",
    "function_call": "call",
    "executableCode": "answered",
    "executable_code": "answered",
    "toolCall": "call",
    "tool_call": "call",
    "toolUse": "call",
    "functionResponse": "result",
    "function_response": "result",
    "codeExecutionResult": "result",
    "code_execution_result": "result",
    "toolResponse": "result",
    "tool_response": "result",
    "toolResult": "result",
    "reasoningContent": "thought",
    "cachePoint": "mark",
    "guardContent": "text",
    "citationsContent": "text",
    "text": "text",
    "inlineData": "file",
    "inline_data": "file",
    "fileData": "file",
    "file_data": "file",
    "image": "file",
    "document": "file",
    "video": "file",
    "audio": "file",
    "searchResult": "file",
}
"""Blocks without a `type` by the field that they have; a null field counts as absent, as SDKs write all of them."""

_UI_TOOLS = ("tool-", "dynamic-tool")
"""Tool parts of AI SDK's UIMessage: `tool-<name>`, `tool-invocation`, `dynamic-tool`. They have a state."""

_ANSWERED_STATES = frozenset({"result", "output-available", "output-error", "output-denied"})


def listed(content: object) -> list[Block]:
    """Content as blocks: text is one block, what is neither text nor a mapping an empty one."""
    if isinstance(content, str):
        return [_worded(content)]
    return [_worded(part) if isinstance(part, str) else _mapping(part) for part in _list(content)]


def sort_of(block: Block) -> Sort:
    """What a block carries."""
    name = block.get("type")
    if name is None:
        return _sort_by_key(block)
    name = str(name)
    if name in _SPEECH:
        return "text" if _transcript(block) else "file"
    if (sort := _TYPES.get(name)) is not None and "state" not in block:
        return "answered" if sort == "call" and block.get("providerExecuted") else sort
    if name.startswith(_UI_TOOLS):
        state = _mapping(block.get("toolInvocation", block)).get("state")
        return "answered" if isinstance(state, str) and state in _ANSWERED_STATES else "call"
    if name.endswith(_RESULT_SUFFIX):
        return "result"
    if name.endswith(_ANSWERED_SUFFIX):
        return sort or "answered"
    return sort or ("file" if name.startswith(_DATA) else "unknown")


def text_of(block: Block) -> str:
    """The words of a block; empty for a block that is no text."""
    if sort_of(block) != "text":
        return ""
    if block.get("guardContent") is not None:
        block = _mapping(_mapping(block["guardContent"]).get("text"))
    elif block.get("citationsContent") is not None:
        cited = listed(_mapping(block["citationsContent"]).get("content"))
        return "".join(map(_plain, cited))
    return _transcript(block) if block.get("type") in _SPEECH else _plain(block)


def ends_in_words(blocks: Iterable[Block]) -> bool:
    """Whether all tool calls among the blocks have their results, and words follow the last of them."""
    waiting, spoken = 0, True
    for block in blocks:
        sort = sort_of(block)
        if sort in _TOOLS:
            waiting = max(0, waiting + _TOOLS[sort])
            spoken = False
        elif sort == "text" and text_of(block).strip():
            spoken = True
    return spoken and not waiting


def _sort_by_key(block: Block) -> Sort:
    if block.get("thought") is True:  # Gemini's thoughts are text parts with this flag
        return "thought"
    return next(
        (sort for key, sort in _KEYS.items() if block.get(key) is not None),
        "unknown" if _says_something(block) else "mark",
    )


def _says_something(block: Block) -> bool:
    return any(value is not None for value in block.values())


def _worded(text: str) -> Block:
    return {"type": "text", "text": text}


def _plain(block: Block) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else ""


def _transcript(block: Block) -> str:
    """The transcript of speech; OpenAI's Realtime puts it beside the sound, some apps put it into the same object."""
    inner = _mapping(block.get(str(block.get("type"))))
    found = block.get("transcript") or inner.get("transcript")
    return found if isinstance(found, str) else ""


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, (list, tuple)) else ()


def _mapping(value: object) -> Block:
    return value if isinstance(value, Mapping) else {}
