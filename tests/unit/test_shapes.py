"""Shapes: one conversation in the format of each provider is read the same; only its tool rounds are dropped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)

from memd.config import ClientSettings
from memd.context import Context, Message, Role, identify
from memd.push.filtering import to_context
from memd.push.shapes import ROLES
from memd.push.validation import check_push

ASKED = "How warm is it in Porto, where I live?"
CALL = {"name": "weather", "args": {"city": "Porto"}}
RESULT = "I am in Porto and feel 21 degrees."
"""What the tool says; it must not pass as the user's words."""

REPLY = "It is 21 degrees in Porto."

LANGCHAIN: list[BaseMessage] = [
    SystemMessage("Be brief."),
    HumanMessage(ASKED),
    AIMessage("", tool_calls=[{**CALL, "id": "c1"}]),
    ToolMessage(RESULT, tool_call_id="c1"),
    AIMessage(REPLY),
]


def context(messages: list[dict[str, Any]]) -> Context:
    push = {"thread_id": "t", "user_id": "u", "messages": messages}
    return to_context(check_push(push, ClientSettings()))


def ui(state: str, **call: Any) -> dict[str, Any]:
    return {"type": "tool-weather", "toolCallId": "c1", "state": state, "input": {"city": "Porto"}, **call}


SHAPES: dict[str, list[dict[str, Any]]] = {
    "Gemini": [
        {"role": "user", "parts": [{"text": ASKED}]},
        {"role": "model", "parts": [{"text": "I should look.", "thought": True}, {"functionCall": CALL}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"output": RESULT}}}]},
        {"role": "model", "parts": [{"text": REPLY, "thoughtSignature": "cw=="}]},
    ],
    "Gemini, model_dump() with its null fields": [
        {"role": "user", "parts": [{"text": ASKED, "function_call": None, "thought": None}]},
        {"role": "model", "parts": [{"text": None, "function_call": CALL, "thought": None}]},
        {"role": "tool", "parts": [{"text": None, "function_response": {"response": {"output": RESULT}}}]},
        {"role": "model", "parts": [{"text": REPLY, "function_call": None}]},
    ],
    "Gemini's code execution": [
        {"role": "user", "parts": [{"text": ASKED}]},
        {
            "role": "model",
            "parts": [
                {"executableCode": {"language": "PYTHON", "code": "weather()"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": RESULT}},
                {"text": REPLY},
            ],
        },
    ],
    "AI SDK, UIMessage": [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": ASKED}]},
        {
            "id": "2",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "I should look.", "state": "done"},
                ui("output-available", output=RESULT),
                {"type": "step-start"},
                {"type": "text", "text": REPLY, "state": "done"},
            ],
        },
    ],
    "AI SDK 4, content beside parts": [
        {"role": "user", "content": ASKED, "parts": [{"type": "text", "text": ASKED}]},
        {
            "role": "assistant",
            "content": REPLY,
            "parts": [
                {"type": "tool-invocation", "toolInvocation": {"state": "result", "result": RESULT, **CALL}},
                {"type": "text", "text": REPLY},
            ],
        },
    ],
    "AI SDK, toolInvocations": [
        {"role": "user", "content": ASKED},
        {"role": "assistant", "content": REPLY, "toolInvocations": [{"state": "result", "result": RESULT, **CALL}]},
    ],
    "AI SDK, ModelMessage": [
        {"role": "user", "content": [{"type": "text", "text": ASKED}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, {"type": "tool-call", **CALL}]},
        {"role": "tool", "content": [{"type": "tool-result", "output": {"type": "text", "value": RESULT}}]},
        {"role": "assistant", "content": [{"type": "text", "text": REPLY}]},
    ],
    "Bedrock Converse": [
        {"role": "user", "content": [{"text": ASKED}]},
        {
            "role": "assistant",
            "content": [
                {"reasoningContent": {"reasoningText": {"text": "I should look."}}},
                {"text": "Let me see."},
                {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Porto"}}},
            ],
        },
        {"role": "user", "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": RESULT}]}}]},
        {"role": "assistant", "content": [{"text": REPLY}]},
    ],
    "Bedrock's guarded and cited text": [
        {"role": "user", "content": [{"guardContent": {"text": {"text": ASKED}}}, {"cachePoint": {"type": "default"}}]},
        {
            "role": "assistant",
            "content": [{"citationsContent": {"content": [{"text": "It is 21 "}, {"text": "degrees in Porto."}]}}],
        },
    ],
    "Anthropic": [
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "…"},
                {"type": "tool_use", "id": "c1", "name": "w", "input": {}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": RESULT}]},
        {"role": "assistant", "content": [{"type": "text", "text": REPLY}]},
    ],
    "Anthropic's server tools": [
        {"role": "user", "content": ASKED},
        {
            "role": "assistant",
            "content": [
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "weather"}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"title": RESULT}]},
                {"type": "text", "text": REPLY},
            ],
        },
    ],
    "OpenAI Responses": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": ASKED}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "I should look."}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": RESULT},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": REPLY}]},
    ],
    "LangChain": [message.model_dump() for message in LANGCHAIN],
    "LangChain, messages_to_dict()": messages_to_dict(LANGCHAIN),
    "LangChain, dumpd()": [dumpd(message) for message in LANGCHAIN],
    "LangChain, chunks": [{"type": "HumanMessageChunk", "content": ASKED}, AIMessageChunk(content=REPLY).model_dump()],
    "class names as roles": [
        {"role": "SystemMessage", "content": "Be brief."},
        {"role": "HumanMessage", "content": ASKED},
        {"role": "AIMessage", "content": "", "tool_calls": [CALL]},
        {"role": "ToolMessage", "content": RESULT},
        {"role": "AIMessage", "content": REPLY},
    ],
}


