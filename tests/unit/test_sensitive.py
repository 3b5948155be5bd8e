"""Sensitive facts: what `apply.sensitive` asks the model, and what becomes of the facts that it labels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from msgspec import structs

from memd.config import ApplySettings, ExtractionSettings, Secret
from memd.context import Bucket, Message, identify
from memd.evaluation.saved_replies import fingerprint
from memd.extraction import Learnt, Request, open_batches, open_extractor
from memd.extraction.learnt import SCHEMA
from memd.extraction.offline.extractor import RulesExtractor
from memd.extraction.prompt import INSTRUCTIONS, SENSITIVE
from memd.extraction.reply import read
from memd.extraction.update import Evidence, NewFact, Update
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import Document, empty_document, facts_of, summary
from memd.memory.facts import content_of
from memd.memory.gates.sensitive import is_need
from memd.memory.hand import doubts, notes
from memd.testing import ModelServer

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
ORIGIN = Origin("thread-1", NOW, "claude-haiku-5-5", "1")
CASES = Path(__file__).parents[1] / "data" / "blind" / "needs.jsonl"
SAID = "I live in Porto. I was diagnosed with epilepsy in 2024, so I gave up my night job."
Setting = Literal["keep", "drop", "doubtful"]
HOME = "The user lives in Porto."
ILLNESS = "The user was diagnosed with epilepsy in 2024."


def proposed(content: str, quote: str = "I was diagnosed with epilepsy in 2024", **changes: Any) -> NewFact:
    fact = NewFact(content, "context", 0.9, "user", "durable", "descriptive", (Evidence(0, quote),), sensitive=True)
    return structs.replace(fact, **changes)


def run(
    setting: Setting,
    *facts: NewFact,
    said: str = SAID,
    before: Document | None = None,
    summaries: dict[str, str] | None = None,
) -> Applied:
    """Apply new facts that quote one message."""
    turns = identify("thread-1", [Message("user", said, id="m0")])
    settings = ApplySettings(sensitive=setting)
    update = Update(summaries or {}, facts)
    return apply(before or empty_document(Bucket("ana")), update, turns, turns, ORIGIN, settings)


def outcome(applied: Applied) -> tuple[list[str], list[str], list[str], int]:
    """Facts, doubtful facts with why, refusals, and how many messages are hidden."""
    doubtful = [f"{fact['content']} {fact['doubtfulWhy']}" for fact in applied.document.get("doubtful", [])]
    facts = list(map(content_of, facts_of(applied.document)))
    return facts, doubtful, [refusal.reason for refusal in applied.refusals], len(applied.hidden)


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("keep", ([HOME, ILLNESS], [], [], 0)),
        ("drop", ([HOME], [], ["sensitive"], 1)),
        ("doubtful", ([HOME], [f"{ILLNESS} sensitive"], ["sensitive"], 1)),
    ],
)
def test_the_setting_says_what_becomes_of_a_sensitive_fact(setting: Setting, expected: object) -> None:
    """What is not sensitive is stored all the same; the message that proves what is gives no excerpts."""
    home = proposed(HOME, "I live in Porto", sensitive=False)
    assert outcome(run(setting, home, proposed(ILLNESS))) == expected


def test_with_keep_a_label_changes_nothing() -> None:
    """The document is the same, byte for byte."""
    plain = run("keep", proposed(ILLNESS, sensitive=False))
    assert json.dumps(run("keep", proposed(ILLNESS)).document) == json.dumps(plain.document)


@pytest.mark.parametrize(
    ("changes", "said", "of_doubtful"),
    [
        ({"authority": "transactional"}, SAID, "not_descriptive"),
        ({}, "> I was diagnosed with epilepsy in 2024", "support"),
        ({"durability": "temporary"}, SAID, "not_durable"),
        ({"evidence": (Evidence(0, "never said"),)}, SAID, "quote_not_found"),
    ],
)
def test_another_gate_does_not_bring_a_sensitive_fact_back(
    changes: dict[str, Any], said: str, of_doubtful: str
) -> None:
    """With `drop` nothing of it is kept, though another gate would make it doubtful; its message is hidden always."""
    fact = structs.replace(proposed(ILLNESS), **changes)
    hidden = int("evidence" not in changes)
    assert outcome(run("drop", fact, said=said)) == ([], [], ["sensitive"], hidden)
    facts, _, refused, of_message = outcome(run("doubtful", fact, said=said))
    assert (facts, refused, of_message) == ([], [of_doubtful], hidden)


def test_a_person_approves_what_is_doubtful_and_then_it_replaces() -> None:
    """Until then the fact in whose place it would come stays."""
    old = run("keep", proposed("The user works at night.", "my night job", sensitive=False))
    (old_id,) = old.added
    fact = proposed(ILLNESS, replaces=(old_id,))
    later = identify("thread-1", [Message("user", SAID, id="m1")])
    settings = ApplySettings(sensitive="doubtful")
    asked = apply(old.document, Update(new_facts=(fact,)), later, later, replace(ORIGIN, now=NOW), settings)
    assert outcome(asked)[0] == ["The user works at night."]
    (doubtful,) = asked.doubtful
    approved = doubts.approve(asked.document, doubtful, NOW, settings, by="ana").document
    assert list(map(content_of, facts_of(approved))) == [ILLNESS]


@pytest.mark.parametrize("setting", ["drop", "doubtful"])
def test_summaries_do_not_tell_it_either(setting: Setting) -> None:
    """The sentence that says the same is cut; a summary of nothing else is refused."""
    told = {"workContext": "Lives in Porto. Has had epilepsy since 2024.", "topOfMind": "Epilepsy, diagnosed in 2024."}
    applied = run(setting, proposed(HOME, "I live in Porto", sensitive=False), proposed(ILLNESS), summaries=told)
    assert summary(applied.document, "workContext") == "Lives in Porto."
    assert summary(applied.document, "topOfMind") == ""
    assert [(one.reason, one.part) for one in applied.refusals] == [
        ("sensitive", "newFacts"),
        ("sensitive", "summaries"),
    ]


def test_what_an_agent_notes_is_not_gated_by_it() -> None:
    """Nobody labels it; what a person writes passes fewer gates still."""
    settings = ApplySettings(sensitive="drop")
    document = notes.save(empty_document(Bucket("ana")), ILLNESS, None, NOW, settings).document
    assert list(map(content_of, facts_of(document))) == [ILLNESS]


# Needs


@pytest.mark.parametrize("half", ["open", "held_out"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_needs_survive_a_wrong_label_and_nothing_else_does(half: str, lang: str) -> None:
    """Each need is recognised, and none of the sentences that tell more than a need."""
    rows = [
        row for row in map(json.loads, CASES.read_text().splitlines()) if (row["half"], row["lang"]) == (half, lang)
    ]
    wrong = [row["fact"] for row in rows if is_need(row["fact"]) != row["need"]]
    assert len(rows) >= 25
    assert wrong == []


@pytest.mark.parametrize("setting", ["drop", "doubtful"])
def test_an_allergy_is_stored_though_it_is_labelled_sensitive(setting: Setting) -> None:
    """Unless it comes with what else it would tell."""
    fact = proposed("The user is allergic to nuts.", "I'm allergic to nuts")
    said = "I'm allergic to nuts, we found out when I was in rehab."
    assert outcome(run(setting, fact, said=said)) == (["The user is allergic to nuts."], [], [], 0)
    told = structs.replace(fact, backstory="They found out in rehab.")
    assert outcome(run(setting, told, said=said))[2] == ["sensitive"]
    assert not is_need("The user is allergic to nuts" + ", nuts" * 100)


# What the model is asked


async def sent(server: ModelServer, protocol: str, wanted: Request) -> Any:
    """The body of this request, and in `schema` the schema of a new fact that stands in it."""
    address = server.base_url + ("/v1" if protocol == "openai" else "")
    settings = ExtractionSettings(
        extractor="openai" if protocol == "openai" else "anthropic", base_url=address, api_key=Secret("k")
    )
    learnt = Learnt(frozenset({SCHEMA} if protocol == "prompt" else ()))
    if protocol == "batch":
        batches = open_batches(settings, 1)
        assert batches is not None
        return batches.params(wanted)
    extractor = open_extractor(settings, learnt=learnt)
    await extractor.extract(wanted)
    await extractor.aclose()
    return server.requests[-1].body


def schema_of(body: Any, protocol: str) -> Any:
    match protocol:
        case "openai":
            found = body["response_format"]["json_schema"]["schema"]
        case "prompt":
            found = json.loads(body["system"][0]["text"].rpartition("JSON schema:\n")[2])
        case _:
            found = body["output_config"]["format"]["schema"]
    return found["properties"]["newFacts"]["items"]


@pytest.mark.parametrize("protocol", ["anthropic", "openai", "prompt", "batch"])
def test_the_label_is_asked_for_only_where_it_counts(protocol: str) -> None:
    """The paragraph and the field of the schema, in every protocol; without them nothing speaks of sensitive things."""
    wanted = Request({}, (Message("user", "I live in Porto."),))
    with ModelServer() as server:
        plain = asyncio.run(sent(server, protocol, wanted))
        asked = asyncio.run(sent(server, protocol, replace(wanted, sensitive=True)))
    label = schema_of(asked, protocol)["properties"]["sensitive"]
    assert label == {"type": ["boolean", "null"] if protocol == "openai" else "boolean"}
    assert ("sensitive" in schema_of(asked, protocol)["required"]) == (protocol == "openai")
    assert "sensitive" not in json.dumps(plain)
    prefix = asked["messages"][0]["content"] if protocol == "openai" else asked["system"][0]["text"]
    assert prefix.startswith(INSTRUCTIONS + SENSITIVE)


def test_a_replay_knows_whether_the_label_was_asked_for() -> None:
    """A reply that was recorded without it answers another prompt; by default the fingerprint is what it was."""
    wanted = Request({}, (Message("user", "I live in Porto."),))
    assert fingerprint(wanted).split("-")[1:] == fingerprint(replace(wanted, sensitive=True)).split("-")[1:]
    assert fingerprint(wanted) != fingerprint(replace(wanted, sensitive=True))


@pytest.mark.parametrize(
    ("given", "label"),
    [
        (True, True),
        ("true", True),
        ("Yes", True),
        (1, True),
        ("是", True),
        (False, False),
        ("no", False),
        (None, False),
        ("n/a", False),
    ],
)
@pytest.mark.parametrize("name", ["sensitive", "isSensitive", "is_sensitive"])
def test_a_label_is_read_in_the_forms_that_models_write(name: str, given: object, label: bool) -> None:
    """A fact without it is not sensitive."""
    fact = json.loads(json.dumps({
        "content": ILLNESS, "category": "context", "confidence": 0.9, "scope": "user", "durability": "durable",
        "authority": "descriptive", "evidence": [{"message": 0, "quote": "epilepsy"}], name: given,
    }))  # fmt: skip
    (read_fact,) = read(json.dumps({"newFacts": [fact]})).update.new_facts
    assert read_fact.sensitive is label


# The offline extractor


def labels(*said: str) -> dict[str, bool]:
    """The offline extractor's facts from these messages, and whether each has the label."""
    messages: Sequence[Message] = [Message("user", text) for text in said]
    extraction = asyncio.run(RulesExtractor().extract(Request({}, tuple(messages))))
    return {fact.content: fact.sensitive for fact in extraction.update.new_facts}


def test_the_offline_extractor_labels_what_it_finds() -> None:
    """Conditions, and tastes in religion, politics and people; allergies, diets and aids are needs."""
    assert labels(
        "I have epilepsy.", "I love Jesus Christ.", "我有糖尿病", "我讨厌国民党", "I want to quit smoking."
    ) == {
        "The user has epilepsy.": True,
        "The user loves Jesus Christ.": True,
        "用户有糖尿病。": True,
        "用户讨厌国民党。": True,
        "The user wants to quit smoking.": True,
    }
    needs = labels(
        "I'm allergic to nuts.", "I have coeliac disease.", "I don't eat pork.", "我对花生过敏", "我爱吃佛跳墙"
    )
    assert len(needs) == 5
    assert not any(needs.values())
