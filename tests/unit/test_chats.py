"""Chats: one conversation in several shapes is read as the same turns, and written so that all take it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage, messages_to_dict
from support.chat_rules import check_accepted

from memd.context import estimate_tokens
from memd.errors import Rejected
from memd.session.chat import FILE_TOKENS, ChatTurn, Other, Text, ToolResult, ToolUse, said
from memd.session.pairs import NO_RESULT, paired
from memd.session.reading_chats import read, turns_of
from memd.session.writing_chats import OPENING, written

CALL = ToolUse("c1", "weather", {"city": "Porto"})
TURNS = (
    said("system", "Be brief."),
    said("user", "How warm is it?"),
    ChatTurn("assistant", (Text("I look."), CALL)),
    ChatTurn("tool", (ToolResult("c1", (Text("21 degrees"),)),)),
    said("assistant", "It is 21 degrees."),
    said("user", "Thanks"),
)
OPENAI: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "How warm is it?"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Porto"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "21 degrees"},
    {"role": "assistant", "content": "It is 21 degrees."},
    {"role": "user", "content": "Thanks"},
]
USE = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Porto"}}
RESULT = {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "21 degrees"}]}
ANTHROPIC: list[dict[str, Any]] = [
    {"role": "user", "content": "How warm is it?"},
    {"role": "assistant", "content": [{"type": "text", "text": "I look."}, USE]},
    {"role": "user", "content": [RESULT]},
    {"role": "assistant", "content": "It is 21 degrees."},
    {"role": "user", "content": "Thanks"},
]
LANGCHAIN = [
    SystemMessage("Be brief."),
    HumanMessage("How warm is it?"),
    AIMessage("I look.", tool_calls=[{"name": "weather", "args": {"city": "Porto"}, "id": "c1"}]),
    ToolMessage("21 degrees", tool_call_id="c1"),
    AIMessage("It is 21 degrees."),
    HumanMessage("Thanks"),
]
AGENTSCOPE = [
    {"role": "SYSTEM", "content": [{"type": "text", "text": "Be brief."}]},
    {"role": "USER", "content": [{"type": "text", "text": "How warm is it?"}]},
    {"role": "ASSISTANT", "content": [{"type": "text", "text": "I look."}, USE]},
    {"role": "TOOL", "content": [{"toolUseId": "c1", "output": [{"type": "text", "text": "21 degrees"}]}]},
    {"role": "ASSISTANT", "content": [{"type": "text", "text": "It is 21 degrees."}]},
    {"role": "USER", "content": [{"type": "text", "text": "Thanks"}]},
]
RESPONSES = [
    {"role": "developer", "content": "Be brief."},
    {"role": "user", "content": [{"type": "input_text", "text": "How warm is it?"}]},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city":"Porto"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "21 degrees"},
    {"role": "assistant", "content": "It is 21 degrees."},
    {"role": "user", "content": "Thanks"},
]


@pytest.mark.parametrize(
    "messages",
    [
        OPENAI,
        [{"role": "system", "content": "Be brief."}, *ANTHROPIC],
        LANGCHAIN,
        messages_to_dict(LANGCHAIN),
        AGENTSCOPE,
        RESPONSES,
    ],
    ids=["OpenAI", "Anthropic", "LangChain objects", "LangChain dicts", "AgentScope", "OpenAI Responses"],
)
def test_each_shape_is_read_the_same_and_written_in_both(messages: list[object]) -> None:
    """Whatever an app has, it can hand in as it is."""
    turns = turns_of(messages)

    assert written(turns, "openai")["messages"] == OPENAI
    assert written(turns, "anthropic") == {"messages": ANTHROPIC, "system": "Be brief."}
    if messages is not RESPONSES:  # it has one more turn there
        assert turns == TURNS


def test_turns_survive_json() -> None:
    """As a session's file keeps them: types, ids, times."""
    turns = (*TURNS, ChatTurn("user", (Other({"type": "image", "source": {}}),), "m7", "2026-05-01T10:00:00Z", "Ana"))
    raw = msgspec.json.encode(turns)
    assert msgspec.json.decode(raw, type=tuple[ChatTurn, ...]) == turns
    assert b'"toolUseId":"c1"' in raw