@pytest.mark.parametrize("shape", SHAPES)
def test_the_question_and_the_final_reply_are_read(shape: str) -> None:
    """Nothing of the tools, every turn accounted for, and no turn of the conversation empty."""
    found = context(SHAPES[shape])
    assert [(message.role, message.content) for message in found.messages] == [("user", ASKED), ("assistant", REPLY)]
    assert len(found.messages) + sum(found.dropped.values()) == len(SHAPES[shape])
    assert found.dropped.keys() <= {"tool", "tool_call", "system", "reasoning"}


@pytest.mark.parametrize(
    "step",
    [
        {"role": "assistant", "parts": [{"type": "text", "text": "Let me see."}, ui("input-available")]},
        {"role": "assistant", "content": "Let me see.", "parts": [{"type": "tool-invocation", "toolInvocation": {}}]},
        {"role": "assistant", "content": [{"type": "text", "text": "One moment."}, {"type": "server_tool_use"}]},
        {"role": "assistant", "content": [{"type": "server_tool_use"}, {"type": "web_search_tool_result"}]},
        {"role": "model", "parts": [{"functionCall": CALL}, {"text": "Wait."}]},
        {"role": "assistant", "content": [{"toolUse": {}}, {"toolResult": {}}, {"toolUse": {}}, {"text": "And?"}]},
    ],
)
def test_a_step_on_the_way_is_no_final_reply(step: dict[str, Any]) -> None:
    """A call without its result, or without words behind it."""
    found = context([{"role": "user", "content": ASKED}, step])
    assert [message.content for message in found.messages] == [ASKED]
    assert found.dropped == {"tool_call": 1}


def test_words_beside_a_tool_result_are_the_users() -> None:
    """A user's turn that brings a result and words keeps the words."""
    results: list[dict[str, Any]] = [{"type": "tool_result", "content": RESULT}, {"toolResult": {}}]
    for result in [*results, {"functionResponse": {}}]:
        found = context([{"role": "user", "content": [result, {"text": "I live in Porto."}]}])
        assert [message.content for message in found.messages] == ["I live in Porto."]


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_answer_to_a_form_is_kept_though_hidden(wrapped: bool) -> None:
    """The form's answer is the user's own; what else an app hides is not."""
    answer = {
        "version": 1,
        "kind": "human_input_response",
        "request_id": "r",
        "response_kind": "text",
        "value": "Porto",
    }
    told = [
        HumanMessage("I live in Porto.", additional_kwargs={"hide_from_ui": True, "human_input_response": answer}),
        HumanMessage("Remember your tasks.", additional_kwargs={"hide_from_ui": True}),
        HumanMessage("Look.", additional_kwargs={"hide_from_ui": True, "human_input_response": {"kind": "other"}}),
    ]
    found = context(messages_to_dict(told) if wrapped else [message.model_dump() for message in told])
    assert [message.content for message in found.messages] == ["I live in Porto."]
    assert found.dropped == {"hidden": 2}


