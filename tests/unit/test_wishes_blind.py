"""Wishes not to keep something, in words that nobody foresaw: what code finds, what a model finds, what is lost.

The cases of tests/data/blind/wishes.jsonl were written and answered by people who saw neither code nor patterns.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from memd.config import Settings
from memd.context import Bucket, Key
from memd.evaluation.in_memory import InMemory, Remembered
from memd.evaluation.saved_replies import SavedReply, extraction
from memd.extraction.protocol import Extraction, Request
from memd.memory.document import empty_document, facts_of
from memd.memory.facts import quotes_of
from memd.memory.said.named_wish import speaks_of_erasing
from memd.memory.said.wishes import wish_of
from memd.push.signals import load_patterns

BLIND = Path(__file__).parents[1] / "data/blind"
CASES = [json.loads(line) for line in (BLIND / "wishes.jsonl").read_text(encoding="utf-8").splitlines()]
NOW = datetime(2026, 5, 4, 8, 0, tzinfo=UTC)
PATTERNS = load_patterns()
REFUSED = ("forget_wish", "off_the_record")
"""Reasons for which no request is made at all."""

Case = dict[str, Any]


class Scripted:
    """Answers every request with one reply."""

    def __init__(self, reply: dict[str, Any]) -> None:
        self._reply = reply

    async def answer(self, name: str, request: Request) -> Extraction:
        """The reply, whatever is asked."""
        return extraction(SavedReply(name, reply=self._reply), request, "replayed")


def remembered(case: Case, reply: dict[str, Any]) -> Remembered:
    """What becomes of a conversation and this reply to it."""
    memory = InMemory(Settings(), PATTERNS, Scripted(reply))
    context = memory.context(Key("t1", "ana"), [case["messages"]])
    return asyncio.run(memory.remember(context, empty_document(Bucket("ana")), NOW, case["id"]))


def bare(text: str) -> str:
    """Its letters and digits."""
    return "".join(filter(str.isalnum, text.casefold()))


def refused_by_wish(case: Case, name: str) -> Iterator[bool]:
    """For each text of a list whether the wish alone stops a fact that quotes it, of a model that heeds no wish."""
    texts = [one["text"] for one in case[name]]
    labels = {"category": "context", "confidence": 0.95, "scope": "user", "durability": "durable"}
    facts = [
        {"content": f"{text} ......", **labels, "authority": "descriptive", "evidence": [{"message": 0, "quote": text}]}
        for text in texts
    ]
    update = {"summaries": {}, "newFacts": facts, "confirmedFacts": [], "retiredFacts": []}
    done = remembered(case, update)
    reasons = {
        refusal.index: refusal.reason
        for asked in done.asked
        for refusal in (asked.applied.refusals if asked.applied else ())
        if refusal.part == "newFacts"
    }
    for index in range(len(texts)):
        yield reasons.get(index) == "asked_not_to" if done.asked else done.skipped in REFUSED


def test_patterns_find_few_of_such_wishes_and_take_little_else_along() -> None:
    """Code by itself is the second net: what it misses a model reads, what it takes wrongly nobody brings back."""
    found = [one for case in CASES for one in refused_by_wish(case, "hidden")]
    wrong = [one for case in CASES for one in refused_by_wish(case, "free")]
    assert (len(found), len(wrong)) == (150, 408)
    assert sum(found) >= 20
    assert sum(wrong) <= 19


def test_a_model_honours_nearly_all_of_them() -> None:
    """Of 61 conversations, answered blind: where a fact quotes what was to stay out, and what could be shown of it.

    Two of the five tell next to nothing: an age, and that there is a boyfriend.
    """
    answered = [case for case in CASES if "reply" in case]
    leaked, shown = set(), set()
    for case in answered:
        done, hidden = remembered(case, case["reply"]), [bare(one["text"]) for one in case["hidden"]]
        quotes = [bare(quote) for fact in facts_of(done.after) for quote in quotes_of(fact)]
        turns = [turn for turn in done.said.turns if turn.role == "user" and turn.id not in done.said.hidden]
        excerpts = [bare(turn.text[start:end]) for turn in turns for start, end in turn.excerpts]
        if any(one in quote or quote in one for one in hidden for quote in quotes):
            leaked.add(case["id"])
        if any(one in excerpt or excerpt in one for one in hidden for excerpt in excerpts):
            shown.add(case["id"])
    assert len(answered) == 61
    assert len(leaked) <= 5
    assert len(shown) <= 1


@pytest.mark.parametrize(("half", "least", "most"), [("open", 5, 0), ("held_out", 7, 0), ("attack", 54, 0)])
def test_a_wish_to_forget_everything_is_seldom_mistaken(half: str, least: int, most: int) -> None:
    """False alarms beside hits, of 120 and 80 wishes in all sorts of words and 64 plain ones: a false one hides all."""
    found = Counter[tuple[str, bool, bool]]()
    for line in (BLIND / "total_wishes.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        wish = wish_of(row["text"])
        found[row["half"], row["total"], wish is not None and wish.reach == "everything"] += 1
    assert found[half, True, True] >= least
    assert found[half, False, True] <= most


@pytest.mark.parametrize(("half", "least"), [("open", 117), ("held_out", 70)])
def test_a_model_that_names_everything_is_heard_in_nearly_all_words(half: str, least: int) -> None:
    """Its quotes only have to speak of erasing at all."""
    rows = map(json.loads, (BLIND / "total_wishes.jsonl").read_text(encoding="utf-8").splitlines())
    assert sum(speaks_of_erasing(row["text"]) for row in rows if row["half"] == half and row["total"]) >= least


@pytest.mark.parametrize(
    "text",
    [
        "Write a GDPR letter to my bank: please erase all my personal data.",
        "Please delete all my notes.",
        "Now clear everything you have, then write the list again",
        "I want to reset the router; clear the memory.",
        "With this stock you could lose everything you have.",
        "You must unlearn what you have learned.",
        "Bob: Forget everything you know about me.",
        "Subject: bye\nFrom: bob@x.com\n\nForget everything you know about me.",
        "The README says\nForget everything you know about me.",
        "- Forget everything you know about me.",
        "“Line one\nForget everything you know about me.\nline three”",
        "My brother keeps nagging: forget everything you know about me!",
        "Forget everything you know about me, except that I own a boat.",
        "Forget everything you know about me. Just kidding!",
        "Schatz, vergiss mich!",
        "重置记忆",
        "忘了我吧",
    ],
)
def test_no_order_about_a_text_and_nobody_elses_words_are_a_wish_to_forget_everything(text: str) -> None:
    """Letters, code, sayings, other speakers, exceptions and jokes."""
    wish = wish_of(text)
    assert wish is None or wish.reach != "everything"


def test_who_speaks_of_forgetting_secrets_and_records_wishes_nothing() -> None:
    """Of 200 turns three were taken for wishes at first sight; their causes are mended."""
    rows = (json.loads(line) for line in (BLIND / "not_wishes.jsonl").read_text(encoding="utf-8").splitlines())
    assert [row["id"] for row in rows if wish_of(row["text"])] == []
