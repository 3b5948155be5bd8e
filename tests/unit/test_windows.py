"""The window: whatever the history, every provider takes it, the newest turn is in it, and the limits hold."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from support.chat_rules import check_accepted

from memd.config import SessionSettings
from memd.context import estimate_tokens
from memd.session.chat import SUMMARY_HEAD, ChatTurn, Other, Text, ToolResult, ToolUse, said
from memd.session.pairs import paired
from memd.session.plans import window_of
from memd.session.shrinking import shrunk
from memd.session.strategies import auto
from memd.session.window import ACKNOWLEDGED, STRATEGIES, folded, plan, plan_now, window
from memd.session.writing_chats import Shape, written

SMALL = SessionSettings(
    max_tokens=400,
    compact_tokens=300,
    keep_tokens=100,
    summary_tokens=100,
    model_tokens=1_000,
    auto_messages=6,
    auto_keep=3,
    transcript_tokens=300,
    whole_turns=4,
    tool_input_chars=100,
    tool_result_chars=150,
    tool_results=2,
    offload_chars=100,
)
"""Limits that short histories pass."""

DEFAULT = SessionSettings()
SUMMARY = "The user is called Ana."

IDS = st.sampled_from(["c1", "c2", "c3", "c.4"])
WORDS = st.sampled_from(["ok", "用户吃素", "word " * 40, "字" * 130, "x" * 700, "It is 21 degrees."]).map(Text)
PICTURE: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
FILES = st.just(Other(PICTURE))
THOUGHTS = st.just(Other({"type": "thinking", "thinking": "Hm.", "signature": "s"}))
USES = st.builds(ToolUse, IDS, st.just("search"), st.sampled_from([{}, {"q": "a" * 200, "n": 3}, "no {json", [1, 2]]))
RESULTS = st.builds(ToolResult, IDS, st.lists(WORDS | FILES, max_size=2).map(tuple), st.booleans())


fewer = examples(max_examples=60)
"""Nine tests draw from the same histories."""


def turns(role: str, blocks: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[ChatTurn]:
    """Turns of a role with some of these blocks."""
    several = st.lists(blocks, min_size=1, max_size=most).map(tuple)
    return st.builds(ChatTurn, st.just(role), several, st.uuids().map(str), name=st.sampled_from([None, "Ana", "Bo"]))


@st.composite
def rounds(draw: st.DrawFn) -> list[ChatTurn]:
    """A turn that calls tools and, mostly, their results: together, one by one, or in another order."""
    asks = draw(turns("assistant", USES | WORDS, 3))
    results = [ToolResult(use.id, (draw(WORDS),)) for use in asks.calls]
    if not draw(st.booleans()):
        results.reverse()
    apart = [ChatTurn("tool", (result,)) for result in results]
    return [asks, *(apart if draw(st.booleans()) or not results else [ChatTurn("tool", tuple(results))])]


ANY = (
    turns("user", WORDS | FILES)
    | turns("assistant", WORDS | THOUGHTS | USES, 3)
    | turns("tool", RESULTS)
    | turns("system", WORDS, 1)
)
HISTORIES = st.lists(ANY.map(lambda turn: [turn]) | rounds(), max_size=12).map(
    lambda parts: [turn for part in parts for turn in part]
)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("shape", get_args(Shape))
@fewer
@given(history=HISTORIES, deleted=st.lists(st.integers(0, 40), max_size=3))
def test_every_provider_takes_every_window(
    shape: Shape, strategy: str, history: list[ChatTurn], deleted: list[int]
) -> None:
    """Orphans, calls without results, ids used twice, deleted turns; at each turn of the conversation."""
    settings = msgspec.structs.replace(SMALL, strategy=strategy)
    session: tuple[ChatTurn, ...] = ()
    for turn in history:
        newest = paired((*session, turn))[-1:]
        session = folded(plan((*session, turn), settings), SUMMARY)
        seen = window(session, settings)
        check_accepted(written(seen, shape), shape)
        assert seen[-1:] == newest
    for index in deleted:
        session = session[: index % 9] + session[index % 9 + 1 :]
        check_accepted(written(window(session, settings), shape), shape)
        check_accepted(written(window(folded(plan_now(session, settings), SUMMARY), settings), shape), shape)


@pytest.mark.parametrize("strategy", STRATEGIES)
@fewer
@given(history=HISTORIES)
def test_a_plan_keeps_the_newest_loses_nothing_and_holds_its_limits(strategy: str, history: list[ChatTurn]) -> None:
    """What does not stay is in the summary, in its order; the rest fits, unless the newest alone does not."""
    settings = msgspec.structs.replace(SMALL, strategy=strategy)
    before = paired(history)
    made = plan(history, settings)
    window_before, window_after = window_of(before, settings), window_of(made.keep, settings)

    head = before[: window_before.head]
    kept = made.keep[window_before.head :]
    assert (*head, *made.summarise) == before[: len(head) + len(made.summarise)]
    texts = {auto.reference(piece): piece.text for piece in made.offload}
    assert _words(kept, texts) == _words(before[len(head) + len(made.summarise) :], texts)
    assert kept[-2:] == before[len(head) :][-len(kept[-2:]) :] or made.offload
    assert paired(made.keep) == made.keep
    assert not made.changes or window_after.tokens <= window_before.tokens or strategy == "auto"
    most = {"recent": settings.keep_tokens, "auto": 300, "transcript": 0}[strategy]
    if made.summarise and strategy != "auto":
        newest = window_after.tokens_behind()[window_after.newest]
        assert window_after.tokens <= max(most, newest)
    if strategy == "auto" and window_after.tokens > most:
        rest = list(window_after.shrunk[window_after.head : window_after.newest])
        assert all(len(part) <= settings.offload_chars for part in _texts(rest))


def _texts(kept: list[ChatTurn]) -> list[str]:
    blocks = [block for turn in kept for block in turn.blocks]
    inner = [part for block in blocks if isinstance(block, ToolResult) for part in block.output]
    return [block.text for block in (*blocks, *inner) if isinstance(block, Text)]


def _words(kept: tuple[ChatTurn, ...], texts: dict[str, str]) -> list[str]:
    return [texts.get(text, text) for text in _texts(list(kept))]


def long_chat(turns_said: int, tokens: int) -> tuple[ChatTurn, ...]:
    """Turns of user and assistant with so many tokens each."""
    words = "word " * (tokens * 2 // 3)
    return tuple(said("assistant" if number % 2 else "user", f"{number} {words}") for number in range(turns_said))


def test_recent_keeps_the_newest_15_000_tokens_above_30_000() -> None:
    """The numbers of the default; the rest is for the summary, which is one turn with its answer."""
    below, above = long_chat(29, 1_000), long_chat(31, 1_000)
    assert not plan(below, DEFAULT).changes

    made = plan(above, DEFAULT)
    assert 14 <= len(made.keep) <= 15
    assert made.keep == above[-len(made.keep) :]
    assert not made.must
    assert plan(long_chat(41, 1_000), DEFAULT).must
    first, *rest = folded(made, SUMMARY)
    assert first.text == SUMMARY_HEAD + SUMMARY
    assert first.kind == "summary"
    assert rest[0].text == ACKNOWLEDGED or rest[0].role == "assistant"


def test_the_newest_is_kept_however_large_and_once_it_is_alone_nothing_is_done_again() -> None:
    """Each call would cost a summary of a summary."""
    huge = said("user", "word " * 50_000)
    made = plan((*long_chat(4, 100), huge), DEFAULT)
    assert made.keep == (huge,)
    assert made.must
    assert not plan(folded(made, SUMMARY), DEFAULT).changes


def test_auto_counts_messages_and_offloads_when_the_newest_ten_are_too_large() -> None:
    """30 messages as a provider gets them, or 0.3 of the window; a reference stands for each text, the oldest first."""
    settings = SessionSettings(strategy="auto", model_tokens=40_000)
    assert not plan(long_chat(30, 10), settings).changes
    assert not plan(tuple(said("user", "hi") for _ in range(100)), settings).changes
    made = plan(long_chat(31, 10), settings)
    assert (len(made.keep), len(made.summarise), made.offload) == (10, 21, ())

    made = plan(long_chat(12, 2_000), settings)
    assert len(made.keep) == 10
    assert 4 <= len(made.offload) <= 5
    assert made.keep[0].text == f"[offloaded {made.offload[0].id}: {len(made.offload[0].text)} characters]"
    assert made.keep[-1].text == long_chat(12, 2_000)[-1].text


def test_transcript_replaces_all_but_the_newest() -> None:
    """A call and its result are one."""
    settings = SessionSettings(strategy="transcript")
    ask = ChatTurn("assistant", (ToolUse("c1", "read", {}),))
    result = ChatTurn("tool", (ToolResult("c1", (Text("done"),)),))
    assert not plan(long_chat(49, 1_000), settings).changes
    assert plan((*long_chat(51, 1_000), ask, result), settings).keep == (ask, result)
    messages = written(folded(plan(long_chat(51, 1_000), settings), SUMMARY))["messages"]
    assert messages[:2] == [
        {"role": "user", "content": f"[Compressed]\n\n{SUMMARY}"},
        {"role": "assistant", "content": "Understood. Continuing."},
    ]


def test_system_turns_at_the_beginning_stay_and_count_for_nothing() -> None:
    """They are the app's instructions."""
    system = said("system", "rule " * 30_000)
    assert not plan((system, *long_chat(10, 100)), DEFAULT).changes
    made = plan((system, *long_chat(40, 1_000)), DEFAULT)
    assert made.keep[0] == system
    assert folded(made, SUMMARY)[:2] == (system, folded(made, SUMMARY)[1])
    assert folded(made, SUMMARY)[1].kind == "summary"