def test_results_and_words_in_one_message_are_two_turns_and_one_message_again() -> None:
    """Anthropic takes both in one message, the results first."""
    message = {"role": "user", "id": "m3", "content": [RESULT, {"type": "text", "text": "And Lisbon?"}]}
    turns = read(message)

    assert [(turn.role, turn.id) for turn in turns] == [("tool", ""), ("user", "m3")]
    again = written((TURNS[1], TURNS[2], *turns))["messages"]
    assert again[-1]["content"] == message["content"]


def test_a_picture_is_written_for_the_other_provider_and_a_thought_only_for_its_own() -> None:
    """Nothing that a provider does not know reaches it."""
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    other = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    turns = turns_of(
        [
            {"role": "user", "content": [{"type": "text", "text": "Look"}, picture]},
            {"role": "assistant", "content": [thought, {"type": "text", "text": "A cat."}]},
            {"role": "user", "content": [{"type": "text", "text": "And this?"}, other]},
            {"role": "assistant", "content": [thought]},
        ]
    )
    anthropic, openai = written(turns)["messages"], written(turns, "openai")["messages"]

    assert anthropic[0]["content"][1] == anthropic[2]["content"][1] == picture
    assert openai[0]["content"][1] == openai[2]["content"][1] == other
    assert anthropic[1]["content"][0] == thought
    assert "Hm." not in str(openai)
    for shape, messages in (("anthropic", anthropic), ("openai", openai)):
        check_accepted({"messages": messages}, shape)


PICTURES: list[dict[str, Any]] = [
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
    {"type": "image_url", "image_url": "data:image/png;base64,aGk="},
    {"type": "input_image", "image_url": "data:image/png;base64,aGk="},
    {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
]


@pytest.mark.parametrize("picture", PICTURES, ids=["Anthropic", "OpenAI", "text", "Responses", "LangChain"])
def test_a_picture_of_any_shape_reaches_both(picture: dict[str, Any]) -> None:
    """As each wants it; from the assistant, who cannot send one, it is a word."""
    turns = turns_of([{"role": role, "content": [picture]} for role in ("user", "assistant")])
    shown, told = written(turns)["messages"]
    assert shown["content"] == [PICTURES[0]]
    assert told["content"] == [{"type": "text", "text": f"[{picture['type']}]"}]
    assert written(turns, "openai")["messages"][0]["content"] == [PICTURES[1]]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "reasoning", "summary": []},
        {"type": "holograph", "data": "x"},
        {"type": "tool_use"},
        {"type": "image", "image": "aGk="},
        {"type": "image", "source": 7},
        {"type": "image", "source": {"type": "file", "file_id": "f1"}},
        {"type": "image_url", "url": "https://example.org/a.png"},
        {"fileData": {"uri": "x"}},
        {"functionCall": {"name": "f"}},
    ],
)
@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_block_that_a_provider_does_not_know_never_reaches_it(role: str, block: dict[str, Any]) -> None:
    """It would refuse the whole request."""
    turns = turns_of([{"role": "user", "content": "Look"}, {"role": role, "content": [block]}])
    check_accepted(written(turns), "anthropic")
    check_accepted(written(turns, "openai"), "openai")


def test_a_chat_that_the_assistant_opens_gets_a_user_before_it() -> None:
    """A greeting comes first in many apps, and is refused by providers."""
    for shape in ("anthropic", "openai"):
        call = written((said("system", "Be kind."), said("assistant", "Hello!")), shape)
        check_accepted(call, shape)
        assert call["messages"][-2]["content"] == OPENING


