"""The fast paths of filtering: they find what the full paths find, on windows of the words and shapes that matter."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from memd.config import ClientSettings
from memd.context import Context
from memd.push import compaction, tool_text
from memd.push.compaction import is_compaction
from memd.push.filtering import to_context
from memd.push.patterns import compiled, load
from memd.push.validation import check_push, in_namespace

PIECES = [
    *(
        "I live in Porto",
        "yes",
        "ok",
        "thanks",
        "No",
        "好的",
        "谢谢",
        "我住在波尔图",
        "对",
        "Shall I save it?",
        "要我保存吗？",
    ),
    *(
        "你对坚果过敏吗？",
        "Are you allergic to nuts?",
        "Hola",
        "да",
        "はい",
        "네",
        "\U0001d400",
        "ſummary",
        "SUMMARY",
        "İ",
    ),
    *("<memory>", "</memory>", "<memory>\nFacts:\n- a\n</memory>", "<uploaded_files>", "</uploaded_files>", "a < b"),
    *(
        "<tool_response>",
        "</tool_response>",
        "<result>",
        "</result>",
        "[TOOL_CALLS]",
        "{",
        "}",
        '{"type": "tool_result"}',
    ),
    *(
        "Observation:",
        "observation: cold",
        "Thought: so",
        "Action: search[x]",
        "Action Input:",
        "观察：",
        "思考：",
        "行动：查",
    ),
    *(
        "Tool result:",
        "[tool result]",
        "工具返回：",
        "工具结果",
        "exitcode: 0 (execution ",
        "Search results:",
        "EXECUTION RESULT of [",
    ),
    *("This session is being continued from a previous conversation", "Here is a summary of the conversation so far:"),
    *(
        "Previous conversation summary:",
        "The chat history was compacted to save",
        "[Context compacted]",
        "the user",
        "I",
        "my",
    ),
    *(
        "以下是之前对话的摘要：",
        "[对话摘要]",
        "上下文已被压缩。",
        "用户",
        "总结",
        "之前的对话",
        "これまでの会話の要約",
        "지금까지의 대화 요약",
    ),
    *(
        "Résumé de la conversation précédente",
        "Краткое содержание предыдущего разговора:",
        "resumen de la conversación anterior:",
    ),
    *("\n", "\n\n", "  ", "\t", "**", "# ", "```", "?", ":", "\x00", "\u202e", "\u200b"),
]
TEXTS = st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=8)), max_size=7).map(" ".join) | st.lists(
    st.sampled_from(PIECES), max_size=5
).map("".join)


@st.composite
def windows(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Messages of all roles; some have ids, times, blocks, flags, files or calls."""
    roles = st.sampled_from(
        ["user", "assistant"] * 5 + ["User", "human", "ai", "agent", "HumanMessageChunk", "tool", "system"]
    )
    content = st.one_of(TEXTS, TEXTS, TEXTS, TEXTS.map(lambda text: [{"type": "text", "text": text}, text]))
    extras: list[dict[str, Any]] = [{}, {}, {}, {}, {"id": "m"}, {"id": ""}, {"created_at": 5}, {"hide_from_ui": True}]
    extras += [{"type": "human"}, {"tool_calls": [{"id": "c"}]}, {"name": "x"}, {"parts": [{"text": "I"}]}]
    message = st.builds(
        lambda role, text, extra: {"role": role, "content": text, **extra}, roles, content, st.sampled_from(extras)
    )
    return draw(st.lists(message, min_size=1, max_size=8))


def context(messages: list[dict[str, Any]], app: str) -> Context:
    push = check_push({"thread_id": "t", "user_id": "u", "messages": messages}, ClientSettings())
    push = in_namespace(push, app)
    return to_context(replace(push, former_thread="t" if app else ""))


@settings(max_examples=300, deadline=None)
@given(windows(), st.sampled_from(["", "app"]))
def test_plain_messages_take_the_fast_path_to_the_same_context(messages: list[dict[str, Any]], app: str) -> None:
    """A field of no meaning sends each message down the full path: nothing else changes."""
    assert context(messages, app) == context([{**message, "of_no_meaning": 1} for message in messages], app)


@settings(max_examples=600, deadline=None)
@given(TEXTS)
def test_the_words_looked_for_lose_no_summary_and_no_tool_text(text: str) -> None:
    """What every pattern says when asked alone, without the words that choose which of them to ask."""
    assert is_compaction(text) == _is_compaction(text)
    if not tool_text._could_hold(text.strip()):
        for after_call in (lambda: True, lambda: False):
            assert tool_text.cut(text.strip(), after_call) == (text.strip(), ())


@pytest.mark.parametrize("module", [compaction, tool_text])
def test_every_pattern_of_an_opening_has_words_to_look_for(module: Any) -> None:
    """One pattern without would be tried on every turn."""
    prefilter = module._prefilter()
    assert not prefilter.could_match(
        prefilter.literals_in("I live in Porto, and the coffee that this city has is yours.")
    )
    assert not prefilter.could_match(prefilter.literals_in("我住在波尔图，每天早上喝咖啡。"))


FULL = {name: compiled(sources) for name, sources in load("compaction").items()}


def _is_compaction(text: str) -> bool:
    text = text.lstrip()
    if FULL["known"].match(text[: compaction._OPENING]):
        return True
    head = FULL["heads"].match(text[: compaction._OPENING]) is not None
    if not head and not FULL["about"].search(text[: compaction._FIRST_LINES]):
        return False
    said = re.sub(compaction._QUOTED, " ", text[: compaction._LOOK_AT])
    told, own = FULL["told"].search(said) is not None, FULL["own"].search(said) is not None
    return (told or not own) if head else (told and not own)
