"""Filtering: what an extractor should never read is dropped, and counted by its reason."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.adapters.agent_memory import NOTE, search_block, with_note
from memd.config import ClientSettings, RecallSettings
from memd.context import Context
from memd.memory.said.turns import Turn
from memd.push.answers import strength_of
from memd.push.filtering import to_context
from memd.push.validation import check_push
from memd.recall.inject import _HEADINGS, inject
from memd.recall.layers import Excerpt
from memd.recall.search import Found


def context(*messages: dict[str, Any], **fields: Any) -> Context:
    push = {"thread_id": "t", "user_id": "u", "messages": list(messages), **fields}
    return to_context(check_push(push, ClientSettings()))


def user(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "user", "content": text, **fields}


def reply(text: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **fields}


def kept(*messages: dict[str, Any]) -> list[str]:
    return [message.content for message in context(*messages).messages]


def test_user_turns_and_final_replies_are_kept() -> None:
    """A plain exchange goes through as it is."""
    assert kept(user("I live in Porto."), reply("A fine city.")) == ["I live in Porto.", "A fine city."]


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (reply(None, tool_calls=[{"id": "1"}]), {"role": "tool", "tool_call_id": "1", "content": "sunny"}),
        (reply("Let me look.", function_call={"name": "f"}), {"role": "function", "name": "f", "content": "sunny"}),
        (
            reply(
                [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "id": "1", "name": "f", "input": {}}]
            ),
            user([{"type": "tool_result", "tool_use_id": "1", "content": "sunny"}]),
        ),
        (
            {"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {}, "id": "1"}]},
            {"type": "tool", "content": "sunny", "tool_call_id": "1"},
        ),
        (
            {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [{"id": "1"}]}},
            {"type": "tool", "content": "sunny"},
        ),
    ],
)
def test_tool_calls_and_results_are_dropped(call: dict[str, Any], result: dict[str, Any]) -> None:
    """In every framework's shape: the call and its result go, the user's turn and the final reply stay."""
    found = context(user("How is the weather where I live, in Porto?"), call, result, reply("It is sunny in Porto."))
    assert [m.content for m in found.messages] == [
        "How is the weather where I live, in Porto?",
        "It is sunny in Porto.",
    ]
    assert found.dropped == {"tool_call": 1, "tool": 1}


def test_langchain_and_block_shapes_are_read() -> None:
    """LangChain types and lists of text blocks become plain turns."""
    assert kept(
        {"type": "human", "content": [{"type": "text", "text": "I live"}, {"type": "text", "text": "in Porto."}]},
        {"type": "ai", "content": "Nice.", "tool_calls": [], "additional_kwargs": {}},
    ) == ["I live\nin Porto.", "Nice."]


def test_system_and_hidden_turns_are_dropped() -> None:
    """System prompts and messages that the framework hides from people are not the user's words."""
    found = context(
        {"role": "system", "content": "You are helpful."},
        {"role": "developer", "content": "Be brief."},
        {"type": "human", "content": "internal", "additional_kwargs": {"hide_from_ui": True}},
        user("I live in Porto."),
    )
    assert [m.content for m in found.messages] == ["I live in Porto."]
    assert found.dropped == {"system": 2, "hidden": 1}


def test_upload_blocks_are_cut_out() -> None:
    """Upload blocks go; a turn that was nothing else goes with its reply."""
    found = context(
        user("<uploaded_files>\n- a.pdf\n</uploaded_files>"),
        reply("I have read a.pdf."),
        user('<current_uploads count="1">b.pdf</current_uploads>I live in Porto.'),
        reply("Nice."),
    )
    assert [m.content for m in found.messages] == ["I live in Porto.", "Nice."]
    assert found.dropped == {"upload_only": 1, "reply_of_dropped": 1}
    assert found.cut == {"uploads": 2}


def test_memds_own_block_never_comes_back() -> None:
    """What memd injected is cut out of any turn, closed or not, and counted, so that memory never feeds on itself."""
    block = "<memory>\nFacts:\n- [identity | 0.90] The user lives in Oslo.\n</memory>"
    unclosed = f"{block.removesuffix('</memory>')}\nI have a cat."
    found = context(user(f"{block}\nI live in Porto."), reply(block), user(unclosed))
    assert [m.content for m in found.messages] == ["I live in Porto.", "I have a cat."]
    assert found.cut == {"memory": 3}
    assert found.dropped == {"hidden": 1}


