"""Reads messages in the shapes of Anthropic, OpenAI and LangChain as turns.

They come as mappings, or as the objects of the SDKs and of LangChain. A message without words, calls, results and other
blocks is no turn; every provider refuses it. One message of Anthropic may be two turns: results of tools, and words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import orjson

from memd.push.content import listed, sort_of, text_of
from memd.push.shapes import CALL, OUTPUT, kind_of, name_in, unwrapped
from memd.push.strict_json import MAX_DEPTH, check_values, refuse
from memd.push.times import read_created_at
from memd.push.validation import as_text, check_message_id, check_name
from memd.session.chat import ChatBlock, ChatRole, ChatTurn, Other, Text, ToolResult, ToolUse

MAX_MESSAGE_BYTES = 33_554_432
"""The largest message: providers take no larger request."""

_ROLES: dict[str, ChatRole] = {"user": "user", "assistant": "assistant", "system": "system", "reasoning": "assistant"}


def turns_of(messages: Iterable[object]) -> tuple[ChatTurn, ...]:
    """The turns of messages, oldest first. Raises Rejected."""
    return tuple(turn for message in messages for turn in read(message))


def read(message: object) -> tuple[ChatTurn, ...]:
    """The turns of one message: mostly one. Raises Rejected."""
    fields = _checked(message)
    kind = kind_of(fields)
    created_at = _time(fields)
    blocks = [*_blocks(fields, kind), *_calls(fields)]
    results = tuple(block for block in blocks if isinstance(block, ToolResult))
    others = tuple(block for block in _unique(blocks) if not isinstance(block, ToolResult))
    message_id = as_text(fields.get("id")) or ""
    turns = []
    if results:
        turns.append(ChatTurn("tool", results, "" if others else message_id, created_at))
    if others:
        name = check_name("name", name_in(fields, kind))
        turns.append(ChatTurn(_ROLES.get(kind, "assistant"), others, message_id, created_at, name))
    return tuple(turns)


def result_of(tool_use_id: object, output: object, *, is_error: bool = False) -> ToolResult:
    """The result of a tool: text, blocks, or any other value of JSON. Raises Rejected."""
    if not isinstance(tool_use_id, str) or not tool_use_id:
        refuse("E_TOOL_USE_ID", "the result of a tool needs the id of its call", "tool_use_id")
    return ToolResult(tool_use_id, tuple(_output(plain(output))), is_error)


def use_of(tool_use_id: object, name: object, given: object) -> ToolUse:
    """The call of a tool; `given`: its input, or JSON as text. Raises Rejected."""
    if not isinstance(tool_use_id, str) or not tool_use_id:
        refuse("E_TOOL_USE_ID", "the call of a tool needs an id", "id")
    if not isinstance(name, str) or not name:
        refuse("E_TOOL_NAME", "the call of a tool needs the name of the tool", "name")
    return ToolUse(tool_use_id, name, _input(given))


def plain(value: object) -> Any:
    """A value with the objects of SDKs in it as mappings."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True)
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value


def _checked(message: object) -> dict[str, Any]:
    try:
        fields = plain(message)
    except RecursionError:
        refuse("E_DEPTH", f"a message is nested more than {MAX_DEPTH} deep", limit=MAX_DEPTH)
    if not isinstance(fields, dict):
        refuse("E_MESSAGE_TYPE", "a message must be an object", "messages")
    check_values(fields, MAX_MESSAGE_BYTES)
    fields = dict(unwrapped(fields))
    if not isinstance(fields.get("content"), str | list | None):
        refuse("E_CONTENT_TYPE", "content must be text or a list of blocks", "content")
    check_message_id(fields.get("id"))
    return fields


def _time(fields: Mapping[str, Any]) -> str | None:
    value = fields.get("created_at")
    if not isinstance(value, str):  # OpenAI's objects have seconds since 1970 here
        return None
    return as_text(read_created_at(value))


