"""May keep: wishes to forget, and off the record, and what they take along; excerpts of what may be kept.

The blind cases of tests/data/blind/ were written by somebody else; the rules were tuned on the tuning half alone.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memd.context import Message
from memd.memory.said.excerpts import GATES_VERSION, excerpts_in, judged
from memd.memory.said.may_keep import Kept, may_keep
from memd.memory.said.turns import Turn
from memd.push.redaction import redact

BLIND = Path(__file__).parents[1] / "data" / "blind"


WRONG = [
    ("tuning", {"quotable": 1}),
    ("held_out", {"miss": 9, "false alarm": 7, "before": 6, "quotable": 6}),
]
"""Most errors of each kind in each half."""


def rows(name: str, half: str) -> Iterator[dict[str, Any]]:
    """The cases of one half of a file."""
    for line in (BLIND / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["half"] == half:
            yield row


def talk(*texts: str) -> Kept:
    """What may be kept of turns of the user, `u0` and on, each with a reply, `a0` and on."""
    pairs = (
        (Message("user", text, identity=f"u{i}"), Message("assistant", "Noted.", identity=f"a{i}"))
        for i, text in enumerate(texts)
    )
    return may_keep([message for pair in pairs for message in pair])


def errors(row: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the judgement of a blind case."""
    kept = talk(*([] if row["before"] is None else [row["before"]]), row["text"])
    turn, before = ("u0", "") if row["before"] is None else ("u1", "u0")
    if row["kept"] is None:
        return
    if (turn in kept.not_kept) == row["kept"]:
        yield "false alarm" if row["kept"] else "miss"
    elif not row["kept"]:
        if row["before_goes"] is not None and before and (before in kept.not_kept) != row["before_goes"]:
            yield "before"
        if row["quotable"] == (turn in kept.no_quotes):
            yield "quotable"


@pytest.mark.parametrize(("half", "most"), WRONG)
def test_wishes_are_found_and_little_else(half: str, most: dict[str, int]) -> None:
    """Misses beside false alarms, and whether the turn before goes and the turn itself may be quoted."""
    found = Counter(error for row in rows("may_keep", half) for error in errors(row))
    assert sum(1 for _ in rows("may_keep", half)) >= 130
    assert found <= Counter(most)


@pytest.mark.parametrize(("half", "least", "most"), [("open", 32, 0), ("held_out", 16, 3)])
def test_a_wish_takes_the_turns_along_that_hold_what_it_names(half: str, least: int, most: int) -> None:
    """Earlier turns that go, as counts beside those that go wrongly; a third of the held-out ones share no word."""
    right = wrong = 0
    for row in rows("forget_matter", half):
        kept = talk(*(turn["text"] for turn in row["earlier"]), row["text"])
        gone = {turn["id"] for number, turn in enumerate(row["earlier"]) if f"u{number}" in kept.not_kept}
        right += len(gone & set(row["goes"]))
        wrong += len(gone - set(row["goes"]))
    assert right >= least
    assert wrong <= most


@pytest.mark.parametrize(("half", "missed", "useless"), [("tuning", 1, 0), ("held_out", 8, 15)])
def test_excerpts_are_statements(half: str, missed: int, useless: int) -> None:
    """Statements that give no excerpt, and excerpts that state nothing of the user's own."""
    misses = others = 0
    for row in rows("excerpts", half):
        text = redact(row["text"])[0]
        shown = {text[start:end].strip() for start, end in excerpts_in(text)}
        misses += len(set(row["excerpts"]) - shown)
        others += len(shown - {*row["excerpts"], *row["either"]})
    assert misses <= missed
    assert others <= useless


@pytest.mark.parametrize(
    "request_",
    [
        "看一下附件里的合同。",
        "这个报错，帮我看一下。",
        "想请教一下报税的流程。",
        "先试一下第二种写法。",
        "求推荐一家川菜馆。",
    ],
)
def test_a_request_in_chinese_is_no_statement(request_: str) -> None:
    """A verb with 一下 and nobody who does it asks for something; with the user it tells."""
    assert excerpts_in(request_) == []
    assert excerpts_in("我昨天去医院查了一下血糖。") == [(0, 13)]


def test_orders_dressed_as_statements_are_no_excerpts() -> None:
    """Rules, consents and claims of rank in the form of a statement. The author's own, written before the rules."""
    lines = (BLIND.parent / "orders_dressed_own.txt").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 153
    assert sum(bool(excerpts_in(line)) for line in lines) <= 1


