"""A month of one user, told in 32 conversations: what is remembered at its end, what went and why, what was refused.

A real daemon, whose server lives in March 2026, asks the HTTP model, which answers as it did when it was recorded: like
a good model, with the mistakes of one.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from support import Step, make_settings, month, part

from memd.client import Memd
from memd.config import Settings
from memd.context import estimate_tokens
from memd.inbox.receipt import Receipt
from memd.inbox.status import Status
from memd.memory.document import Document, summary
from memd.memory.text import fold
from memd.ops.audit.rules import audit
from memd.push.redaction import find, redact
from memd.recall.past import as_of
from memd.testing import ModelServer

CONVERSATIONS = list(month.conversations())
END = datetime(2026, 3, 31, 23, 0, tzinfo=UTC)

MEMORY = (
    "lang", "coriander", "peanuts", "noodles", "order-short", "router", "knee", "chol", "fried",
    "colveg", "coldrink", "calls",
    "longjing", "visit", "mumlang", "mumknee", "aisle", "mumwindow", "flat", "home2", "school", "swim", "celsius",
    "rooibos", "stars", "eight", "internet", "brief", "flower", "emoji", "newjob2",
)  # fmt: skip
"""What is remembered at the end, by the names of the script."""

ARCHIVE = (
    ("age", "replaced"), ("captain", "expired"), ("limit", "retired"), ("offer", "replaced"), ("home", "replaced"),
    ("leave", "replaced"), ("moveday", "replaced"), ("gym", "retired"), ("hotwater", "expired"),
    ("run", "replaced"), ("half", "retired"),
    ("tea", "replaced"), ("puns", "stale"), ("agecorr", "replaced"), ("budget50", "expired"), ("short", "merged"),
    ("table", "merged"),
    ("job", "retired"), ("stack", "retired"), ("cron", "retired"), ("team", "retired"),
    ("office", "retired"), ("tram", "retired"), ("standup", "retired"), ("scope", "expired"), ("newjob", "replaced"),
)  # fmt: skip
"""What went, in that order, and why."""

SUMMARIES = {
    "workContext": "The user left a logistics company and starts as a biostatistician at a hospital's statistics unit"
    " on 1 April 2026.",
    "personalContext": "The user lives in Benfica, Lisbon, with their daughter and speaks Chinese and English.",
    "topOfMind": "The user settles in Benfica, rests a knee and prepares for the new job in April.",
    "recentMonths": "In March 2026 the user moved from Arroios to Benfica, left a logistics company for a hospital and"
    " gave up a half marathon because of a knee.",
    "earlierContext": "",
    "longTermBackground": "",
}


@dataclass(frozen=True)
class Played:
    """What a run came to, and the calls that it took."""

    document: Document
    names: month.Names
    refused: dict[str, dict[str, int]]
    status: Status
    block: str
    requests: list[dict[str, Any]]
    again: Counter[str | None]
    log: str


@pytest.fixture
def settings(data_dir: Path, model: ModelServer) -> Settings:
    """A server of the test's own, and the HTTP model."""
    return make_settings(
        data_dir,
        None,
        extraction__extractor="anthropic",
        extraction__base_url=model.base_url,
        extraction__api_key="test-key",
        apply__stale_after_days=14,
        apply__max_facts=40,
        apply__consolidate_from=10,
        drain__linger_s=2,
    )


def test_a_month_of_one_user(settings: Settings, step: Step, model: ModelServer) -> None:
    """The memory that a person would sign, and an account of everything else."""
    played = play(settings, step, model)

    document = played.document
    assert played.names.of(document["facts"]) == list(MEMORY)
    assert {name: summary(document, name) for name in SUMMARIES} == SUMMARIES
    reasons = [fact["archiveReason"] for fact in document["archive"]]
    assert list(zip(played.names.of(document["archive"]), reasons, strict=True)) == list(ARCHIVE)
    check_facts(played)
    check_refusals(played)
    check_the_past(document)
    check_nothing_secret_is_anywhere(played)
    check_sizes(played)
    found = sorted((one.rule, one.fact_id) for one in audit(document, END, settings.apply))
    assert found == sorted(("withheld", one["fact"]) for one in document["withheld"])
    assert played.again == {"already_known": len(CONVERSATIONS)}
    assert len(played.requests) == len(CONVERSATIONS)


def check_facts(played: Played) -> None:
    """Everything is proven by words of the user, other people have their own facts, times are those of the month."""
    said = fold("\n".join(redact(text)[0] for talk in CONVERSATIONS for text in month.said(talk)))
    for fact in (*played.document["facts"], *played.document["archive"]):
        assert all(fold(piece["quote"]) in said for piece in fact["evidence"]), fact["content"]
        assert "2026-03-01" <= fact["createdAt"] < "2026-04-01"
    facts = dict(zip(MEMORY, played.document["facts"], strict=True))
    people = {name: fact["subject"]["relationship"] for name, fact in facts.items() if "subject" in fact}
    assert Counter(people.values()) == {"daughter": 5, "mother": 4, "colleague": 2}
    assert facts["celsius"]["confidence"] == 0.95  # said at 0.9; the message carries the signal
    assert facts["celsius"]["sourceError"] == "The assistant converted the oven temperature to Fahrenheit."
    confirmed = {name: fact["confirmations"] for name, fact in facts.items() if "confirmations" in fact}
    assert confirmed == {"coriander": 1, "peanuts": 1, "home2": 1, "brief": 1}
    assert facts["knee"]["validUntil"].startswith("2026-06-21")
    old = {fact["content"]: fact["id"] for fact in played.document["archive"]}
    assert [old[content] for content in month.contents("short", "table")] == facts["brief"]["replaces"]