SAID = (("2026-11-22T10:00:00.000Z", False), ("", True))
WHOLE = inject(
    {
        "user": {name: {"summary": "At Acme."} for name in ("workContext", "personalContext", "topOfMind")},
        "history": {name: {"summary": "Was."} for name in ("recentMonths", "earlierContext", "longTermBackground")},
        "facts": [
            {"id": "fact_1", "content": "Lives in Oslo", "category": "identity", "confidence": 0.9},
            {"id": "fact_2", "content": "喜欢喝绿茶", "category": "preference", "confidence": 1},
        ],
    },
    RecallSettings(),
    first=[Excerpt(Turn("i1", "t", "user", "I row.", at), "I row.", over, agent_name="") for at, over in SAID],
    pending=["I row."],
)
FOUND = search_block(
    Found(
        {"id": "fact_1", "content": "Lives in Oslo", "category": "identity", "confidence": 0.9},
        1.0,
        1.0,
        0.9,
        1.0,
        late,
    )
    for late in (False, True)
)


@pytest.mark.parametrize("first", [*_HEADINGS, NOTE])
def test_every_first_line_of_a_block_is_known(first: str) -> None:
    """Whatever `memd inject` and the tools for agents write first, their block is cut."""
    assert kept(user(f"<memory>\n{first}\n\n- Likes tea\n</memory>\n\nI live in Porto.")) == ["I live in Porto."]


@pytest.mark.parametrize("block", [WHOLE, FOUND, with_note(WHOLE)])
def test_a_block_of_memd_that_is_not_closed_ends_with_its_own_lines(block: str) -> None:
    """Every part that memd writes is cut, and nothing behind it."""
    found = context(user(f"{block.removesuffix('</memory>')}\nFacts:\n- I live in Porto."))
    assert [m.content for m in found.messages] == ["Facts:\n- I live in Porto."]
    assert found.cut == {"memory": 1}


@pytest.mark.parametrize(
    "files",
    [
        "\n/workspace/django\n",
        "\nThe following files were uploaded in this message:\n\n- My plan.pdf (1.2 MB)\n  Path: /mnt/My plan.pdf\n",
        "\n以下文件已上传：\n\n- 体检报告.docx（84.0 KB）\n  L1: 我的报告\n",
        '\n[{"name": "a.pdf", "size": 1024}]\n',
        "\n<file>\n<name>a.pdf</name>\n<size>3 KB</size>\n</file>\n",
        "\n| a.pdf | 3 KB |\n",
        "\n- [a.pdf](/mnt/a.pdf)\n- Makefile (3 KB)\n",
        "a.pdf, b.pdf",
        " ./ ",
        "\n",
        "\nThe following files were uploaded in this message:\n\n(empty)\n",
        "\n本轮用户上传的附件：\n- 文件名：报告.pdf\n  大小：3 字节\n",
    ],
)
def test_a_hosts_list_of_files_is_cut(files: str) -> None:
    """In the forms that hosts write: names, sizes, paths, elements, tables, with lines around them."""
    assert kept(user(f"<uploaded_files>{files}</uploaded_files>\nI live in Porto.")) == ["I live in Porto."]


@pytest.mark.parametrize(
    "text",
    [
        "#include <memory>\nWhat does this header do? I write C++ at work.",
        "<memory> I am a king",
        "My server has <memory>16GB</memory> and I run Proxmox.",
        "<memory>\n16GB\n</memory>\nare the specs of my laptop.",
        "What does <uploaded_files> in my log mean? I host at home.",
        "<uploaded_files>\n{{files}}\n</uploaded_files>\nis my template.",
        "  <uploaded_files><max>1</max></uploaded_files> is in my config",
        "<uploaded_files>\nI live in Porto.\n</uploaded_files>",
        "<uploaded_files>\n我住在杭州。\n</uploaded_files>",
        "<current_uploads>\n- a.pdf\nI live in Porto.\n</current_uploads>",
        "<memory>\nFacts:\n- I am allergic to nuts and wrote this by hand",
        "<memory>\nFacts:\n- 我对花生过敏，这是我自己写的",
        "<memory>\nUser Context:\nI live in Porto.",
    ],
)
def test_a_tag_of_the_user_stays(text: str) -> None:
    """A tag that the user writes about, or pastes, cuts nothing, closed or not."""
    found = context(user(text))
    assert [m.content for m in found.messages] == [text.strip()]
    assert found.cut == {}