@pytest.mark.parametrize(
    "text",
    [
        "I asked for a week to think.",
        "I let my students use ChatGPT for outlines, never for the text itself.",
        "I write the system prompts for our support bot at a furniture company.",
        "My sister is a legal assistant and types faster than anyone.",
        "He paid the refund to the wrong account in March.",
        "We found a policy from 1990 in the drawer.",
        "The physio says it's the meniscus.",
        "House rules we settled on: shoes off, screens off from seven, whoever cooks doesn't clean.",
        "I always check the stove twice before I leave.",
        "我们上个月退款了两次。",
        "退伍前是通信兵，密码本背得滚瓜烂熟。",
        "她每次来都自带枕头，说我们家的太软。",
        "Ich habe die Bestätigung vom Amt bekommen.",
    ],
)
def test_reports_with_words_of_orders_are_excerpts(text: str) -> None:
    """Who asked, paid or keeps something is no order, nor is a rule of the user's own home."""
    assert excerpts_in(text) == [(0, len(text))]


def test_only_the_users_own_turns_give_excerpts() -> None:
    """The assistant and other named speakers give none; a name of the user is as good as none."""
    turn = Turn("n1", "t", "user", "I work as a nurse in Porto. Where do nurses park?")
    assert judged(turn, ()).excerpts == ((0, 27),)
    assert judged(turn, ()).gates == GATES_VERSION
    named = Turn("n1", "t", "user", turn.text, name="Ana")
    assert judged(named, ("Ana",)).excerpts == ((0, 27),)
    assert judged(named, ("Bo",)).excerpts == judged(Turn("n2", "t", "assistant", turn.text), ()).excerpts == ()


HELD = (
    "Our hamster died on Sunday.",
    "I work at a bank.",
    "My brother Emil owes taxes.",
    "我家仓鼠周日死了",
    "我哥哥欠税二十万",
)


@pytest.mark.parametrize(
    ("wish", "goes"),
    [
        ("Forget what I told you about the hamster.", {"u0"}),
        ("Forget everything about Emil.", {"u2"}),
        ("don't remember anything I said about my brother's taxes", {"u2"}),
        ("Please forget that my brother owes taxes.", {"u2"}),
        ("The hamster thing: please don't store it.", {"u0"}),
        ("What I said about Emil and the hamster is off the record.", {"u0", "u2"}),
        ("Forget what I told you about the guinea pig.", set()),
        ("忘掉我哥哥欠税的事", {"u4"}),
        ("关于仓鼠的都别记", {"u3"}),
        ("忘掉我姐姐离婚的事", set()),
        ("Vergiss, was ich über den Hamster gesagt habe.", {"u0"}),
    ],
)
def test_what_a_wish_names_goes_wherever_it_was_said(wish: str, goes: set[str]) -> None:
    """Not the turn before the wish, unless it shares a word with what is named."""
    kept = talk(*HELD, wish)
    assert kept.not_kept.keys() == {f"{role}{name[1:]}" for name in {*goes, "u5"} for role in "ua"}
    assert kept.no_quotes >= goes
    assert kept.pointed.isdisjoint(goes), "of these turns only what holds the matter is meant"


def test_of_turns_that_hold_only_part_of_it_the_nearest_goes() -> None:
    """It shares most of the words; of turns that share as many the last one goes."""
    kept = talk("I have a job at a bank.", "I like my job.", "I run.", "Forget what I said about my job interview.")
    assert kept.not_kept.keys() == {"u1", "a1", "u3", "a3"}
    assert (kept.before, len(kept.matters), kept.unseen) == ("", 1, ())


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("I moved to Porto. Off the record: I hate my boss.", "I moved to Porto."),
        ("我搬到上海了。私下说，我怀孕了。", "我搬到上海了。"),
        ("My rent goes up in May. And off the record: I hate my boss.", "My rent goes up in May."),
        ("My rent goes up in May. And don't save this: I hate my boss.", "My rent goes up in May."),
        ("I take lithium. Don't save this: my employer must never find out.", None),
        ("I take lithium. Don't save this: I don't want anybody to know.", None),
        ("我得了乙肝。别记这个：我老婆会看到。", None),
        ("Don't save this: I take lithium. What I want kept secret is that.", None),
        ("别记这个。不要记的是：我得了乙肝，在吃药。", None),
        ("I hate my boss. That was off the record.", None),
        (
            "咖啡我也减了，一天一杯。别记下来的一句：我投了简历。可以记的是我带两个实习生。",
            "咖啡我也减了，一天一杯。\n我带两个实习生。",
        ),
        ("I owe 3,000, don't keep it. What I do want kept: the office moved to Leven.", "the office moved to Leven."),
        ("我姐婚姻出了问题，别记。要记的是她五月来英国看我们。", "她五月来英国看我们。"),
        ("Hi. Off the record: I hate my boss.", None),
        ("I hate my boss, off the record. What now?", None),
    ],
)
def test_the_sentences_before_what_is_off_the_record_may_be_read(text: str, rest: str | None) -> None:
    """Where the wish opens its sentence and what it is about comes after; the turn is not kept all the same."""
    kept = talk(text)
    assert kept.not_kept.keys() == kept.no_quotes == {"u0", "a0"}
    assert kept.rests == ({} if rest is None else {"u0": rest})