def tool_rounds(count: int, words: str, **given: Any) -> list[ChatTurn]:
    """Rounds of one call and its result."""
    return [
        turn
        for number in range(count)
        for turn in (
            ChatTurn("assistant", (ToolUse(f"c{number}", "search", given),)),
            ChatTurn("tool", (ToolResult(f"c{number}", (Text(words),)),)),
        )
    ]


def test_old_results_become_a_line_and_the_last_three_stay() -> None:
    """Short ones stay as they are. The session itself keeps all."""
    history = (said("user", "Go"), *tool_rounds(6, "r" * 101), said("assistant", "Done"))
    seen = [result.text for turn in shrunk(history, DEFAULT) for result in turn.results]
    assert seen == ["[Previous: used search]"] * 3 + ["r" * 101] * 3
    short = (said("user", "Go"), *tool_rounds(6, "r" * 100), said("assistant", "Done"))
    assert shrunk(short, DEFAULT) == short


def test_results_that_the_model_has_not_seen_are_whole() -> None:
    """However many calls one turn makes."""
    uses = tuple(ToolUse(f"c{number}", "read", {}) for number in range(8))
    results = tuple(ToolResult(use.id, (Text("r" * 5_000),)) for use in uses)
    history = (said("user", "Go"), ChatTurn("assistant", uses), ChatTurn("tool", results))
    assert shrunk(history, DEFAULT) == history