def check_refusals(played: Played) -> None:
    """Receipts say what the script says, the daemon counts the same, and what was too much is withheld."""
    assert played.refused == {talk.thread: talk.refused for talk in CONVERSATIONS}
    total: Counter[str] = Counter()
    for talk in CONVERSATIONS:
        total.update(talk.refused)
    assert played.status.refused == total
    assert len(total) >= 13
    assert (played.status.stored, played.status.dead_so_far) == (len(CONVERSATIONS), 0)
    assert sum(played.status.redacted.values()) == sum(talk.redacted for talk in CONVERSATIONS)
    ids = dict(zip((fact["id"] for fact in played.document["facts"]), MEMORY, strict=True))
    assert [ids[one["fact"]] for one in played.document["withheld"]] == ["stars", "coldrink", "colveg"]


def check_the_past(document: Document) -> None:
    """In the middle of the month the user still lived in the old flat, trained for a race and drank green tea."""
    then = as_of(document, datetime(2026, 3, 15, 12, 0, tzinfo=UTC), 200).document
    believed = {fact["content"] for fact in then["facts"]}
    assert set(month.contents("home", "half", "run", "tea", "job", "short", "knee")) <= believed
    assert not set(month.contents("home2", "swim", "rooibos", "eight", "brief")) & believed


def check_nothing_secret_is_anywhere(played: Played) -> None:
    """Neither a request nor the document, nor the worker's log, nor the block, has what was pasted by accident."""
    texts = [text for talk in CONVERSATIONS for text in month.said(talk)]
    secrets = [text[start:end] for text in texts for start, end, _ in find(text)]
    assert len(secrets) == 2
    places = json.dumps([played.requests, played.document], ensure_ascii=False) + played.block + played.log
    assert not [secret for secret in secrets if secret in places]
    assert "evil.example" not in json.dumps([played.document["facts"], SUMMARIES], ensure_ascii=False)


def check_sizes(played: Played) -> None:
    """Small: the requests, the document with its evidence, archive and ledger, and the block for the next prompt."""
    requests = [json.dumps([body["system"], body["messages"]], ensure_ascii=False) for body in played.requests]
    assert max(map(estimate_tokens, requests)) <= 4_500
    # 54 facts with when each quote was said, 118 bytes about the said layer, the earlier versions of the summaries, and
    # the doubtful facts
    assert len(json.dumps(played.document, ensure_ascii=False).encode()) <= 48_500
    assert estimate_tokens(played.block) <= 2_000
    assert all(content in played.block for content in month.contents("celsius", "peanuts", "home2", "newjob2", "emoji"))


def play(settings: Settings, step: Step, model: ModelServer) -> Played:
    """Push the conversations one after the other, each on its day; then all of them once more."""
    names, refused = month.Names(), {}

    def set_calendar(at: datetime) -> None:
        step(int(at.timestamp() - time.time()))

    set_calendar(CONVERSATIONS[0].at)
    with Memd(settings) as app, part("worker", settings), part("scheduler", settings):
        for talk in CONVERSATIONS:
            set_calendar(talk.at)
            model.responder = answering(names.resolved(talk.answer, app.document(month.USER)))
            pushed = push(app, talk)
            app.flush(user_id=month.USER, wait=True, timeout_s=30)
            outcome = app.receipt(pushed.id or "")
            assert outcome.state == "stored", (talk.thread, outcome)
            refused[talk.thread] = outcome.refused
        status, document, block = app.status(), app.document(month.USER), app.inject(month.USER)
        receipts = [push(app, talk).id or "" for talk in CONVERSATIONS]
        app.flush(user_id=month.USER, wait=True, timeout_s=30)
        again = Counter(app.receipt(receipt).reason for receipt in receipts)
        assert app.document(month.USER) == document
    log = (settings.data_dir / "worker0.log").read_text()
    return Played(document, names, refused, status, block, [one.body for one in model.requests], again, log)


def push(app: Memd, talk: month.Conversation) -> Receipt:
    return app.push(talk.messages, thread_id=talk.thread, user_id=month.USER, now=True)


def answering(update: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A model that says this, whatever it is asked."""
    return lambda _: update


def test_the_script_is_long_and_of_every_kind() -> None:
    """At least 30 conversations of 4 to 12 turns over one month, both languages, and what makes a memory hard."""
    assert len(CONVERSATIONS) >= 30
    assert all(4 <= len(talk.messages) <= 12 for talk in CONVERSATIONS)
    assert sorted(CONVERSATIONS, key=lambda talk: talk.at) == CONVERSATIONS
    assert (CONVERSATIONS[0].at.date().isoformat(), END.date()) == ("2026-03-01", CONVERSATIONS[-1].at.date())
    texts = [text for talk in CONVERSATIONS for text in month.said(talk)]
    chinese = sum(re.search("[\u4e00-\u9fff]", text) is not None for text in texts)
    assert len(texts) / 3 <= chinese <= len(texts) * 2 / 3
    assert sum(any(message.get("tool_calls") for message in talk.messages) for talk in CONVERSATIONS) >= 2
    whole = "\n".join(texts)
    assert all(mark in whole for mark in ("<memory>", "<uploaded_files>", "GITHUB_TOKEN="))
