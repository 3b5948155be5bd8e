"""Unlearning, as a pure function: which facts leave a document by a wish, which are suspended, and what stays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from support.recall_support import document, fact

from memd.config import ApplySettings
from memd.context import Message
from memd.errors import Rejected
from memd.extraction.update import ConfirmedFact, Evidence, ForgottenFact, NewFact, Update
from memd.memory import suspended
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import Document
from memd.memory.hand import edits, notes
from memd.memory.said.may_keep import may_keep
from memd.memory.to_forget import ToForget

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SETTINGS = ApplySettings()


def told(made: Document, text: str, update: Update | None = None) -> Applied:
    """Apply an update of one turn of the user, with what it asks to forget."""
    sent = [Message("user", text, identity="i1")]
    kept = may_keep(sent)
    asked = ToForget(kept.no_quotes, kept.matters)
    return apply(made, update or Update(), sent, sent, Origin("t", NOW, "m", "7", asked=asked), SETTINGS)


def boats(count: int) -> Document:
    """A document with so many facts about Emil, each proven by a turn of its own, and one about somebody else."""
    facts = [
        fact(
            f"fact_{n:08x}", f"Emil owns boat number {n}", evidence=[{"thread": "t", "message": f"m{n}", "quote": "x"}]
        )
        for n in range(count)
    ]
    return document(*facts, fact("fact_00000fff", "User works as a nurse"))


def test_three_go_twenty_wait_and_the_others_stay() -> None:
    """What is suspended gives no excerpts either; what has no room is refused and counted."""
    applied = told(boats(25), "Forget everything about Emil.")
    assert len(applied.forgotten) == 3
    assert len(applied.suspended) == len(suspended.facts_of(applied.document)) == suspended.MAX_SUSPENDED == 20
    assert [refusal.reason for refusal in applied.refusals] == ["too_many_forgotten"] * 2
    assert [one["id"] for one in applied.document["facts"]] == ["fact_00000017", "fact_00000018", "fact_00000fff"]
    assert len(applied.hidden) == 20


def test_an_older_version_that_says_the_same_goes_and_its_fact_stays() -> None:
    """A fact was edited since; only its old words are those of the forgotten one."""
    made = document(fact("fact_00000005", "User likes coffee"), fact("fact_00000009", "User likes tea"))
    made["archive"] = [fact("fact_00000005", "User likes tea", archiveReason="edited")]
    wish = Update(forgotten_facts=(ForgottenFact("fact_00000009", "Forget what I drink in the morning"),))
    applied = told(made, "Forget what I drink in the morning.", wish)
    assert [one["id"] for one in applied.document["facts"]] == ["fact_00000005"]
    assert applied.document["archive"] == []


def test_a_fact_that_is_suspended_comes_back_only_by_a_person() -> None:
    """No update, note or import adds it again; a person takes it back once."""
    held = told(boats(4), "Forget everything about Emil.").document
    [waiting] = suspended.facts_of(held)
    content = waiting["content"]
    proposed = NewFact(content, "context", 0.9, "user", "durable", "descriptive", (Evidence(0, content),))
    again = told({**held, "ledger": {}}, f"{content}.", Update(new_facts=(proposed,)))
    assert [refusal.reason for refusal in again.refusals] == ["removed"]
    with pytest.raises(Rejected, match="E_FACT_REMOVED"):
        notes.save(held, content, None, NOW, SETTINGS)
    back = edits.restore(held, waiting["id"], NOW, SETTINGS).document
    assert [one["content"] for one in back["facts"]] == ["User works as a nurse", content]
    assert not any(name.startswith("suspended") for name in (*back, *back["facts"][1]))
    with pytest.raises(Rejected, match="E_FACT_ID"):
        edits.restore(back, waiting["id"], NOW, SETTINGS)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("Forget everything about the boats of Emil.", True),
        ("Tuesdays only, then... and forget everything I said about the boats of Emil, please.", True),
        ("Forget the Emil thing btw, I sail alone now.", True),
        ("Forget the Emil thing, let's plan the kitchen instead.", False),
        ("Don't forget the boats of Emil.", False),
        ("I forgot everything about Emil.", False),
        ("> Forget everything about Emil.", False),
    ],
)
def test_only_a_wish_of_the_user_reaches_facts(text: str, gone: bool) -> None:
    """Not idioms, not what is quoted; summaries and asides that hold what is named lose it too."""
    extra: dict[str, Any] = {"backstory": "Met at Emil's boat"}
    summary = "Sails on the boat of Emil. Works as a nurse."
    made = document(fact("fact_1", "Emil owns a boat"), fact("fact_2", "User likes tea", **extra), workContext=summary)
    applied = told(made, text)
    assert bool(applied.forgotten) is gone
    left = str(applied.document["facts"]) + str(applied.document["user"])
    assert ("Emil" in left) is not gone
    assert "Works as a nurse." in left


def hip(*turns: str, confirmed: Sequence[str] = (), new: Sequence[str] = (), named: Sequence[str] = ()) -> Applied:
    """Apply an update of these turns to a memory with two facts, of a hip and of a boss, by the quotes of each list."""
    sent = [Message("user", text, identity=f"i{place}") for place, text in enumerate(turns)]
    kept = may_keep(sent)
    asked = ToForget(kept.no_quotes, kept.matters)
    content = "The user cannot do stairs because of a hip"
    made = document(fact("fact_1", content), fact("fact_2", "The user has a mean boss"))
    update = Update(
        confirmed_facts=tuple(ConfirmedFact("fact_1", quote) for quote in confirmed),
        new_facts=tuple(
            NewFact(f"{content}.", "context", 0.9, "user", "durable", "descriptive", (Evidence(0, quote),))
            for quote in new
        ),
        forgotten_facts=tuple(ForgottenFact("fact_1", quote) for quote in named),
    )
    return apply(made, update, sent, sent, Origin("t", NOW, "m", "7", asked=asked), SETTINGS)


WISH = "Please forget what I said about my hip."
STAIRS = "I still can't do the stairs"


@pytest.mark.parametrize("part", ["confirmed", "new"])
@pytest.mark.parametrize(
    ("turns", "stays"),
    [
        ((f"{WISH} No, not that, {STAIRS}. I mean the silly story.",), True),
        ((WISH, f"{STAIRS}."), True),
        ((f"{STAIRS}. {WISH}",), False),
        ((f"{STAIRS}.", WISH), False),
        ((f"Forget my hip, {STAIRS}.",), False),
        ((f"{WISH} {STAIRS}. Oh, and forget what I said about my boss.",), True),
        ((f"{WISH} {STAIRS}. Oh, no: {WISH}",), False),
    ],
)
def test_what_the_user_says_again_after_the_wish_stays(part: str, turns: tuple[str, ...], stays: bool) -> None:
    """Behind the sentence of every wish that could mean it; what was said before a wish goes."""
    applied = hip(*turns, confirmed=[STAIRS] if part == "confirmed" else [], new=[STAIRS] if part == "new" else [])
    assert ("fact_1" in {one["id"] for one in applied.forgotten}) is not stays
    assert ("fact_1" in {one["id"] for one in applied.document["facts"]}) is stays


def test_what_is_said_again_goes_if_the_extractor_names_it() -> None:
    """The extractor understands what the words leave open."""
    applied = hip(f"{WISH} {STAIRS}.", confirmed=[STAIRS], named=["forget what I said about my hip"])
    assert [one["id"] for one in applied.document["facts"]] == ["fact_2"]


def test_a_named_fact_goes_by_few_words_of_a_wish() -> None:
    """The message is not kept, and a fact that only repeats the wish is refused; one without a wish's word is not."""
    wish = "One more thing to forget: what I said about my hip"
    applied = hip(f"{wish}. The new one works.", named=[wish], new=[wish])
    assert [one["id"] for one in applied.document["facts"]] == ["fact_2"]
    assert (applied.unkept, [refusal.reason for refusal in applied.refusals]) == (("i0",), ["asked_not_to"])
    applied = hip("One more thing: the hip works.", named=["One more thing: the hip works"])
    assert (applied.unkept, [refusal.reason for refusal in applied.refusals]) == ((), ["no_wish"])


def test_a_fact_named_with_what_may_be_no_wish_is_suspended() -> None:
    """The patterns that act alone find a wish there, which names nothing; a person decides."""
    applied = hip("Erase everything.", named=["Erase everything"])
    assert (applied.suspended, applied.forgotten, applied.refusals) == (("fact_1",), (), ())
    assert [one["suspendedWhy"] for one in suspended.facts_of(applied.document)] == ["unclear_wish"]
