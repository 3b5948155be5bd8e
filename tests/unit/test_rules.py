"""The offline extractor: which plain statements it reads, what it ignores, and how statements change a document."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.context import Message
from memd.extraction import Request, Usage
from memd.extraction.offline.extractor import CONFIDENCE, CONFIDENCE_OF_CORRECTION, RulesExtractor, read
from memd.extraction.offline.grammar import languages, recognise
from memd.extraction.offline.sentences import MAX_MESSAGE_CHARS
from memd.extraction.update import ConfirmedFact, Evidence, RetiredFact, Subject, Update

DATA = Path(__file__).parents[1] / "data" / "blind"
BLIND = DATA / "offline_turns.jsonl"
VARIED = DATA / "offline_varied.jsonl"
CHANGES = DATA / "offline_changes.jsonl"


def update(*texts: str, facts: dict[str, str] | None = None) -> Update:
    """The update for these user messages over a document of these facts by id."""
    document: dict[str, Any] = {"facts": [{"id": key, "content": text} for key, text in (facts or {}).items()]}
    messages = tuple(Message("user", text) for text in texts)
    extraction = asyncio.run(RulesExtractor().extract(Request(document, messages)))
    assert (extraction.usage, extraction.model, extraction.prompt_version) == (Usage(), "rules", "rules-5")
    return extraction.update


def contents(*texts: str, facts: dict[str, str] | None = None) -> list[str]:
    return [fact.content for fact in update(*texts, facts=facts).new_facts]


STATED = {
    "I live in Porto.": ["The user lives in Porto."],
    "Hi, I'm a nurse at Hospital São João and I live in Gaia, Portugal now.": [
        "The user is a nurse at Hospital São João.",
        "The user lives in Gaia, Portugal.",
    ],
    "I moved from Berlin to Lisbon last month!": ["The user lives in Lisbon."],
    "I live in Bosnia and Herzegovina and work as a teacher.": [
        "The user lives in Bosnia and Herzegovina.",
        "The user works as a teacher.",
    ],
    "my name is Ana Ribeiro, call me Nina": ["The user's name is Ana Ribeiro.", "The user wants to be called Nina."],
    "By the way, I work at Acme and use Vim for everything :)": [
        "The user works at Acme.",
        "The user uses Vim for everything.",
    ],
    "I prefer short answers with bullet points, thanks!": ["The user prefers short answers with bullet points."],
    "I like hiking, jazz and old movies.": ["The user likes hiking, jazz and old movies."],
    "I'm allergic to peanuts and shellfish 🥜": ["The user is allergic to peanuts and shellfish."],
    "I'm a vegetarian and I never drink alcohol": ["The user is a vegetarian.", "The user does not drink alcohol."],
    "Please always answer in Portuguese.": ["The user wants answers in Portuguese."],
    "From now on, please keep your answers short and please don't use emojis.": ["The user wants short answers."],
    "My daughter is called Mia and my wife's name is Ana.": [
        "The user's daughter is called Mia.",
        "The user's wife is called Ana.",
    ],
    "I use `uv` for Python 3.11 packaging.": ["The user uses uv for Python 3.11 packaging."],
    "I'm learning Rust. I want to run a marathon in October.": [
        "The user is learning Rust.",
        "The user wants to run a marathon in October.",
    ],
    "We've decided to use Postgres because it is boring.": ["The user's group decided to use Postgres."],
    "I'm 34 years old; I have two kids.": ["The user is 34 years old.", "The user has two kids."],
    "A few things about me:\n- I'm originally from Recife\n- I speak Spanish": [
        "The user is from Recife.",
        "The user speaks Spanish.",
    ],
    "Big news: I moved to Lisbon last week.": ["The user lives in Lisbon."],
    "I'm allergic to peanuts, so which energy bars can I take?": ["The user is allergic to peanuts."],
    "I like music when I'm cooking. I prefer tea when it rains.": [],
    "我对花生过敏，能吃什么零食？": ["用户对花生过敏。"],
    "我女儿叫朵朵，喜欢吃面条。我养了一只猫，叫团子，喜欢睡觉。": ["用户的女儿叫朵朵。", "用户的猫叫团子。"],
    "我叫李娜，住在杭州，在一家医院当护士。": ["用户名叫李娜。", "用户住在杭州。", "用户在一家医院当护士。"],
    "你好，我叫 Kevin，在 Google 上班": ["用户名叫 Kevin。", "用户在 Google 工作。"],
    "我是一名后端工程师，上个月搬到了成都。": ["用户是一名后端工程师。", "用户住在成都。"],
    "我在腾讯工作": ["用户在腾讯工作。"],
    "我喜欢爬山和喝绿茶，不喜欢香菜。": ["用户喜欢爬山和喝绿茶。", "用户不喜欢香菜。"],
    "我更喜欢简短的回答": ["用户喜欢简短的回答。"],
    "对了，我对花生过敏，请记住哦！": ["用户对花生过敏。"],
    "我平时用 Vim 写代码。": ["用户用 Vim 写代码。"],
    "以后请用中文回答。": ["用户希望用中文回答。"],
    "我女儿叫小雨，我还养了一只猫，叫团子。": ["用户的女儿叫小雨。", "用户的猫叫团子。"],
    "最近我在学 Rust，打算明年换工作": ["用户正在学 Rust。"],
    "我打算考驾照。我有糖尿病，平时吃得清淡。": ["用户打算考驾照。", "用户有糖尿病。"],
    "I'm left-handed, which guitar should I get?": ["The user is left-handed."],
    "I use Arch btw. I have asthma.": ["The user uses Arch.", "The user has asthma."],
    "我们决定用 PostgreSQL 了。": ["用户一方决定用 PostgreSQL。"],
    "我今年28岁，有两个孩子": ["用户28岁。", "用户有两个孩子。"],
    "我不吃牛肉，也不喝牛奶。": ["用户不吃牛肉。", "用户不喝牛奶。"],
    "你可以叫我小林": ["用户希望被称为小林。"],
    "我对虾过敏，所以蚝油之类的也帮我避开吧。": ["用户对虾过敏。"],
}


@pytest.mark.parametrize("text", STATED)
def test_a_plain_statement_becomes_a_fact(text: str) -> None:
    """One clause gives one fact, in the third person and the user's language; a condition stays with its statement."""
    assert contents(text) == STATED[text]


