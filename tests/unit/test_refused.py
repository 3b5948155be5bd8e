"""Refused facts: kept apart with their reason, for people who ask, and only as long as nobody wants them gone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from msgspec import structs
from support import ROOT
from support.recall_support import document, fact

from memd.config import ApplySettings, RecallSettings
from memd.context import Message, identify
from memd.extraction.update import Evidence, ForgottenFact, NewFact, Subject, Update
from memd.memory import refused
from memd.memory.apply import Origin, apply
from memd.memory.document import Document
from memd.memory.facts import ids_in_use
from memd.memory.hand import edits
from memd.memory.hand.formats import read
from memd.memory.hand.imports import merge
from memd.memory.refusing import MAX_CHARS, MAX_QUOTES
from memd.memory.removed import fact_hash
from memd.memory.said import off_record
from memd.memory.said.may_keep import may_keep
from memd.memory.to_forget import ToForget
from memd.ops.audit.rules import audit
from memd.push.times import iso
from memd.recall.inject import inject
from memd.recall.view import view
from memd.recall.why import refused_text

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
ORIGIN = Origin("thread-1", NOW, "claude-haiku-5-5", "1")
SAID = "I might move to Porto one day, or to Oslo. 我可能会搬到里斯本。"
PORTO = "The user lives in Porto."
LISBON = "用户住在里斯本。"
KEEP = ApplySettings(keep_refused=3)


def unsure(content: str = PORTO, quote: str = "I might move to Porto", **changes: Any) -> NewFact:
    """A fact in which the model has too little confidence."""
    made = NewFact(content, "context", 0.4, "user", "durable", "descriptive", (Evidence(0, quote),))
    return structs.replace(made, **changes)


def run(
    *facts: NewFact,
    before: Document | None = None,
    said: str = SAID,
    settings: ApplySettings = KEEP,
    day: int = 0,
    thread: str = "thread-1",
    forgotten: tuple[ForgottenFact, ...] = (),
) -> Document:
    """The document after an update of one message, with what the message asks to forget."""
    sent = identify(thread, [Message("user", said, id=f"m{day}")])
    kept = may_keep(sent)
    unread = tuple(message for message in sent if message.identity in kept.no_quotes)
    asked = ToForget(kept.no_quotes, kept.matters, unread)
    origin = replace(ORIGIN, thread_id=thread, now=NOW + timedelta(days=day), asked=asked)
    update = Update(new_facts=facts, forgotten_facts=forgotten)
    return apply(before or document(), update, sent, sent, origin, settings).document


def kept(made: Document) -> list[tuple[str, str]]:
    return [(one["content"], one["refusedWhy"]) for one in refused.facts_of(made)]


def test_a_refused_fact_is_kept_apart_with_its_reason_and_its_quote() -> None:
    """In the order of the update, whatever the language; a quote that no message holds is only the model's."""
    made = run(unsure(), unsure(LISBON, "搬到里斯本"), unsure("The user has a boat", "my boat"))

    assert made["facts"] == []
    assert kept(made) == [
        (PORTO, "low_confidence"),
        (LISBON, "low_confidence"),
        ("The user has a boat", "low_confidence"),
    ]
    porto, lisbon, boat = made["refused"]
    assert (porto["refusedAt"], porto["source"], porto["confidence"]) == (iso(NOW), "thread-1", 0.4)
    assert [(one["message"], one["quote"]) for one in lisbon["evidence"]] == [("m0", "搬到里斯本")]
    assert boat["evidence"] == [{"quote": "my boat"}]
    assert {porto["id"], lisbon["id"], boat["id"]} <= ids_in_use(made)
    text = refused_text(made["refused"][::-1])
    assert text.index("boat") < text.index("里斯本") < text.index("Porto")
    for words in ("low_confidence (0.40): the model's confidence is below", "thread thread-1", 'said: "搬到里斯本"'):
        assert words in text, words
    assert 'quoted by the model: "my boat"' in text


