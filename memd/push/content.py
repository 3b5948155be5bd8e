"""Content: the blocks of a message, in the formats of all providers, sorted by what they carry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

Sort = Literal["text", "call", "result", "answered", "thought", "mark", "file"]
"""`answered`: a tool call that nobody but the provider answers, or that carries its result. `mark`: says nothing, such
as the start of a step.
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
}
"""Blocks with a `type`. Any type that is not here and has none of the suffixes below is a file."""

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
    if (sort := _TYPES.get(name)) is not None and "state" not in block:
        return "answered" if sort == "call" and block.get("providerExecuted") else sort
    if name.startswith(_UI_TOOLS):
        state = _mapping(block.get("toolInvocation", block)).get("state")
        return "answered" if isinstance(state, str) and state in _ANSWERED_STATES else "call"
    if name.endswith(_RESULT_SUFFIX):
        return "result"
    return sort or ("answered" if name.endswith(_ANSWERED_SUFFIX) else "file")


def text_of(block: Block) -> str:
    """The words of a block; empty for a block that is no text."""
    if sort_of(block) != "text":
        return ""
    if block.get("guardContent") is not None:
        block = _mapping(_mapping(block["guardContent"]).get("text"))
    elif block.get("citationsContent") is not None:
        cited = listed(_mapping(block["citationsContent"]).get("content"))
        return "".join(map(_plain, cited))
    return _plain(block)


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
    return next((sort for key, sort in _KEYS.items() if block.get(key) is not None), "file")


def _worded(text: str) -> Block:
    return {"type": "text", "text": text}


def _plain(block: Block) -> str:
    text = block.get("text")
    return text if isinstance(text, str) else ""


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, (list, tuple)) else ()


def _mapping(value: object) -> Block:
    return value if isinstance(value, Mapping) else {}