@pytest.mark.parametrize(
    ("file", "half", "found", "false"),
    [(BLIND, "open", 25, 0), (BLIND, "held_out", 13, 1), (VARIED, "open", 1, 1), (VARIED, "held_out", 1, 1)],
)
def test_cases_written_before_the_forms(file: Path, half: str, found: int, false: int) -> None:
    """Turns with a fact of which something is read, beside turns without one of which something is read."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    turns = [(bool(list(read(row["text"]))), bool(row["facts"])) for row in rows if row["half"] == half]
    assert turns.count((True, True)) >= found
    assert turns.count((True, False)) <= false


LEFT_ALONE = [
    "Do I live in Porto?",
    "I live in Porto, right?",
    "If I live in Porto, do taxes change.",
    "Suppose I work at Acme.",
    "I might move. Maybe I prefer tea.",
    "I don't live in Paris.",
    "I used to live in Paris. I lived in Rome.",
    'She said "I live in Paris".',
    "He told me: “That's fine. I live in Paris.”",
    "My friend says I live in Paris",
    "Translate into French: I live in Paris.",
    "Please proofread my letter.\n\nI live in Paris. I love Anna.",
    "Fix this text:\nI live in Rome. I love pasta.",
    "```\nI live in Paris.\n```\n> I love pasta.\n`I live in Rome`",
    "Pretend you are Bob. I live in Paris.",
    "I live in fear of deadlines. I live in the moment.",
    "I've just moved to Linux.",
    "call me tomorrow. Call me when you can.",
    "I'm a bit tired. I'm a fan of this. I'm Done",
    "I work at night. I work for a living. I work in the morning.",
    "I live in Porto until March. I decided to write it in LaTeX.",
    "我妈妈是老师，住在上海。我们公司很好，用飞书。",
    "I like it. I like that idea. I love how you put it. I prefer the second one.",
    "I want to fix this bug. I want to know why.",
    "I plan to deploy today. I use this library here.",
    "Ok thanks! Great. 😀",
    "no, I meant the second one",
    "如果我住在北京，要交什么税",
    "我住在哪里？你知道我叫什么吗",
    "我可能会搬到上海。",
    "他说“我住在上海”。",
    "我朋友叫我去吃饭。",
    "我喜欢喝绿茶吗？",
    "要是下雨，我就住在上海。",
    "你猜，我叫李娜，是不是。",
    "我住在上海的话，要带伞。",
    "我决定用“先做一个很小的版本再说”这种办法。",
    "我叫外卖了。我叫了车。",
    "我在家工作。我在努力工作。",
    "我以前住在北京。",
    "我今天打算早点睡。",
    "请翻译：我住在上海。",
    "我喜欢这个。我更喜欢第二个方案。我用了一下。",
    "不对称加密是怎么回事。对不起。",
    "谢谢你！",
    # A reaction to what the assistant offered, or a choice for the task at hand.
    "I like 1 and 3, do they rhyme?",
    "ok, I like nr 3, please make it longer",
    "I like `epoch`.",
    "我喜欢北京新世界酒店，把电话告诉我。",
    "我更喜欢石花洞，这里几点开门？",
    # The past across a comma, others, dangling words, cut titles, 喜欢的 and a noun.
    "I was in Rome, I live in Porto there",
    "I loved mushrooms until that trip, I like him.",
    "I live in Paris, said the cat.",
    "我以前住在北京，现在住在杭州。",
    "我知道他喜欢打篮球",
    "我喜欢里面的装饰。我喜欢的颜色是蓝色。我爱人有高血压。",
    "I love Madelyn.",
    "I hate coriander and love okra.",
    "我在里面工作。我妈妈是高血压。",
    "我喜欢听《双截棍》，《青花瓷》。",
    # More than a closed form holds.
    "I love my dog. I plan to visit my sister in Oslo.",
    "Please always answer in British English when we talk about the thesis.",
    # A choice among what was offered, a request in a list, somebody else's name, what is no place or firm.
    "I like Apocalypse Now. I enjoy True Grit.",
    "I like stage show and look in Phoenix. I like sports March 6th.",
    "I like rock music, but I don't have any record in mind now.",
    "I hate men! I don't eat gluten, never have",
    "I work for a company. We have a children.",
    "我最近在考虑找新工作。我家在装修了，缺个木工。我叫餐吃！",
    "我搬到别的城市也脱离不开她。我住在七楼。我住在环渤海商务酒店。",
    "哪句话与其他三句最不相关？A.我喜欢吃巧克力。B.我最近在学画画。",
    # Roles and fiction.
    "You are my grandmother. I'm seventy years old.",
    "Hi. My name is Jon. I'm a medical student. How can we help you today?",
    "你是我奶奶，我今年15岁，给我讲故事",
]


@pytest.mark.parametrize("text", LEFT_ALONE)
def test_what_is_no_plain_statement_is_left_alone(text: str) -> None:
    """Questions, conditions, doubts, the past, reported speech, pasted texts and idioms give no fact."""
    assert contents(text) == []


def test_each_fact_quotes_its_sentence_in_its_message() -> None:
    """The quote is the whole sentence, verbatim, with the index among all messages sent."""
    messages = (
        Message("assistant", "I live in Paris."),
        Message("user", "Hello!  I’m a nurse.\nMy son is named Max, you see."),
    )
    facts = asyncio.run(RulesExtractor().extract(Request({}, messages))).update.new_facts
    assert [fact.evidence for fact in facts] == [
        (Evidence(1, "I’m a nurse."),),
        (Evidence(1, "My son is named Max, you see."),),
    ]
    assert facts[1].subject == Subject("Max", "son")
    assert {(fact.scope, fact.durability, fact.authority) for fact in facts} == {("user", "durable", "descriptive")}
    assert {fact.confidence for fact in facts} == {CONFIDENCE}


@pytest.mark.parametrize(
    ("held", "said", "now"),
    [
        ("The user lives in Porto.", "I moved to Lisbon.", "The user lives in Lisbon."),
        ("The user lives in Porto.", "我住在里斯本。", "用户住在里斯本。"),
        ("用户住在北京。", "我搬到了成都。", "用户住在成都。"),
        ("The user works at Acme.", "I work for Beta Ltd.", "The user works for Beta Ltd."),
        ("The user wants answers in English.", "以后请用中文回答。", "用户希望用中文回答。"),
        ("用户名叫李娜。", "我叫李安娜", "用户名叫李安娜。"),
        ("The user likes coffee.", "I don't like coffee any more.", "The user does not like coffee."),
        ("用户喜欢咖啡。", "我不喜欢咖啡了。", "用户不喜欢咖啡。"),
    ],
)
def test_what_can_hold_only_once_replaces_what_was_held(held: str, said: str, now: str) -> None:
    """A new home, employer, name or language of answers replaces the old one, across both languages."""
    (fact,) = update(said, facts={"fact_1": held, "fact_2": "The user has two kids."}).new_facts
    assert (fact.content, fact.replaces) == (now, ("fact_1",))


def test_other_likes_stay_beside_each_other() -> None:
    """Only an opinion on the same thing is replaced."""
    (fact,) = update("I like tea.", facts={"fact_1": "The user likes coffee."}).new_facts
    assert fact.replaces == ()


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("The user lives in Porto.", "I live in Porto."),
        ("The user moved to Porto.", "I live in Porto, i mean: I live in Porto."),
        ("the user likes tea. ", "I really like tea!"),
        ("用户对花生过敏。", "我对花生过敏。"),
    ],
)
def test_a_fact_already_held_is_confirmed(held: str, said: str) -> None:
    """A repeated statement confirms the fact with its quote and adds none."""
    result = update(said, facts={"fact_1": held})
    assert result.new_facts == ()
    assert [fact.id for fact in result.confirmed_facts] == ["fact_1"]
    assert result.confirmed_facts[0].quote in said


def test_the_later_statement_of_one_batch_holds() -> None:
    """A confirmation that is taken back becomes a replacement, and vice versa."""
    facts = {"fact_1": "The user lives in Porto."}
    moved = update("I live in Porto.", "Actually, I moved to Lisbon.", facts=facts)
    assert [(fact.content, fact.replaces) for fact in moved.new_facts] == [("The user lives in Lisbon.", ("fact_1",))]
    assert moved.confirmed_facts == ()
    stayed = update("I moved to Lisbon.", "No, I live in Porto.", facts=facts)
    assert stayed.new_facts == ()
    assert stayed.confirmed_facts == (ConfirmedFact("fact_1", "No, I live in Porto."),)


@pytest.mark.parametrize(
    ("held", "said", "now", "error"),
    [
        ("The user lives in Porto.", "No, I live in Lisbon, not Porto.", "The user lives in Lisbon.", "Porto"),
        ("The user lives in Porto.", "No, I meant Lisbon, not Porto.", "The user lives in Lisbon.", "Porto"),
        ("The user lives in Porto.", "Not Porto, Lisbon.", "The user lives in Lisbon.", "Porto"),
        ("用户住在杭州。", "不对，我说的是苏州，不是杭州。", "用户住在苏州。", "杭州"),
        ("用户住在杭州。", "不是杭州，是苏州。", "用户住在苏州。", "杭州"),
        ("用户住在杭州。", "不对。我住在苏州。", "用户住在苏州。", None),
        ("The user's dog is called Max.", "Sorry, my dog's name is Rex.", "The user's dog is called Rex.", None),
    ],
)
def test_a_correction_takes_the_place_of_what_was_wrong(held: str, said: str, now: str, error: str | None) -> None:
    """The corrected fact has the right value and a higher confidence, and names the wrong value."""
    (fact,) = update(said, facts={"fact_1": held}).new_facts
    assert (fact.content, fact.replaces, fact.source_error) == (now, ("fact_1",), error)
    assert fact.confidence == CONFIDENCE_OF_CORRECTION


def test_a_correction_within_one_batch_leaves_one_fact() -> None:
    """A value corrected within the same messages is never stored."""
    assert contents("I live in Porto.", "no, I meant Lisbon, not Porto") == ["The user lives in Lisbon."]
    assert contents("我住在杭州。", "不对，我说的是苏州，不是杭州") == ["用户住在苏州。"]


def test_a_correction_of_something_else_says_nothing() -> None:
    """Without a fact to correct, what was meant belongs to the task at hand."""
    assert contents("No, I meant ISO 8601, not Unix time.") == contents("不对，我说的是对称加密。") == []
    assert contents("It's tea, not coffee.") == contents("不是茶，是咖啡") == []
    held = {"fact_1": "The user lives in Porto."}
    assert contents("No, I meant the red one, not Porto.", facts=held) == []  # no place


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("The user works at Acme.", "I no longer work at Acme."),
        ("The user works at Acme as a tester.", "I quit my job at Acme last week."),
        ("The user is a nurse at Hospital São João.", "I resigned from Hospital São João"),
        ("The user is a product manager at Acme.", "I quit my job."),
        ("The user is vegan.", "I'm not vegan anymore."),
        ("用户在美团当产品经理。", "我从美团离职了。"),
        ("用户在腾讯工作。", "我辞职了"),
        ("用户吃素。", "我不吃素了"),
        ("The user works as a chef.", "I quit my job as a chef."),
        ("The user works at Acme.", "I got fired from Acme."),
        ("The user is vegan.", "I stopped being vegan."),
        ("The user is allergic to nuts.", "I'm not allergic to nuts."),
        ("The user does not eat pork.", "I eat pork now."),
        ("The user uses Vim.", "I stopped using Vim."),
        ("用户对花生过敏。", "我对花生不过敏了"),
        ("用户不喝咖啡。", "我现在开始喝咖啡了"),
        ("用户用 Notion。", "我从 Notion 换到了 Obsidian。"),
        ("The user lives in Porto.", "I don't live in Porto anymore."),
        ("用户用 Vim。", "我不用 Vim 了"),
    ],
)
def test_what_is_over_is_retired(held: str, said: str) -> None:
    """An ending retires the fact it names, if the document has that fact."""
    result = update(said, facts={"fact_1": held, "fact_2": "The user uses Emacs."})
    assert result.new_facts == ()
    assert result.retired_facts == (RetiredFact("fact_1", "over", said),)
    assert update(said).retired_facts == ()


@pytest.mark.parametrize(
    ("held", "said", "now"),
    [
        (
            "The user works at Acme.",
            "I now work as a data analyst at Octopus Energy.",
            "The user works as a data analyst at Octopus Energy.",
        ),
        ("The user is a nurse at Hospital São João.", "I started working at Acme.", "The user works at Acme."),
        ("用户在美团当产品经理。", "我换工作了，现在在腾讯工作。", "用户在腾讯工作。"),
        (
            "The user lives in Leeds.",
            "I moved to Utrecht last week, the research stay has started.",
            "The user lives in Utrecht.",
        ),
        ("The user lives in Rome.", "We moved to Munich in October.", "The user lives in Munich."),
        ("The user moved to Rome.", "I live in Munich.", "The user lives in Munich."),
        ("The user uses Vim.", "I switched from Vim to VS Code.", "The user switched to VS Code."),
        ("用户搬到了杭州。", "我已经搬到苏州住了", "用户住在苏州。"),
    ],
)
def test_who_starts_somewhere_else_has_left(held: str, said: str, now: str) -> None:
    """Another firm or another home, also where the kind of sentence is another one."""
    result = update(said, facts={"fact_1": held, "fact_2": "The user uses Emacs."})
    assert [(fact.content, fact.replaces) for fact in result.new_facts] == [
        (now, ("fact_1",) if not result.retired_facts else ())
    ]
    assert {fact.id for fact in result.retired_facts} <= {"fact_1"}


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("The user works at Acme.", "I also work at Octopus Energy."),
        ("The user is a nurse.", "I work at Acme."),
        ("The user works at Acme.", "I left Rome last week."),
        ("The user works at Acme.", "I work at Acme as a tester."),
        ("用户在腾讯工作。", "我也在美团上班。"),
    ],
)
def test_what_stands_beside_it_leaves_a_job_alone(held: str, said: str) -> None:
    """A second job, a firm where none was named, another place that is left, the same firm."""
    result = update(said, facts={"fact_1": held})
    assert not result.retired_facts
    assert all(not fact.replaces or "Acme" in fact.content for fact in result.new_facts)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ("The user works at Acme.", "I lost my job last year."),
        ("The user works at Acme.", "I was laid off from Acme last year but they took me back."),
        ("The user works at Acme.", "I found a job at Globex, should I apply?"),
        ("The user works at Acme.", "We left Acme yesterday. I left Acme this week."),
        ("The user works at Acme.", "I'm a student at MIT. I'm a volunteer driver for Caritas."),
        ("The user is a nurse at Mercy Hospital.", "I work at a hospital. I work at the Mercy Hospital."),
        (
            "The user lives in Porto.",
            "We moved to AWS last year. I moved to Sales. I use Vim and recently moved to Neovim.",
        ),
        ("The user is allergic to peanuts.", "I eat peanuts now."),
        ("用户在协和医院当护士。", "我在公司上班。我在二楼上班。我在北京工作。我刚离开协和医院。"),
        ("用户在阿里巴巴工作。", "我搬到客厅睡。我搬来和女友同住。"),
        ("用户不吃花生。", "我能吃花生吗。我可以吃花生"),
    ],
)
def test_what_only_sounds_like_an_end_ends_nothing(held: str, said: str) -> None:
    """Earlier jobs, plans, buildings and teams, tools, a trade without a name."""
    result = update(said, facts={"fact_1": held})
    assert not result.retired_facts
    assert not [fact for fact in result.new_facts if fact.replaces]


def test_an_old_job_that_ended_takes_no_new_one_along() -> None:
    """Said before in the same message, or kept: neither goes by "I quit my job"."""
    held = {"fact_1": "The user works at Acme."}
    assert contents("I work at Globex now. I quit my job.", facts=held) == ["The user works at Globex."]
    kept = update("I quit my job, but I work at Acme now.", facts=held)
    assert (kept.retired_facts, [fact.id for fact in kept.confirmed_facts]) == ((), ["fact_1"])


def test_what_ends_in_the_same_conversation_is_never_stored() -> None:
    """Said and taken back within one request."""
    assert contents("I work at Acme.", "I don't work at Acme anymore.") == []
    assert contents("我在协和医院当护士。", "我不在协和医院工作了。") == []
    assert contents("我住在西安，不对，我住在武汉。") == ["用户住在武汉。"]
    assert contents("I live in Rome. No wait, that was wrong, I live in Milan.") == ["The user lives in Milan."]
    assert contents("I live in Rome - not!") == []
    both = contents("I work at Acme and I live in Rome. I now work as a baker at Octopus Energy.")
    assert both == ["The user lives in Rome.", "The user works as a baker at Octopus Energy."]


@pytest.mark.parametrize(("half", "stale", "lost"), [("open", 4, 0), ("held_out", 8, 0)])
def test_changes_written_without_the_forms(half: str, stale: int, lost: int) -> None:
    """Over conversations of months: old values that still stand of 41 and 46, what still holds and is gone."""
    rows = [json.loads(line) for line in CHANGES.read_text(encoding="utf-8").splitlines()]
    for row in (row for row in rows if row["half"] == half):
        facts: dict[str, str] = {}
        ever: set[str] = set()
        for conversation in row["conversations"]:
            done = update(*conversation, facts=facts)
            gone = {fact.id for fact in done.retired_facts}.union(*(fact.replaces for fact in done.new_facts))
            facts = {key: text for key, text in facts.items() if key not in gone}
            facts |= {f"fact_{len(ever) + n}": fact.content for n, fact in enumerate(done.new_facts)}
            ever |= set(facts.values())
        now = set(facts.values())
        stale -= sum(
            any(_says(text, old["terms"]) and not _says(text, old["unless"], any) for text in now)
            for old in row["false_now"]
        )
        lost -= sum(
            any(_says(text, true["terms"]) for text in ever) and not any(_says(text, true["terms"]) for text in now)
            for true in row["still_true"]
        )
    assert stale >= 0
    assert lost >= 0


def _says(text: str, terms: list[str], how: Callable[[Iterable[bool]], bool] = all) -> bool:
    return how(term.casefold() in text.casefold() for term in terms)


def test_a_damaged_document_is_no_obstacle() -> None:
    """Broken entries of the document are skipped."""
    message = (Message("user", "I live in Porto."),)
    damaged: list[Any] = [None, ["x", {"id": 1, "content": "y"}, {"id": "fact_1"}], {}]
    for facts in damaged:
        extraction = asyncio.run(RulesExtractor().extract(Request({"facts": facts}, message)))
        assert len(extraction.update.new_facts) == 1


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*STATED, *LEFT_ALONE, "\n", "“", '"', "```", ">", ",", " and ", "not ", "我", "，"])))
def test_any_mixture_is_read_without_fault_and_quoted_verbatim(parts: list[str]) -> None:
    """Whatever the text, each quote occurs in it, and nothing is raised."""
    text = " ".join(parts)
    for found, quote in read(text):
        assert quote in text
        assert "\x00" not in found.value


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_without_fault(text: str) -> None:
    """Any text can be read."""
    for _, quote in read("I live in " + text):
        assert quote in "I live in " + text


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "text",
    [
        "I " * 20_000,
        "a" * 100_000,
        "我" * 50_000,
        "，" * 50_000,
        '"' * 50_000,
        "”“" * 25_000,
        "```" * 20_000,
        "I live in " + "a and " * 60,
        "I moved from " + "to " * 120,
        "no, " * 100 + "I meant " + "not " * 80,
        "请" * 390 + "用",
        " " * 100_000,
        ". " * 50_000,
    ],
)
def test_hostile_text_does_not_hang(text: str) -> None:
    """No pattern backtracks: anything but linear time takes minutes here and exceeds the time limit."""
    assert list(read(text)) is not None


@pytest.mark.parametrize("noise", ["2026-11-22 worker 4 took 17 ms\n", "这一行日志毫无意思。"])
def test_a_long_message_is_a_paste_and_not_read(noise: str) -> None:
    """What looks like a statement in a long text is mostly somebody else's; the limit is a number of characters."""
    statement = "I live in Porto."
    room = MAX_MESSAGE_CHARS - len(statement)
    short = (noise * room)[:room].rpartition(noise)[0] + noise
    assert [quote for _, quote in read(short + statement)] == [statement]
    assert list(read(short + noise + statement)) == []
    assert [quote for _, quote in read("Here is everything about me. " + short + statement)] == [statement]


