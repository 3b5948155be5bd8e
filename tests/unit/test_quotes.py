"""Quotes: which words of a user prove a fact, a confirmation or a retirement, measured in both directions."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memd.config import ApplySettings
from memd.context import Bucket, Message, identify
from memd.extraction.update import ConfirmedFact, Evidence, NewFact, RetiredFact, Update
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import Document, empty_document

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
ORIGIN = Origin("thread-1", NOW, "claude-haiku-5-5", "1", before=(Message("assistant", "Do you keep bees?"),))

# What the user wrote, a quote that proves something, and quotes of the same message that prove nothing.
MESSAGES = [
    ("I live in Porto and I eat no meat.", ["live in Porto", "no meat", "Porto and"], ["I", "a", "Porto", "e i", "."]),
    ("Actually, I don't like coffee any more", ["don't like coffee", "any more"], ["coffee", "don't", "y m", "’"]),
    ("My C++ team uses Go 1.24", ["Go 1.24", "uses Go", "C++ team"], ["C", "Go", "24", "+"]),
    ("Vegetarian!", ["Vegetarian!", "Vegetarian", "vegetarian"], ["Veg", "etarian"]),
    ("Yes", ["Yes", "yes"], ["Y", "es"]),
    ("我住在北京，不吃香菜。", ["我住在北京", "不吃香菜", "住在北", "吃香菜"], ["我", "北京", "香菜", "，"]),
    ("平时用 Vim 写代码", ["用 Vim 写", "写代码", "Vim 写代码"], ["Vim", "用", "用 Vim", "代码"]),
    ("对。", ["对", "对。"], ["错"]),
    ("回族", ["回族"], ["回", "族"]),
    ("Ich wohne in München und esse kein Fleisch.", ["wohne in München", "kein Fleisch"], ["i", "Fleisch", "München"]),
    ("Vegetarierin.", ["Vegetarierin"], ["Vegetarier", "in"]),
    ("東京に住んでいます。肉は食べません。", ["東京に住んで", "肉は食べ", "食べません"], ["東", "東京", "肉は", "。"]),
    ("저는 서울에 살아요", ["서울에 살아요", "저는 서울"], ["저", "살아", "울"]),
    ("ฉันอยู่ที่เชียงใหม่", ["อยู่ที่เชียงใหม่"], ["ฉ", "ที"]),
    ("Vivo en Sevilla y soy celíaco", ["Vivo en Sevilla", "soy celíaco"], ["celíaco", "y", "o e"]),
]
# What the user wrote, a loose copy of it, and the passage that is stored; None where the copy changes words.
COPIES = [
    ("I run **10 km** — most days.", "I run 10 km - most days", "I run **10 km** — most days"),
    ("My stack:\n- Go 1.24\n- Postgres 16", "Go 1.24, Postgres 16.", "Go 1.24 - Postgres 16"),
    ("Love it 🎉 we moved to Oslo!", "Love it, we moved to Oslo.", "Love it 🎉 we moved to Oslo"),
    ("我在 Porto 住了 3 年，养猫。", "我在Porto住了3年,养猫", "我在 Porto 住了 3 年，养猫"),
    ("They call me “Fen” at work", "\"They call me 'Fen' at work\"", "They call me “Fen” at work"),
    ("Yes, after all that fuss, to Oslo in May.", "Yes … to Oslo in May", None),
    (
        "We moved, after all that fuss, to Oslo in May.",
        "We moved ... to Oslo in May",
        "We moved, after all that fuss, to Oslo in May",
    ),
    ("We moved, after all, to Oslo in May.", "to Oslo in May … We moved", None),
    ("Well… we moved to Oslo", "Well... we moved to Oslo", "Well… we moved to Oslo"),
    ("I pay 1.5 percent", "I pay 15 percent", None),
    ("It costs $50 a month", "It costs €50 a month", None),
    ("It was -5 degrees", "It was 5 degrees", None),
    ("I can pay 1500 a month", "I can pay 15", None),
    ("1. a Bernina 1008\n2. an overlocker", "a Bernina 1008, an overlocker", "a Bernina 1008 2. an overlocker"),
    (
        "See [Kettle](https://kettle.example), my shop :tada: in Hull",
        "Kettle, my shop in Hull",
        "Kettle](https://kettle.example), my shop :tada: in Hull",
    ),
    ("my C++ team", "my C team", None),
    ("Cafe\u0301 du Nord is ours", "Café du Nord is ours", "Cafe\u0301 du Nord is ours"),
    ("I go to the gym on Mondays.", "gymon", None),
]
GOOD = [(said, quote) for said, quotes, _ in MESSAGES for quote in quotes]
BAD = [(said, quote) for said, _, quotes in MESSAGES for quote in quotes]


def applied(said: str, quote: str, kind: str) -> Applied:
    """What a quote does for a new fact, a fact that replaces another one, a confirmation or a retirement."""
    sent = identify("thread-1", [Message("user", said, id="m1")])
    update = {
        "add": Update(new_facts=(fact(quote),)),
        "replace": Update(new_facts=(fact(quote, replaces=("fact_00000001",)),)),
        "confirm": Update(confirmed_facts=(ConfirmedFact("fact_00000001", quote),)),
        "retire": Update(retired_facts=(RetiredFact("fact_00000001", "over", quote),)),
    }[kind]
    return apply(document(), update, sent, sent, ORIGIN, ApplySettings())


def fact(quote: str, replaces: tuple[str, ...] = ()) -> NewFact:
    evidence = (Evidence(0, quote),)
    return NewFact("The user keeps bees", "context", 0.9, "user", "durable", "descriptive", evidence, replaces=replaces)


def document() -> Document:
    known = {
        "id": "fact_00000001",
        "content": "The user keeps goats",
        "category": "context",
        "confidence": 0.9,
        "createdAt": "2026-01-01T00:00:00Z",
        "source": "thread-0",
    }
    return {**empty_document(Bucket("alice")), "facts": [known]}


@pytest.mark.parametrize("kind", ["add", "replace", "confirm", "retire"])
def test_a_quote_of_less_than_two_words_proves_nothing(kind: str) -> None:
    """One letter, one word, two characters, or the end of one word and the beginning of the next."""
    for said, quote in BAD:
        result = applied(said, quote, kind)
        assert [refusal.reason for refusal in result.refusals] == ["quote_not_found"], (said, quote)
        assert result.document["facts"] == document()["facts"]


@pytest.mark.parametrize("kind", ["add", "replace", "confirm", "retire"])
def test_two_words_three_characters_or_a_whole_message_prove(kind: str) -> None:
    """In English, Chinese, German, Japanese, Korean, Thai and Spanish."""
    for said, quote in GOOD:
        result = applied(said, quote, kind)
        assert not result.refusals, (said, quote)
        assert result.added or result.confirmed or result.retired


@pytest.mark.parametrize(("said", "quote", "passage"), COPIES)
def test_a_loose_copy_proves_and_what_the_user_wrote_is_stored(said: str, quote: str, passage: str | None) -> None:
    """Dashes, markdown, emoji, list marks and end marks do not count, an ellipsis is a gap; words and numbers count."""
    facts = applied(said, quote, "add").document["facts"][1:]
    assert [entry["quote"] for fact in facts for entry in fact["evidence"]] == ([] if passage is None else [passage])


def test_a_gap_wider_than_a_quote_gives_both_its_parts() -> None:
    """The passage between them would be cut to its beginning."""
    said = "I keep bees" + ", and more" * 100 + ", and I sell honey"
    (_, fact) = applied(said, "I keep bees ... I sell honey", "add").document["facts"]
    assert [entry["quote"] for entry in fact["evidence"]] == ["I keep bees", "I sell honey"]


def test_a_quote_is_looked_up_in_linear_time() -> None:
    """A word that a message repeats many times is no slower to refuse for each of its places."""
    said = "ab " * 30_000
    assert not applied(said + "end", "b", "confirm").confirmed
    assert applied(said + "b e", "b e", "confirm").confirmed