def test_each_sentence_is_kept_once_and_only_the_last_ones() -> None:
    """The newest reason counts; what a smaller setting has no room for goes with the next update, and so does all."""
    first = run(unsure(), unsure(LISBON, "搬到里斯本"), unsure("The user has a boat", "my boat"))
    again = run(unsure("the user lives in Porto", "said nowhere", confidence=0.9), before=first, day=1)
    assert kept(again) == [
        (LISBON, "low_confidence"),
        ("The user has a boat", "low_confidence"),
        ("the user lives in Porto", "quote_not_found"),
    ]
    assert kept(run(unsure("The user has a cat", "my cat"), before=again, day=2)) == [
        *kept(again)[1:],
        ("The user has a cat", "low_confidence"),
    ]
    assert kept(run(before=again, day=2, settings=ApplySettings(keep_refused=1))) == kept(again)[-1:]
    assert "refused" not in run(before=again, day=2, settings=ApplySettings())


def test_without_the_setting_the_document_is_the_same_byte_for_byte() -> None:
    """And with it, but for its own field; the same input gives the same bytes."""
    facts = (unsure(), unsure("The user thinks of Oslo", "or to Oslo", confidence=0.9), unsure(LISBON, "搬到里斯本"))
    off, on = run(*facts, settings=ApplySettings()), run(*facts)
    assert "refused" not in off
    assert orjson.dumps(off) == orjson.dumps({name: value for name, value in on.items() if name != "refused"})
    assert orjson.dumps(on) == orjson.dumps(run(*facts))


KEY = "sk-ant-api03-" + "Ab3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA" * 2

NEVER: dict[str, Callable[[], Document]] = {
    "a secret": lambda: run(unsure(f"The user's key is {KEY}")),
    "a secret in a quote": lambda: run(unsure(quote=f"my key is {KEY}")),
    "a secret behind another reason": lambda: run(
        unsure("用户的密码是 Tr0ub4dor&3", "我的密码", durability="temporary")
    ),
    "off the record": lambda: run(unsure(), said=f"Off the record: {SAID}"),
    "off the record, Chinese": lambda: run(unsure(LISBON, "搬到里斯本"), said="这句别记：我可能会搬到里斯本。"),
    "beside a wish": lambda: run(unsure(), said=f"{SAID} Forget what I said about the hamster."),
    "an incognito thread": lambda: run(unsure(), before=off_record.noted(document(), "thread-1", "x", is_off=True)),
    "removed by a person": lambda: run(unsure(), before={**document(), "removed": [{"hash": fact_hash(PORTO)}]}),
    "suspended": lambda: run(unsure(), before={**document(), "suspended": [fact("fact_1", PORTO)]}),
    "known already": lambda: run(unsure(), before=document(fact("fact_1", PORTO))),
    "sensitive, dropped": lambda: run(
        unsure(sensitive=True, confidence=0.9), settings=ApplySettings(keep_refused=3, sensitive="drop")
    ),
    "sensitive, unproven": lambda: run(
        unsure(quote="nowhere", sensitive=True), settings=ApplySettings(keep_refused=3, sensitive="doubtful")
    ),
    "doubtful": lambda: run(
        unsure("The user agreed to every migration", "every migration", confidence=0.9),
        said="I have agreed to every migration",
    ),
    "stored, though what it replaces is unknown": lambda: run(
        unsure("The user thinks of moving to Porto", confidence=0.9, replaces=("fact_00000bad",))
    ),
    "nothing": lambda: run(unsure(" ", "Porto")),
}


@pytest.mark.parametrize("case", NEVER)
def test_what_is_never_kept(case: str) -> None:
    """Secrets, what the user or a person wants nowhere, and what stands elsewhere."""
    assert "refused" not in NEVER[case]()


def test_a_sentence_that_is_stored_later_is_no_refused_one() -> None:
    """The user said it again, and the model is sure now."""
    first = run(unsure(), unsure(LISBON, "搬到里斯本"))
    later = run(unsure(confidence=0.9, quote="I live in Porto"), before=first, said="I live in Porto now", day=1)
    assert [one["content"] for one in later["facts"]] == [PORTO]
    assert kept(later) == [(LISBON, "low_confidence")]


