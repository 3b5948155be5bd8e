"""Replies written by somebody who had not read the code: what is unambiguous is stored, and nothing else is."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from memd import config
from memd.config import Settings
from memd.context import Context
from memd.errors import ExtractionFailed
from memd.extraction import envelope
from memd.extraction.openai_envelope import as_message
from memd.extraction.reply import ReadReply
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import SECTIONS, Document, facts_of, summary
from memd.push.filtering import to_context
from memd.push.validation import check_push

BLIND = Path(__file__).parents[1] / "data/blind/replies"
CASES = [json.loads(line) for line in (BLIND / "cases.jsonl").read_text(encoding="utf-8").splitlines()]


@cache
def defaults() -> Settings:
    return config.load(environ={}, use_file=False).settings


@cache
def conversation(lang: str) -> tuple[Context, Document]:
    """The messages of a request as the drain sends them, and the memory before."""
    push = json.loads((BLIND / f"{lang}.conversation.json").read_text(encoding="utf-8"))
    document = json.loads((BLIND / f"{lang}.memory.json").read_text(encoding="utf-8"))
    return to_context(check_push(push, defaults().client)), document


def response(case: dict[str, Any]) -> dict[str, Any]:
    """The endpoint's response as a message."""
    if case["api"] == "openai":
        return as_message(case["body"])
    if case["api"] == "messages":
        return envelope.parse(json.dumps(case["body"]).encode(), "application/json")
    return {"content": [{"type": "text", "text": case["reply"]}], "stop_reason": "end_turn"}


def outcome(case: dict[str, Any]) -> tuple[ReadReply, Applied] | None:
    """What is read and stored; None for a reply that is no update."""
    context, document = conversation(case["lang"])
    try:
        reply, _ = envelope.read_message(response(case), context.messages)
    except ExtractionFailed:
        return None
    origin = Origin(context.key.thread_id, datetime(2026, 11, 21, tzinfo=UTC), "model", "1")
    return reply, apply(document, reply.update, context.messages, context.messages, origin, defaults().apply)


def told(found: tuple[ReadReply, Applied], lang: str) -> dict[str, Any]:
    """The outcome in the words of the cases, which know nothing of sentences cut from a summary whose fact ended."""
    reply, applied = found
    context, document = conversation(lang)
    numbers = {message.id: number for number, message in enumerate(context.messages)}
    before = {fact["id"] for fact in facts_of(document)}
    new = [fact for fact in facts_of(applied.document) if fact["id"] not in before]
    replaced = {old for fact in new for old in fact.get("replaces", ())}
    return {
        "stored": {
            (one["content"], quote["quote"], numbers[quote["message"]]) for one in new for quote in one["evidence"]
        },
        "confirmed": {fact_id.removeprefix("fact_") for fact_id in applied.confirmed},
        "retired": {fact_id.removeprefix("fact_") for fact_id in applied.retired if fact_id not in replaced},
        "summaries": {
            name: text for name in SECTIONS if (text := summary(applied.document, name)) not in summary(document, name)
        },
        "refused": len(reply.malformed) + len(applied.refusals),
    }


def facts(rows: list[dict[str, Any]]) -> set[tuple[str, str, int]]:
    return {(row["content"], row["quote"], row["message"]) for row in rows}


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_a_reply_is_taken_for_what_it_says(case: dict[str, Any]) -> None:
    """Every unambiguous fact is stored, no other one is, and a reply that is no update changes nothing."""
    found = outcome(case)
    if found is None:
        assert case["label"] == "no_update" or "no_update" in case["also"]
        return
    result = told(found, case["lang"])
    if case["label"] == "no_update":
        assert case["also"], "the messages would be done with a reply that is no update"
        if "all_refused" in case["also"]:
            assert not result["stored"]
        return
    sure, open_ones = facts(case["stored"]), {(row["content"], row["quote"]) for row in case["may"]}
    assert sure <= result["stored"]
    assert {(content, quote) for content, quote, _ in result["stored"] - sure} <= open_ones
    assert result["confirmed"] == set(case["confirmed"])
    assert result["retired"] == set(case["retired"])
    assert result["summaries"] == case["summaries"]
    least, most = len(case["refused"]), len(case["refused"]) + len(case["may"])
    assert least <= result["refused"] <= most