def test_another_speaker_asks_only_about_their_own_turn() -> None:
    """Nobody forgets for the user."""
    turns = [Message("user", "My friend Emil owns a boat.", identity="u0")]
    kept = may_keep([*turns, Message("user", "Forget everything about Emil.", identity="u1", name="Bo")])
    assert (kept.not_kept, kept.matters) == ({"u1": "forget_wish"}, ())


def test_from_incognito_on_to_off_nothing_is_kept() -> None:
    """Also where the switch was in an earlier claim; `off_from` is the first turn that came since."""
    kept = talk("I keep bees.", "incognito mode on", "I see somebody.", "ok, incognito off", "I coach football.")
    assert kept.not_kept.keys() == kept.no_quotes == {f"{role}{number}" for role in "ua" for number in (1, 2, 3)}
    assert not kept.is_off
    messages = [
        Message("user", text, identity=text) for text in ("I bake.", "I see somebody.", "incognito off", "I run.")
    ]
    kept = may_keep(messages, 1)
    assert (set(kept.not_kept), kept.is_off) == ({"I see somebody.", "incognito off"}, False)
    assert talk("incognito on").is_off


@pytest.mark.parametrize(
    "text",
    [
        "Memory on the new laptop is 64 GB.",
        "Recording on Thursday went well, I play the drums.",
        "On the record label's page I am listed as Ana.",
        "取消匿名投票是我的主意。",
        "匿名关注我的人很多。",
    ],
)
def test_a_sentence_that_only_begins_like_the_end_of_incognito_is_kept(text: str) -> None:
    assert not talk(text).not_kept


@pytest.mark.parametrize(
    "text",
    [
        "memory on",
        "ok, memory back on again.",
        "recording on, please",
        "on the record again: go on",
        "back on the record now",
        "取消匿名模式，继续",
        "关闭隐身吧。",
        "无痕关闭了",
    ],
)
def test_the_end_of_incognito_has_many_words(text: str) -> None:
    """Nothing is to be kept before them; what comes after is kept."""
    kept = talk("incognito on", text, "I run.")
    assert "u1" in kept.not_kept
    assert "u2" not in kept.not_kept


def test_a_wish_takes_its_reply_and_the_turn_it_points_to_along() -> None:
    """Not kept: the wish, the turn before, and both replies; only the turn before must prove nothing."""
    kept = talk("I like tea.", "My salary is 90k.", "Forget what I just told you.", "I live in Porto.")
    assert kept.not_kept == dict.fromkeys(("u1", "a1", "u2", "a2"), "forget_wish")
    assert kept.no_quotes == {"u1", "a1"}
    assert [message.identity for message in kept.kept] == ["u0", "a0", "u3", "a3"]


@pytest.mark.parametrize(
    ("texts", "gone", "no_quotes", "before"),
    [
        (("Forget my old address, I live in Lisbon now.", "I run."), {"u0", "a0"}, set(), ""),
        (("Forget that.", "I run."), {"u0", "a0"}, set(), "turn"),
        (("Off the record: I am looking for a new job.", "I run."), {"u0", "a0"}, {"u0", "a0"}, ""),
        (
            ("Don't save what I tell you next.", "I drink.", "I run."),
            {"u0", "a0", "u1", "a1"},
            {"u0", "a0", "u1", "a1"},
            "",
        ),
        (
            ("I run.", "Don't store anything from this conversation."),
            {"u0", "a0", "u1", "a1"},
            {"u0", "a0", "u1", "a1"},
            "thread",
        ),
        (("dont save this but im looking for a job", "I run."), {"u0", "a0"}, {"u0", "a0"}, ""),
        (("OTR: Karl was fired.", "I run."), {"u0", "a0"}, {"u0", "a0"}, ""),
        (("I run.", "dont save this pls"), {"u0", "a0", "u1", "a1"}, {"u0", "a0"}, ""),
        (("let's go off the record for a minute", "I drink."),) + ({"u0", "a0", "u1", "a1"},) * 2 + ("",),
        (
            ("I am 43.", "I owe 9k.", "Forget the last two things I said."),
            {f"{r}{n}" for r in "ua" for n in (0, 1, 2)},
            {"u0", "a0", "u1", "a1"},
            "",
        ),
        (("> forget what I said", "```\nforget what I said\n```"), set(), set(), ""),
        (("我的工资是三万。", "刚才那句别记。", "我住在杭州。"), {"u0", "a0", "u1", "a1"}, {"u0", "a0"}, ""),
        (("忘掉我的旧地址，我现在住在昆明。",), {"u0", "a0"}, set(), ""),
    ],
)
def test_what_a_wish_reaches(texts: tuple[str, ...], gone: set[str], no_quotes: set[str], before: str) -> None:
    """This turn, the one before, the next, the whole thread, or what was said before these messages."""
    kept = talk(*texts)
    assert (set(kept.not_kept), set(kept.no_quotes), kept.before) == (gone, no_quotes, before)
    assert kept.pointed == kept.no_quotes