def test_speakers_are_named_where_several_speak() -> None:
    """Of one user alone everybody knows the name."""
    ana = ChatTurn("user", (Text("I am vegan."),), name="Ana")
    bo = ChatTurn("user", (Text("I am not."),), name="Bo")
    assert "Ana" not in str(written((ana, ana)))
    assert "Ana:\n\nI am vegan.\n\nBo:\n\nI am not." in written((ana, bo), "openai")["messages"][0]["content"]


def test_the_system_prompt_of_the_app_comes_first() -> None:
    """Before the system turns."""
    assert written(TURNS, system="<memory>")["system"] == "<memory>\n\nBe brief."
    assert written(TURNS, "openai", "<memory>")["messages"][0]["content"] == "<memory>"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("hi", "E_MESSAGE_TYPE"),
        ({"role": "wizard", "content": "hi"}, "E_ROLE"),
        ({"role": "user", "content": 7}, "E_CONTENT_TYPE"),
        ({"role": "tool", "content": "21"}, "E_TOOL_USE_ID"),
        ({"role": "assistant", "tool_calls": [{"id": "c1", "function": {}}]}, "E_TOOL_NAME"),
        ({"role": "assistant", "tool_calls": ["c1"]}, "E_TOOL_CALLS"),
        ({"role": "assistant", "tool_calls": 1}, "E_TOOL_CALLS"),
        ({"role": "user", "content": [{"type": "text", "text": "a", "b": {1, 2}}]}, "E_JSON"),
        ({"role": "user", "content": "a\ud800"}, "E_JSON"),
    ],
)
def test_what_is_no_message_is_refused_with_a_code(message: object, code: str) -> None:
    """The error names the field, never the value."""
    with pytest.raises(Rejected) as refused:
        read(message)
    assert refused.value.code == code
    assert "wizard" not in str(refused.value)


def test_nesting_without_end_is_refused() -> None:
    """It must not exhaust the stack."""
    content: list[Any] = []
    for _ in range(100_000):
        content = [content]
    with pytest.raises(Rejected) as refused:
        read({"role": "user", "content": content})
    assert refused.value.code == "E_DEPTH"


def test_a_call_is_answered_once_and_directly_behind_it() -> None:
    """A result that came late moves, one that never came is made, an orphan goes, and an id is used once."""
    ask, call, answer = TURNS[1], ChatTurn("assistant", (CALL,)), TURNS[3]
    assert paired(TURNS) == TURNS
    assert paired((ask, call, said("user", "hurry"), answer)) == (ask, call, answer, said("user", "hurry"))
    assert paired((ask, call))[-1].results[0].text == NO_RESULT
    assert paired((ask, answer)) == (ask,)
    again = paired((ask, call, answer, call, answer))
    assert [turn.calls[0].id for turn in again if turn.calls] == ["c1", "c1_2"]
    assert [turn.results[0].tool_use_id for turn in again if turn.results] == ["c1", "c1_2"]


def test_what_a_turn_costs_is_the_one_estimate() -> None:
    """Of all that is sent; a picture counts for what it costs, not for its bytes."""
    assert said("user", "用户吃素").cost == 10 * estimate_tokens("用户吃素")
    assert ChatTurn("assistant", (CALL,)).cost == 3 * len('weather{"city":"Porto"}')
    picture = {"type": "image", "source": {"type": "base64", "data": "a" * 1_000_000}}
    assert ChatTurn("user", (Other(picture),)).cost == 10 * FILE_TOKENS


def test_a_turn_without_blocks_is_not_written() -> None:
    """A file that another system wrote may have one."""
    empty = ChatTurn("assistant", ())
    for shape in ("anthropic", "openai"):
        assert written((TURNS[1], empty, TURNS[1]), shape)["messages"] == [
            {"role": "user", "content": written((TURNS[1], TURNS[1]), shape)["messages"][0]["content"]}
        ]