@pytest.mark.parametrize("text", STATED)
def test_each_wording_is_recognised_as_its_own_kind(text: str) -> None:
    """A fact that a form stored is recognised as its kind, with its value."""
    for found, _ in read(text):
        assert found.form
        held = recognise("fact_1", found.form.content(found.value, found.relationship))
        assert (held.form, held.value) == ((None, "") if found.relationship else (found.form, found.value.casefold()))


def test_what_only_sounds_like_a_job_is_not_replaced_by_one() -> None:
    """The value distinguishes two kinds that share a wording."""
    (fact,) = update("I'm a nurse.", facts={"f1": "The user is vegan.", "f2": "The user is a teacher."}).new_facts
    assert fact.replaces == ("f2",)


def test_no_match_is_lost_to_the_sieves() -> None:
    """Each regex that matches one of these clauses, in whatever case, is among those that its sieve tries."""
    stated = [*STATED, *(json.loads(line)["text"] for line in BLIND.read_text(encoding="utf-8").splitlines())]
    parts = [part for text in stated for part in re.split(r"[.!?;。！？；,，]\s*| and ", text)]
    found = 0
    for text in {text for part in parts for text in (part, part.upper(), part.lower())}:
        for grammar in languages().values():
            for sieve in (grammar.said, grammar.over):
                whole = [(meaning, match.span()) for meaning, match in sieve.whole(text)]
                assert whole == [(m, f.span()) for pattern, m in sieve.patterns if (f := pattern.fullmatch(text))]
                found += len(whole)
            for mark in (grammar.pasted, grammar.excluded):
                assert mark.any_in(text) == any(pattern.search(text) for pattern, _ in mark.patterns)
    assert found > 50
