"""Whatever messages a session lets in, all behind it takes: storing, cutting, telling, writing for a provider."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, get_args

import msgspec
import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.config import SessionSettings
from memd.errors import Rejected
from memd.session.chat import ChatTurn
from memd.session.outline import outline
from memd.session.reading_chats import read
from memd.session.told import told
from memd.session.window import STRATEGIES, folded, plan, window
from memd.session.writing_chats import Shape, written

SMALL = SessionSettings(max_tokens=40, compact_tokens=40, keep_tokens=10, summary_tokens=20)

FIELDS = (
    "text", "id", "name", "input", "args", "content", "output", "tool_use_id", "toolUseId", "source", "image_url",
    "url", "base64", "mime_type", "refusal", "state", "is_error", "thought", "toolCallId", "transcript",
)  # fmt: skip
TYPES = (
    "text", "tool_use", "tool_result", "image", "image_url", "thinking", "refusal", "tool_call", "tool-call",
    "function_call", "input_audio", "document", "holograph", "executable_code", "server_tool_use", "guardContent",
)  # fmt: skip
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "a", "text", "c1", "{", "[1]", "用户"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=6,
)
BLOCKS = st.builds(
    lambda fields, name: {**fields, "type": name},
    st.dictionaries(st.sampled_from(FIELDS), ANY, max_size=5),
    st.sampled_from(TYPES),
)
FUNCTIONS = st.fixed_dictionaries({"name": st.just("f"), "arguments": ANY})
CALLS = st.fixed_dictionaries({"id": st.sampled_from(["c1", "c2"])}, optional={"name": st.just("f"), "args": ANY}) | (
    st.fixed_dictionaries({"id": st.just("c1"), "function": FUNCTIONS})
)
MESSAGES = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["user", "assistant", "system", "tool"]),
        "content": st.lists(BLOCKS, max_size=3) | st.sampled_from(["", "hi", "x" * 300]),
    },
    optional={"tool_calls": st.lists(CALLS, max_size=2), "tool_call_id": st.just("c1"), "refusal": ANY, "id": ANY},
)


@settings(max_examples=80)
@given(st.lists(MESSAGES, min_size=1, max_size=4))
def test_what_is_let_in_breaks_nothing(messages: list[dict[str, Any]]) -> None:
    """A message is refused, or becomes turns that survive storing and that each provider is written."""
    turns: tuple[ChatTurn, ...] = ()
    for message in messages:
        with suppress(Rejected):
            turns += read(message)
    assert msgspec.json.decode(msgspec.json.encode(turns), type=tuple[ChatTurn, ...]) == turns
    for strategy in STRATEGIES:
        chosen = msgspec.structs.replace(SMALL, strategy=strategy)
        left = window(folded(plan(turns, chosen), "notes"), chosen)
        for shape in get_args(Shape):
            orjson.dumps(written(left, shape))
    told(turns, SMALL, 1_000)
    outline(turns, 100)
