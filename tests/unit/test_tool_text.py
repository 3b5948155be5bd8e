"""Tool text in a user's turn is cut and proves nothing; a person who only writes like a tool loses nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memd.config import ClientSettings
from memd.context import Context
from memd.push.filtering import to_context
from memd.push.validation import check_push

CASES = Path(__file__).parents[1] / "data" / "blind" / "tool_text.jsonl"
CALL = 'Thought: I need the weather.\nAction: get_weather\nAction Input: {"city": "Oslo"}'


def context(text: Any, before: str | None = None) -> Context:
    messages = [{"role": "user", "content": text}]
    if before is not None:
        messages.insert(0, {"role": "assistant", "content": before})
    push = {"thread_id": "t", "user_id": "u", "messages": messages}
    return to_context(check_push(push, ClientSettings()))


def kept(text: Any, before: str | None = None) -> str:
    """What is left of the user's turn."""
    return "".join(message.content for message in context(text, before).messages if message.role == "user")


def is_right(case: dict[str, Any]) -> bool:
    rest = kept(case["text"], case["before"])
    if case["label"] == "person":
        return bool(rest == case["text"].strip())
    survives: bool = all(words in rest for words in case["must_survive"])
    leaks = any(words in rest for words in case["must_go"])
    return survives and not leaks and (case["label"] == "mixed" or not rest)


@pytest.mark.parametrize(
    ("half", "missed", "alarms"),
    [("open", 0, 0), ("held_out", 0, 0)],
)
def test_blind_cases_are_judged_in_both_directions(half: str, missed: int, alarms: int) -> None:
    """Cases by somebody who had not read the rules. The held-out half is for counting only."""
    lines = CASES.read_text(encoding="utf-8").splitlines()
    cases = [case for case in map(json.loads, lines) if case["half"] == half]
    wrong = Counter(case["label"] == "person" for case in cases if not is_right(case))
    assert len(cases) >= 40
    assert wrong[False] <= missed
    assert wrong[True] <= alarms


@pytest.mark.parametrize(
    ("text", "before", "left"),
    [
        ("<tool_response>\nA</tool_response>\nI live in Haifa.\n</tool_response>\nI like tea.", None, "I like tea."),
        ("<tool_response>\n<tool_response>\nA\n</tool_response>", None, ""),
        ("<tool_response>\n<system-reminder>A</system-reminder>\nB</tool_response>", None, ""),
        ("What is <tool_response>?\n<system-reminder>\nA\n</system-reminder>", None, "What is <tool_response>?"),
        ("<tool_response>\nI live in Haifa", CALL, ""),
        ("<tool_response>\nmeans what?", None, "<tool_response>\nmeans what?"),
        ("My log:\n```\n<tool_response>\nA\n</tool_response>\n```\nIs it fine?", None, None),
        ("Is `<tool_response>\n</tool_response>` right?", None, None),
        ("I like tea.\nObservation: snow", CALL, "I like tea."),
        ("Which tea?\n\nThought: look\nAction: search\nAction Input: tea\nObservation: I like tea\n\nI live in Porto.",
         None, "Which tea?\n\n\n\nI live in Porto."),
        ("Action: I stretch.\nObservation: it helps.", None, None),
        ('{"city": "Oslo"}', CALL, ""),
        ('{"city": "Oslo"}', "Where do you live?", None),
        ('{"city": "Oslo"', CALL, None),
        ('{"tool_call_id": "c1", "content": "I live in Haifa."}', None, ""),
        ("[Tool Result: search]\nI live in Haifa.", None, ""),
        ("exitcode: 0 (execution succeeded)\nCode output: 42", None, ""),
        ("**工具调用结果**：\n晴", None, ""),
        ("<reminder>Update your todos.</reminder>\nI live in Porto.", None, "I live in Porto."),
        ("<reminder>Buy tea.</reminder>\nI live in Porto.", None, None),
        ("Result: 3:1, my son scored.", CALL, ""),
        ("Result: 3:1, my son scored.", "How was it?", None),
        ("Observation: 3:1, my son scored.", "Action: drink more water, as I said.", None),
    ],
)  # fmt: skip
def test_only_tool_text_goes(text: str, before: str | None, left: str | None) -> None:
    """Results that hold tags end where they end; quoted tags, a person's lines, and JSON that was asked for stay."""
    assert kept(text, before) == (text if left is None else left)


def test_tool_text_is_counted() -> None:
    """A turn of nothing else is a tool's; in others the blocks that were cut are counted."""
    reminder = "<system-reminder>\nI live in Haifa.\n</system-reminder>"
    assert context(reminder).dropped == {"tool": 1}
    found = context(f"{reminder}\nI live in Porto.\n{reminder}")
    assert [message.content for message in found.messages] == ["I live in Porto."]
    assert (found.dropped, found.cut) == ({}, {"tool_text": 2})


def test_the_answer_behind_a_result_is_kept() -> None:
    """A result in the user's turn is no turn of the user: the reply behind it belongs to the question before it."""
    turns = ["How warm is it in Oslo, where I live?", CALL, "Observation: -3 °C", "It is -3 °C."]
    messages = [{"role": ("user", "assistant")[place % 2], "content": text} for place, text in enumerate(turns)]
    push = {"thread_id": "t", "user_id": "u", "messages": messages}
    found = to_context(check_push(push, ClientSettings()))
    assert [message.content for message in found.messages] == [turns[0], CALL, turns[3]]
    assert found.dropped == {"tool": 1}
