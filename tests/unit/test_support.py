"""Support: whether what was said proves a fact, on cases written before the rules, and on true statements.

Catches stand beside false alarms, for both halves. The first forty cases of support.jsonl were seen while the rules
were written, whatever their half, and count as open.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.extraction.update import Evidence, NewFact, Update
from memd.memory import doubtful
from memd.memory.apply import Origin, apply
from memd.memory.document import empty_document
from memd.memory.gates.passing import is_about_the_talk, is_passing
from memd.memory.gates.said_names import SaidNames
from memd.memory.gates.said_numbers import SaidNumbers
from memd.memory.gates.support import Quoted, Support
from memd.memory.quotes import QuotedText

CASES = Path(__file__).parents[1] / "data" / "blind" / "support.jsonl"
STATEMENTS = Path(__file__).parents[2] / "evaluation" / "statements"
SEEN = 40


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def doubt(fact: str, quote: str, messages: list[Message], known: list[str], said_on: date) -> str:
    """What the gates say to a fact: a doubt, `talk` or `passing`, else ""."""
    quotes = [
        Quoted(place, passage)
        for place, message in enumerate(messages)
        if message.role == "user"
        for passage in QuotedText(message.content).find(quote or message.content)
    ]
    if not quotes:
        return "quote_not_found"
    if found := Support(messages, known, said_on).doubt(fact, quotes):
        return found
    if is_about_the_talk(fact, [quoted.passage for quoted in quotes]):
        return "talk"
    return "passing" if is_passing(fact, [quoted.passage for quoted in quotes]) else ""


def judged(half: str) -> Iterator[tuple[bool, str, str]]:
    """Whether the case is sloppy, what the gates say, and its id."""
    for number, row in enumerate(lines(CASES)):
        messages = [Message(message["role"], message["content"]) for message in row["messages"]]
        if (row["half"] == "open" or number < SEEN) == (half == "open"):
            said = doubt(row["fact"], row["quote"], messages, row["known"], date.fromisoformat(row["said_on"]))
            yield row["label"] == "unsupported", said, row["id"]


@pytest.mark.parametrize(
    ("half", "least", "of", "wrong", "right"), [("open", 52, 56, 0, 50), ("held_out", 9, 16, 2, 45)]
)
def test_sloppy_facts_are_caught_and_proven_ones_are_not(
    half: str, least: int, of: int, wrong: int, right: int
) -> None:
    """Numbers, names, questions, assumptions, denials, code and a yes to another question prove nothing."""
    cases = list(judged(half))
    sloppy = [bool(said) for is_sloppy, said, _ in cases if is_sloppy]
    proven = [case for is_sloppy, said, case in cases if not is_sloppy and said]
    assert len(sloppy) == of
    assert len(cases) - of == right
    assert sum(sloppy) >= least
    assert len(proven) <= wrong, proven if half == "open" else len(proven)


@pytest.mark.parametrize(("half", "wrong"), [("open", 2), ("held_out", 1)])
def test_true_statements_are_supported(half: str, wrong: int) -> None:
    """Of some 250 true statements with an honest fact no more than one in a hundred is doubtful."""
    doubtful, count = [], 0
    for row in (row for path in sorted((STATEMENTS / half).glob("*.jsonl")) for row in lines(path)):
        said = row.get("messages") or [{"role": "user", "content": row.get("text", "")}]
        messages = [Message(message["role"], message["content"]) for message in said]
        for fact in row.get("honest", {}).get("newFacts", []) if row["label"] == "true" else ():
            count += 1
            if doubt(fact["content"], fact.get("quote", ""), messages, [], date(2026, 11, 20)):
                doubtful.append(row["id"])
    assert count >= 200
    assert len(doubtful) <= wrong, doubtful if half == "open" else len(doubtful)


@pytest.mark.parametrize(
    ("fact", "said", "missing"),
    [
        ("The user has 92 beehives.", "J'ai quatre-vingt-douze ruches", ""),
        ("用户的预算是1200元。", "预算一千二", ""),
        ("The user has been vegan since about 2004.", "vegan since I was 12, I'm 46 now", "2004"),
        ("The user has been vegan since about 1992.", "vegan since I was 12, I'm 46 now", ""),
        ("用户64岁（2026-10满）。", "上个月刚过了六十四岁生日", ""),
        ("The user moved at the end of 2024.", "moved one and a half years ago", ""),
        ("The user moved at the end of 2021.", "moved one and a half years ago", "2021"),
        ("用户身高1.75米。", "我一米七五", ""),
        ("用户身高1.85米。", "我一米七五", "1.85"),
        ("用户学了2.5年。", "学了两年半", ""),
        ("Der Nutzer ist im 3. Semester.", "im dritten semester", ""),
        ("The user's rent is 1340 euros.", "die Miete ist 1.340 Euro", ""),
        ("The user has lived in Bergen for seven years.", "I moved to Bergen in 2019", ""),
        ("The user fetches Kiran at 17:30.", "I pick him up at half five", ""),
        ("用户18点下班。", "我晚上六点才下班", ""),
        ("The user fetches Kiran at 18:30.", "I pick him up at half five", "18"),
        ("The user leaves the flat by 31 March.", "we have to be out by the end of the month", ""),
        ("用户3月31日前要搬走。", "我们月底前得搬走", ""),
        ("The user leaves the flat by 31 March.", "we have to be out soon", "31 march"),
        ("The user was born in 1991.", "我91年的", ""),
        ("The user is 31.", "I'm thirty-one", ""),
        ("The user is thirty-one.", "I'm 31", ""),
        ("用户三十一岁。", "I'm thirty one now", ""),
        ("Der Nutzer ist 31.", "ich bin einunddreißig", ""),
        ("Der Nutzer wiegt 151 Kilo.", "hunderteinundfünfzig Kilo, leider", ""),
        ("El usuario tiene 31.", "tengo treinta y uno", ""),
        ("L'utilisateur a 41 ans.", "j'ai quarante et un ans", ""),
        ("The user has 20 hens.", "I have twenty, one of them is blind", ""),
        ("The user is 41.", "I'm thirty-one", "41"),
        ("Der Nutzer ist 13.", "ich bin einunddreißig", "13"),
        ("The user has 60 cows.", "I have one cow", "60"),
        ("The user has 60 cows.", "there are five. One of them is blind", "60"),
        ("Der Nutzer hat 10 Hunde.", "ein Hund reicht mir", "10"),
        ("Der Nutzer nennt es Zwanzigdreißig.", "er nennt es zweizwei", "zwanzig"),
        ("The user's rent is 1,430 a month.", "it's now 1,340 a month", "1,430"),
        ("用户的孩子今年7岁。", "我家孩子上小学了", "7"),
        ("The user has four dogs.", "we've got 3 dogs", "four"),
    ],
)
def test_numbers_are_said_or_reckoned(fact: str, said: str, missing: str) -> None:
    """Words, units, thousands, and years from durations; anything else is missing."""
    assert SaidNumbers([said], date(2026, 3, 14)).missing(fact) == missing


@pytest.mark.parametrize(
    ("fact", "said", "missing"),
    [
        ("The user is from Cologne.", "ich komme aus Köln und mag mein Bier", ""),
        ("The user is a fan of Faye Wong.", "我是王菲的铁粉", ""),
        ("用户住在北京。", "I live in Beijing", ""),
        ("用户住在北京。", "I live in Porto", "北京"),
        ("The user uses React.", "i use one of those js frameworks", "React"),
        ("The user speaks Portuguese.", "I'm from Portugal", ""),
        ("The user wants Australian spelling and can't abide American spellings.", "Australian spelling please", ""),
        ("The user wants UK dates, not American dates.", "UK date format, day first", ""),
        ("The user wants American spelling.", "Australian spelling please", "American"),
        ("The user wants Australian and American spelling.", "Australian spelling please", "American"),
        ("The user prefers American spelling, never Australian spelling.", "Australian spelling please", "American"),
        ("The user wants British English, rather than Indian English.", "British English please", ""),
        ("Der Nutzer isst kein Fleisch.", "ich esse kein fleisch", ""),
        ("Die Nutzerin wohnt in Kassel.", "ich wohne in fulda", "Kassel"),
        ("The user has an Australian passport and no American passport.", "my Australian passport", "American"),
        ("The user is Brazilian.", "I love football", "Brazilian"),
        ("The user writes like `KES-481`.", "the prefix is KES- instead of BIL-", ""),
        ("用户的提交信息像 KES-481 这样。", "前缀从BIL-改成KES-了", ""),
        ("The user writes like `ZEN-481`.", "the prefix is KES- instead of BIL-", "ZEN-481"),
        ("The user writes like `KES-481`.", "she makes commits", "KES-481"),
        ("The user drives an F-150.", "I take the bus for work", "F-150"),
    ],
)
def test_names_are_said_or_translated(fact: str, said: str, missing: str) -> None:
    """A name in another script or language is not refused: it cannot be compared."""
    assert SaidNames([said]).missing(fact) == missing


@pytest.mark.parametrize(
    ("fact", "doubtful"),
    [
        ("The user wants commits like `KES-481 Round up`.", ""),
        ("The user wants commits like `KES-512 Round up`.", "number"),
        ("The user wants commits like `ZEN-481 Round up`.", "name"),
    ],
)
def test_a_number_of_a_name_may_come_from_what_was_known(fact: str, doubtful: str) -> None:
    """A prefix changes and the rest of an example is carried over; both parts were said, if not together."""
    said = "The prefix is KES- instead of BIL- now."
    support = Support([Message("user", said)], ["The user wants commits like `BIL-481 Round up`."], date(2026, 10, 4))
    assert support.doubt(fact, [Quoted(0, said)]) == doubtful


def test_a_date_reckoned_in_another_calendar_is_doubtful() -> None:
    """Nothing here can check it, and a shop that is closed on the wrong days misleads."""
    said, fact = "我店腊月二十八到正月初六关门", "用户的店从腊月二十八到正月初六（2026-02-15至2026-02-22）歇业。"
    support = Support([Message("user", said)], [], date(2026, 1, 20))
    assert support.doubt(fact, [Quoted(0, said)]) == "number"
    assert support.doubt("用户的店从腊月二十八到正月初六歇业。", [Quoted(0, said)]) == ""


@pytest.mark.parametrize(
    ("said", "before", "quote", "content", "stored"),
    [
        ("Should I learn Rust or stay with Go?", "Hello.", "learn Rust", "The user is learning Rust.", False),
        ("I don't drink coffee anymore.", "Hello.", "drink coffee", "The user drinks coffee.", False),
        ("```\n# I live in Leeds\n```\nWhy?", "Hello.", "I live in Leeds", "The user lives in Leeds.", False),
        ("Yes", "Shall I add the windows?", "Yes", "The user has pets.", False),
        ("Yes", "Do you have pets?", "Yes", "The user has pets.", True),
        ("I learn Rust at night.", "Hello.", "I learn Rust", "The user is learning Rust.", True),
        ('Ben says "I grew up on a boat".', "Hello.", "I grew up on a boat", "The user grew up on a boat.", False),
        ("Ben says 'I'm off meat for good'.", "Hi.", "Ben says 'I'm off meat for good'", "Ben eats no meat.", False),
        ("同事说“我从小就在船上长大的”，笑死。", "嗯。", "我从小就在船上长大的", "用户从小在船上长大。", False),
        ('I told Ben "I grew up on a boat".', "Hello.", "I grew up on a boat", "The user grew up on a boat.", True),
        ('My GP says "no more salt for you".', "Hi.", "no more salt for you", "The user must have no salt.", True),
        ('I love "The Left Hand of Dusk".', "Hi.", 'love "The Left Hand of Dusk"', "The user loves that book.", True),
        ("Correct. New rule: lists are fine.", "Hello.", "lists are fine", "The user is fine with lists.", True),
        ("That's correct, but: fish is fine.", "Hello.", "fish is fine", "The user is fine with fish.", True),
        ("Correct, please: I lives in Leeds.", "Hello.", "I lives in Leeds", "The user lives in Leeds.", False),
        ("Proofread this. Text: I live in Leeds.", "Hi.", "I live in Leeds", "The user lives in Leeds.", False),
        ("翻译规则：人名一律保留原文。", "嗯。", "人名一律保留原文", "用户希望翻译保留人名原文。", True),
        ("检查语法：我住在苏州很多年了。", "嗯。", "我住在苏州很多年了", "用户住在苏州。", False),
        ("I live on chips, just kidding!", "Hello.", "I live on chips", "The user lives on chips.", False),
        ("我去卖肾了（开玩笑）", "嗯。", "我去卖肾了", "用户要卖肾。", False),
        ("I live on chips, no joke.", "Hello.", "I live on chips", "The user lives on chips.", True),
        ("If I won a million I'd move, but I rent a flat.", "Hi.", "I rent a flat", "The user rents a flat.", True),
        ("If I won a million I'd move, but I would rent.", "Hi.", "I would rent", "The user rents.", False),
        ("我要是有一百万就辞职了，但我现在只租得起房。", "嗯。", "只租得起房", "用户租房住。", True),
    ],
)
def test_what_no_quote_states_is_doubtful(said: str, before: str, quote: str, content: str, stored: bool) -> None:
    """It is kept apart for a person to decide on, and is no fact of the memory."""
    sent = identify("t", [Message("user", said)])
    origin = Origin("t", datetime(2026, 3, 14, tzinfo=UTC), "a-model", "1", before=(Message("assistant", before),))
    fact = NewFact(content, "context", 0.9, "user", "durable", "descriptive", (Evidence(0, quote),))
    settings = ApplySettings()
    applied = apply(empty_document(Bucket("ana")), Update(new_facts=(fact,)), sent, sent, origin, settings)
    assert [refusal.reason for refusal in applied.refusals] == ([] if stored else ["support"])
    assert bool(applied.document["facts"]) is stored
    assert [one["doubtfulWhy"] for one in doubtful.facts_of(applied.document)] == ([] if stored else ["support"])


@pytest.mark.parametrize(
    ("fact", "said", "why"),
    [
        ("The user has three kids.", "I love my kids...", "number"),
        ("用户管理一百二十个员工。", "我管理三个员工", "number"),
        ("用户今年三十岁。", "我今年三十七岁", "number"),
        ("The user sees a therapist weekly.", "I see a therapist", "number"),
        ("The user works with SQL and Git daily.", "I work with tools daily", "name"),
        ("The user has a dog.", "so say I have a dog", "hypothetical"),
        ("用户在服用华法林。", "华法林和阿司匹林能一起吃呢", "question"),
        ("The user moved from Berlin.", "I didn't move from Berlin", "negation"),
        ("The user eats glass.", "I eat glass. As a joke!", "joke"),
        ("The user ends his messages with three dots.", "I always end with ... means nothing", ""),
        ("The user has owned four ThinkPads.", "I'm a thinkpad person, on my fourth", ""),
        ("The user puts ten euros in a jar whenever he swears.", "I put a tenner in the jar every time I swear", ""),
        ("The user wants to be told at once when a product is recalled.", "tell me straight away if it's recalled", ""),
        ("用户给儿子设了直播打赏上限，每月五十元。", "儿子打赏我给限了五十一个月，多了刷不出去", ""),
        ("用户在悉尼的咖啡店打工，每周二十个小时。", "我在悉尼咖啡店打工，一周二十小时。", ""),
        ("用户的外孙女在日本读语言学校。", "外孙女在日本念语言学校呢。", ""),
        ("用户用Home Assistant设了下雨时自动关天窗。", "HA里我配了下雨自动关天窗", ""),
        ("An der Schule der Nutzerin müssen Handys bis 13 Uhr weg.", "Handys bis eins in den Spind", ""),
        ("The user gave a talk on birds.", "did a talk on birds for the society", ""),
        ("The user forbids force pushes.", "never force push", ""),
        ("The user wants no betting tips.", "please no betting tips, not even as a joke", ""),
    ],
)
def test_what_is_said_in_other_words(fact: str, said: str, why: str) -> None:
    """Found on 3,000 true statements of evaluation/orders, and by looking for what the mends let through."""
    support = Support([Message("user", said)], [], date(2026, 3, 2))
    assert support.doubt(fact, [Quoted(0, said)]) == why