def _blocks(fields: Mapping[str, Any], kind: str) -> Iterator[ChatBlock]:
    """The blocks of the content; of a tool's message its one result."""
    item = "" if fields.get("role") else str(fields.get("type"))
    if item.endswith(OUTPUT):
        yield result_of(fields.get("call_id"), fields.get("output"))
    elif item == "function" + CALL:
        yield use_of(fields.get("call_id"), fields.get("name"), fields.get("arguments"))
    elif kind == "tool":
        content = fields.get("content")
        results = [block for block in listed(content) if _is_result(block)]
        if results:
            yield from map(_result, results)
        else:
            name = fields.get("tool_call_id") or _id_of_function(fields.get("name"))
            failed = fields.get("status") == "error" or bool(fields.get("is_error"))
            yield result_of(name, content, is_error=failed)
    elif item.endswith(CALL) or kind == "reasoning":
        yield Other(dict(fields))
    else:
        for block in [*listed(fields.get("content")), *listed(fields.get("parts"))]:
            yield from _block(dict(block))
        if isinstance(refusal := fields.get("refusal"), str):
            yield from _text(refusal)


def _block(block: dict[str, Any]) -> Iterator[ChatBlock]:
    sort = sort_of(block)
    if _is_result(block):
        yield _result(block)
    elif sort == "text":
        yield from _text(text_of(block))
    elif block.get("type") == "refusal":
        yield from _text(str(block.get("refusal") or ""))
    elif sort == "call" and "name" in block and ("id" in block or "toolCallId" in block):
        given = block["input"] if "input" in block else block.get("args")
        yield use_of(block.get("id") or block.get("toolCallId"), block["name"], given)
    elif block and sort != "mark":
        yield Other(block)


def _is_result(block: Mapping[str, Any]) -> bool:
    """Whether a block is the result of a call that the app answers; AgentScope's have no type."""
    return block.get("type") in ("tool_result", None) and ("tool_use_id" in block or "toolUseId" in block)


def _result(block: Mapping[str, Any]) -> ToolResult:
    name = block.get("tool_use_id") or block.get("toolUseId")
    output = block["output"] if "output" in block else block.get("content")
    return result_of(name, output, is_error=bool(block.get("is_error") or block.get("isError")))


def _output(output: Any) -> Iterator[Text | Other]:
    if output is None:
        return
    if not isinstance(output, str | list) or (isinstance(output, list) and not all(map(_is_block, output))):
        output = orjson.dumps(output).decode()
    for block in listed(output):
        if sort_of(block) == "text":
            yield from _text(text_of(block))
        elif block:
            yield Other(dict(block))


def _is_block(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("type"), str))


def _text(text: str) -> Iterator[Text]:
    if text.strip():  # Anthropic refuses a block of nothing but white space
        yield Text(text)


def _calls(fields: Mapping[str, Any]) -> Iterator[ToolUse]:
    """The calls that OpenAI and LangChain write beside the content."""
    extra = fields.get("additional_kwargs")
    extra = extra if isinstance(extra, Mapping) else {}
    calls = fields.get("tool_calls") or extra.get("tool_calls") or []
    broken = fields.get("invalid_tool_calls") or []  # LangChain's name for calls whose input is no JSON
    if not (
        isinstance(calls, list) and isinstance(broken, list) and all(isinstance(c, Mapping) for c in calls + broken)
    ):
        refuse("E_TOOL_CALLS", "tool_calls must be a list of objects", "tool_calls")
    for call in calls + broken:
        function = call.get("function")
        function = function if isinstance(function, Mapping) else call
        given = function["arguments"] if "arguments" in function else function.get("args")
        yield use_of(call.get("id"), function.get("name"), given)
    older = fields.get("function_call") or extra.get("function_call")
    if isinstance(older, Mapping):  # OpenAI before it had `tool_calls`; such calls have no id
        yield use_of(_id_of_function(older.get("name")), older.get("name"), older.get("arguments"))


def _id_of_function(name: object) -> object:
    return f"function_{name}" if isinstance(name, str) and name else None


def _input(given: object) -> Any:
    """The input of a call: JSON as text is read, and text that is no JSON stays text."""
    if given is None or given == "":
        return {}
    if not isinstance(given, str):
        return plain(given)
    try:
        return orjson.loads(given)
    except orjson.JSONDecodeError:  # the model wrote it; the provider takes it back as it was
        return given


def _unique(blocks: Iterable[ChatBlock]) -> Iterator[ChatBlock]:
    """The blocks, each call once: LangChain writes those of Anthropic twice."""
    seen = set()
    for block in blocks:
        if isinstance(block, ToolUse):
            if block.id in seen:
                continue
            seen.add(block.id)
        yield block