def test_inputs_and_results_of_older_turns_are_cut() -> None:
    """An input at 500 characters, its fields kept; a result at 1,000. The last ten turns are whole."""
    settings = SessionSettings(tool_results=100)
    history = (said("user", "Go"), *tool_rounds(9, "r" * 3_000, path="a.py", text="t" * 2_000))
    seen = shrunk(history, settings)

    old = seen[1].calls[0].input
    assert old["path"] == "a.py"
    assert old["text"].startswith("ttt")
    assert "2000 characters, cut" in old["text"]
    assert len(msgspec.json.encode(old)) <= 500 + 2  # … has three bytes
    assert len(seen[2].results[0].text) == 1_000
    assert seen[-10:] == history[-10:]


def test_the_summary_and_what_stays_must_fit_below_the_limit() -> None:
    """Else each call would compact again."""
    with pytest.raises(ValueError, match="keep_tokens"):
        SessionSettings(keep_tokens=29_000)
    with pytest.raises(ValueError, match="auto_keep"):
        SessionSettings(auto_keep=30)


def test_the_costs_are_the_one_estimate() -> None:
    """Of the words of the window."""
    chat = long_chat(3, 10)
    assert window_of(chat, DEFAULT).tokens == estimate_tokens("".join(turn.text for turn in chat))