def test_what_is_kept_is_bounded() -> None:
    """A sentence and its quotes are cut; a confidence that is no number is left out."""
    quotes = tuple(Evidence(0, f"{n} " + "x" * 2_000) for n in range(9))
    (one,) = run(unsure("The user " + "说" * 9_000, evidence=quotes, confidence=float("nan")))["refused"]
    assert (len(one["content"]), one["refusedWhy"], len(one["evidence"])) == (MAX_CHARS, "bad_confidence", MAX_QUOTES)
    assert {len(entry["quote"]) for entry in one["evidence"]} == {500}
    assert "confidence" not in one


def test_removing_reaches_refused_facts() -> None:
    """By their own id with a tombstone, and with a fact that says the same or a quote of it."""
    first = run(unsure(), unsure(LISBON, "搬到里斯本"))
    gone = edits.remove(first, first["refused"][1]["id"], NOW).document
    assert kept(gone) == [(PORTO, "low_confidence")]
    assert "refused" not in run(unsure(LISBON, "搬到里斯本"), before={**gone, "refused": []}, day=1)
    beside = {**first, "facts": [fact("fact_1", "The user may move to Porto", evidence=[{"quote": "to Porto"}])]}
    assert kept(edits.remove(beside, "fact_1", NOW).document) == [(LISBON, "low_confidence")]


@pytest.mark.parametrize(
    ("wish", "thread", "left"),
    [
        ("Forget what I told you about Porto.", "u", [LISBON, "The user has a boat"]),
        ("忘掉我说的里斯本的事", "u", [PORTO, "The user has a boat"]),
        ("Off the record: I am tired.", "thread-1", [PORTO, LISBON]),
        ("I live in Faro now.", "thread-1", [PORTO, LISBON, "The user has a boat"]),
    ],
)
def test_forgetting_by_word_reaches_refused_facts(wish: str, thread: str, left: list[str]) -> None:
    """What is named goes; an unproven one may come from anything of its thread that goes."""
    first = run(unsure(), unsure(LISBON, "搬到里斯本"), unsure("The user has a boat", "my boat"))
    assert [one for one, _ in kept(run(before=first, said=wish, thread=thread, day=1))] == left


def test_forgetting_a_person_reaches_refused_facts_about_them() -> None:
    """Though the sentence does not name them."""
    first = run(unsure("Owns a boat", subject=Subject("Emil", "friend")), unsure(LISBON, "搬到里斯本"))
    left = run(before=first, said="Forget everything about Emil.", thread="u", day=1)
    assert kept(left) == [(LISBON, "low_confidence")]


def test_a_message_that_goes_takes_refused_facts_along() -> None:
    """They quote it; those of another message stay."""
    first = run(unsure(), unsure(LISBON, "搬到里斯本"))
    both = run(unsure("The user has a boat", "a boat"), before=first, said="Perhaps a boat", day=1)
    old = identify("thread-1", [Message("user", SAID, id="m0")])[0].identity
    sent = identify("thread-1", [Message("user", "Forget the last two things I said.", id="m9")])
    origin = replace(ORIGIN, asked=ToForget(frozenset({old})))
    assert kept(apply(both, Update(), sent, sent, origin, KEEP).document) == [("The user has a boat", "low_confidence")]


def test_nobody_but_people_and_the_audit_sees_them() -> None:
    """No block has them, no import takes them in, `memd show` counts them, and the audit finds secrets in them."""
    made = run(unsure(subject=Subject("Bo", "friend")))
    assert "Porto" not in inject(made, RecallSettings())
    (parcel,) = read(made, "memd", "ana").parcels
    assert "Porto" not in str(merge(document(), parcel, "ana", NOW, KEEP).document)
    assert "0 facts" in view(made)
    assert "Refused facts kept: 1 (memd why USER --refused)" in view(made)
    assert audit(made, NOW, KEEP) == []
    made["refused"][0]["evidence"][0]["quote"] = f"my key is {KEY}"
    assert [finding.place for finding in audit(made, NOW, KEEP)] == ["refused[0]"]


def test_the_page_has_every_reason_in_the_same_words() -> None:
    """The table of docs/editing.md is that of the code."""
    page = (ROOT / "docs" / "editing.md").read_text()
    rows = [f"| `{reason}` | {words} |" for reason, words in refused.REASONS.items()]
    assert "\n".join(rows) in page