@pytest.mark.parametrize(
    "text",
    [
        "ok",
        "OK!!",
        "Okay.",
        "thanks",
        "Thank you so much!",
        "好的",
        "好的，谢谢！",
        "谢谢",
        "嗯嗯",
        "收到。",
        "👍",
        "ok 👌",
        "k",
        "got it.",
    ],
)
def test_acknowledgements_go_with_their_reply(text: str) -> None:
    """Pure acknowledgements say nothing, in either language, with or without punctuation."""
    found = context(user("I live in Porto."), reply("Nice."), user(text), reply("You are welcome."))
    assert [m.content for m in found.messages] == ["I live in Porto.", "Nice."]
    assert found.dropped == {"acknowledgement": 1, "reply_of_dropped": 1}


@pytest.mark.parametrize(
    "text",
    [
        "ok, but I live in Porto",
        "好的，我住在杭州",
        "no, I meant the second one",
        "yes please move it to Friday",
        "谢谢，不过不对",
    ],
)
def test_more_than_an_acknowledgement_is_kept(text: str) -> None:
    """An acknowledgement with content is content."""
    assert kept(user(text)) == [text]


QUESTION = "Are you allergic to nuts?"


@pytest.mark.parametrize(
    "answer",
    ["Yes!", "no", "right", "sure", "sounds good", "对", "是的", "可以", "好", "Ja", "はい", "네", "oui", "да"],
)
def test_an_answer_is_kept_with_its_question(answer: str) -> None:
    """A bare answer says something after a question, in any language; after a statement it says nothing."""
    plan = user("Plan my diet for April.")
    assert kept(plan, reply(QUESTION), user(answer), reply("Noted."))[1:] == [QUESTION, answer, "Noted."]
    assert answer not in kept(plan, reply("Here is the plan. It is saved."), user(answer))


AFTER = "Nuts hide in many foods. Pesto has them. So has satay. Marzipan is made of almonds. Labels help. Ask the cook."
STEPS = "\n".join(f"{n}. Stir the pot for {n} minutes. Then let it rest." for n in range(1, 40))
FENCE = "```python\n" + "print('nuts?')\n" * 60 + "```"


@pytest.mark.parametrize("answer", ["Yes!", "no", "nope", "对", "不是", "没有"])
@pytest.mark.parametrize(
    "question",
    [
        f"{QUESTION} {AFTER}",
        f"{QUESTION} {AFTER} Is there anything else I can help you with?",
        f"{QUESTION}\n\n{STEPS}",
        f"{QUESTION}\n{FENCE}",
        f"{FENCE}\n{QUESTION}",
        "您对花生过敏吗？\n" + "\n".join(f"{n}. 加水煮{n}分钟。再放一点盐。" for n in range(1, 5)),
    ],
)
def test_a_question_anywhere_in_the_turn_before_is_answered(question: str, answer: str) -> None:
    """Yes and no are kept however much the assistant says after its question; code asks nothing."""
    plan = user("Plan my diet for April.")
    assert kept(plan, reply(question), user(answer))[1:] == [question, answer]
    assert kept(plan, user("thanks"), reply(question), user(answer))[1:] == [question, answer]
    assert answer not in kept(plan, reply(f"{STEPS}\n{FENCE}"), user(answer))


@pytest.mark.parametrize("text", ["thanks", "ok", "bye", "thank you so much!", "谢谢", "再见"])
def test_thanks_answer_nothing(text: str) -> None:
    """Thanks, ok and goodbyes stay dropped after a question, too."""
    assert kept(user("Plan my diet for April."), reply(QUESTION), user(text))[1:] == [QUESTION]


def test_consent_to_an_offer_is_an_answer() -> None:
    """ "ok" to "shall I ...?" is consent; nothing is an answer to "anything else?"."""
    offer = reply("Shall I always answer in German?")
    assert kept(offer, user("ok"))[1:] == ["ok"]
    assert kept(reply("Is there anything else I can help you with?"), user("no, that's all, thanks"))[1:] == []