FORMERLY: dict[str, list[tuple[Role, str]]] = {
    "Gemini": [],
    "Anthropic's server tools": [("user", ASKED)],
    "Bedrock Converse": [("user", ASKED), ("assistant", "Let me see.")],
    "AI SDK, ModelMessage": [("user", ASKED), ("assistant", "Let me see."), ("assistant", REPLY)],
    "LangChain, messages_to_dict()": [],
}
"""What the version before kept of a shape."""


@pytest.mark.parametrize("shape", FORMERLY)
def test_a_window_that_the_version_before_took_in_is_known(shape: str) -> None:
    """A turn behind a window keeps all that was before it known, though now other messages of the window are kept."""
    said: Role = "user"
    window = [*SHAPES[shape], {"role": said, "content": "I like tea."}]
    found = context([{name: value for name, value in turn.items() if name != "id"} for turn in window]).messages
    before = {m.identity for m in identify("t", [Message(*turn) for turn in [*FORMERLY[shape], (said, "I like tea.")]])}
    assert [m.content for m in found] == [ASKED, REPLY, "I like tea."]
    assert all(before & {m.identity, *m.former} for m in found)


def test_every_known_role_stands_in_the_documentation() -> None:
    """docs/wire.md lists the roles; whoever reads E_ROLE finds them there."""
    text = (Path(__file__).parents[2] / "docs" / "wire.md").read_text()
    [line] = re.findall(r"Roles that memd knows: ([^.]*)\.", text)
    assert set(re.findall(r"\w+", line)) == set(ROLES)


@pytest.mark.parametrize(
    "turn",
    [
        {"content": [{"type": "input_audio", "transcript": ASKED}]},
        {"content": [{"type": "input_audio", "input_audio": {"data": "AA==", "transcript": ASKED}}]},
        {"content": [{"type": "audio", "audio": "AA==", "transcript": ASKED}]},
        {"type": "message", "content": [{"type": "input_audio", "audio": None, "transcript": ASKED}]},
    ],
)
def test_speech_is_read_by_its_transcript(turn: dict[str, Any]) -> None:
    """OpenAI's Realtime sends what the user said beside the sound; the spoken reply of a Chat message has one, too."""
    reply = {"role": "assistant", "content": None, "audio": {"id": "a", "data": "AA==", "transcript": REPLY}}
    found = context([{"role": "user", **turn}, reply])
    assert [(m.role, m.content) for m in found.messages] == [("user", ASKED), ("assistant", REPLY)]
    assert (found.dropped, found.cut) == ({}, {})


def test_sound_without_a_transcript_is_a_file() -> None:
    """Nobody knows what was said."""
    block = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}, "transcript": None}
    assert context([{"role": "user", "content": [block]}]).dropped == {"upload_only": 1}


@pytest.mark.parametrize("block", [{"type": "hologram", "text": ASKED}, {"gesture": "nod"}, 7])
def test_an_unknown_block_is_counted_and_not_read(block: Any) -> None:
    """Beside words as a cut block; alone, its turn is dropped under the same name. Empty blocks count as nothing."""
    words = {"type": "text", "text": ASKED}
    beside = context([{"role": "user", "content": [words, block, {}]}])
    assert ([m.content for m in beside.messages], beside.dropped) == ([ASKED], {})
    alone = context([{"role": "user", "content": [block]}])
    expected = {} if block == 7 else {"unknown_block": 1}
    assert (beside.cut, alone.cut, alone.messages) == (expected, expected, ())
    assert alone.dropped == (expected or {"empty": 1})