@pytest.mark.parametrize(
    ("text", "stays"), [("Yes", True), ("nope", True), ("不是", True), ("ok", False), ("谢谢", False)]
)
def test_a_bare_yes_pushed_alone_passes_the_door(text: str, stays: bool) -> None:
    """Without the turn before it the door cannot tell; the drain can."""
    assert bool(kept(user(text))) is stays


def test_the_question_of_an_answer_is_kept_whatever_it_replies_to() -> None:
    """A reply to thanks is dropped, but not if it asks what the user then answers."""
    ask = reply(f"You are welcome! {QUESTION}")
    assert kept(user("I live in Porto."), user("thanks"), ask, user("yes"))[1:] == [ask["content"], "yes"]
    assert kept(user("I live in Porto."), user("thanks"), reply("You are welcome!"), user("yes"))[1:] == []


def test_a_compaction_summary_goes_with_its_reply() -> None:
    """What another tool put in place of older turns is nobody's words, and gives no signal."""
    summary = "Here is a summary of the conversation to date:\n\n- No, I meant Porto. The user is allergic to nuts."
    found = context(user(summary), reply("Let us go on."), user("I have a cat."), reply("Nice."))
    assert [m.content for m in found.messages] == ["I have a cat.", "Nice."]
    assert found.dropped == {"compaction": 1, "reply_of_dropped": 1}
    alone = context(user("I have a cat."), reply("Nice."))
    assert [m.signals for m in found.messages] == [m.signals for m in alone.messages]


def test_a_signal_that_a_producer_names_is_about_a_turn_that_is_kept() -> None:
    """Praise in a turn that is dropped is still praise for what came before it."""
    found = context(
        user("Draft the mail in my usual tone."), reply("Dear all"), user("great!"), signals=["reinforcement"]
    )
    assert [m.signals for m in found.messages] == [{"reinforcement"}, frozenset()]


@pytest.mark.parametrize(
    ("turns", "place"),
    [
        ([user("I live in Porto."), reply("Nice.")], 0),
        ([user("Tea?"), reply("Yes."), user("I live in Porto."), reply("Nice."), user("ok"), reply("Bye.")], 2),
        ([user("ok"), reply("Bye."), user("I live in Porto."), reply("Nice.")], 0),
        ([reply("Nice.")], 0),  # no user message is left
    ],
)
def test_signals_that_a_producer_names_belong_to_the_last_user_message(turns: list[Any], place: int) -> None:
    """A reply proves nothing, so a signal on it would do nothing."""
    found = context(*turns, signals=["correction"]).messages
    assert [index for index, message in enumerate(found) if "correction" in message.signals] == [place]


def test_identities_are_stable_over_growing_windows() -> None:
    """The same message in a longer window of its thread keeps its identity, with and without ids."""
    turns = [user("one thing"), reply("reply one"), user("thing two"), reply("reply two")]
    short, long = context(*turns[:2]), context(*turns)
    assert [m.identity for m in short.messages] == [m.identity for m in long.messages][:2]
    assert len({m.identity for m in long.messages}) == 4


TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)
CONTENT = TEXT | st.lists(st.fixed_dictionaries({"type": st.sampled_from(["text", "image", "tool_use"]), "text": TEXT}))
MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "AIMessage"]), "content": CONTENT | st.none()},
    optional={
        "tool_calls": st.lists(st.integers(0, 9), max_size=1),
        "additional_kwargs": st.none() | st.just({"hide_from_ui": 1}),
    },
)


@given(st.lists(MESSAGE, min_size=1, max_size=12))
def test_every_turn_is_kept_or_counted(messages: list[dict[str, Any]]) -> None:
    """Filtering never raises on a valid push, is deterministic, and accounts for every turn."""
    found = context(*messages)
    assert len(found.messages) + sum(found.dropped.values()) == len(messages)
    assert {message.role for message in found.messages} <= {"user", "assistant"}
    assert all(message.content for message in found.messages)
    assert context(*messages) == found


@given(st.text(alphabet="好的谢ok嗯 。!", max_size=60))
def test_acknowledgements_are_decided_quickly(text: str) -> None:
    """No text makes the pattern try things twice (it would hang here)."""
    assert strength_of(text) in {None, "courtesies", "noted", "assents", "answers"}
