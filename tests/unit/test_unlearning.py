"""Unlearning, as a pure function: which facts leave a document by a wish, which are suspended, and what stays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from support.recall_support import document, fact

from memd.config import ApplySettings
from memd.context import Message, identity_of_id
from memd.errors import Rejected
from memd.extraction.update import ConfirmedFact, Evidence, ForgottenFact, NewFact, Update
from memd.memory import removed, suspended
from memd.memory.apply import Applied, Origin, apply
from memd.memory.document import Document
from memd.memory.facts import id_of, proven_by
from memd.memory.hand import edits, notes
from memd.memory.said.may_keep import may_keep
from memd.memory.to_forget import ToForget
from memd.recall.why import why, why_text

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
SETTINGS = ApplySettings()
TURN = identity_of_id("t", "m")
ALL = "Forget everything you know about me."


def told(made: Document, text: str, update: Update | None = None) -> Applied:
    """Apply an update of one turn of the user, with what it asks to forget; of the stored turns `TURN` goes."""
    sent = [Message("user", text, identity="i1")]
    kept = may_keep(sent)
    pointed = kept.pointed | ({TURN} if kept.before else set())
    asked = ToForget(kept.no_quotes | {TURN}, kept.matters, pointed=pointed, everything=kept.before == "everything")
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


@pytest.mark.parametrize("wish", [ALL, "把关于我的所有信息都删掉", "Lösche alles über mich."])
def test_who_asks_to_forget_everything_has_no_memory_until_a_person_decides(wish: str) -> None:
    """All facts are suspended, whoever wrote them, and can be taken back; the summaries go."""
    made = boats(30)
    made["facts"].append(fact("fact_00000aaa", "User is a vegan", source="manual"))
    made["user"]["topOfMind"] = {"summary": "Emil buys boats.", "updatedAt": "2026-11-01T00:00:00Z"}
    applied = told(made, wish)
    assert applied.document["facts"] == []
    assert applied.document["user"]["topOfMind"]["summary"] == ""
    assert (applied.forgotten, applied.refusals) == ((), ())
    held = suspended.facts_of(applied.document)
    assert len(held) == len(applied.suspended) == 32
    assert {one["suspendedWhy"] for one in held} == {"everything"}
    back = edits.restore(applied.document, "fact_00000aaa", NOW, SETTINGS).document
    assert [one["content"] for one in back["facts"]] == ["User is a vegan"]


def test_a_model_that_names_all_it_was_shown_means_everything() -> None:
    """Whatever the words of the wish; nothing goes for good, and no fact is left over."""
    made = boats(5)
    quote = "let me be a stranger to you again"
    named = tuple(ForgottenFact(one["id"], quote) for one in made["facts"])
    some = told(made, f"{quote}.", Update(forgotten_facts=named[:-1]))
    assert [refusal.reason for refusal in some.refusals] == ["no_wish"] * 5
    applied = told(made, f"{quote}.", Update(forgotten_facts=named))
    assert (applied.document["facts"], applied.forgotten) == ([], ())
    assert {one["suspendedWhy"] for one in suspended.facts_of(applied.document)} == {"everything"}


def test_another_speaker_or_words_that_are_no_wish_make_no_model_forget_everything() -> None:
    """Each quote is the user's own, and one at least asks to forget."""
    made = boats(5)
    sent = [Message("user", "Tell me a joke.", identity="i0"), Message("user", ALL, identity="i1", name="bob")]
    origin = Origin("t", NOW, "m", "7", asked=ToForget())
    for quote in (ALL, "Tell me a joke"):
        named = tuple(ForgottenFact(one["id"], quote) for one in made["facts"])
        applied = apply(made, Update(forgotten_facts=named), sent, sent, origin, SETTINGS)
        assert (len(applied.document["facts"]), applied.everything) == (6, False)
    named = tuple(ForgottenFact(one["id"], "Tell me a joke") for one in made["facts"])
    beside = (*named, ForgottenFact(made["facts"][0]["id"], ALL))  # the other speaker's words lend it nothing
    assert not apply(made, Update(forgotten_facts=beside), sent, sent, origin, SETTINGS).everything


def test_what_the_user_tells_again_after_the_wish_to_forget_everything_is_stored() -> None:
    """A person may still take the rest back; of the same sentence one is enough."""
    held = told(boats(4), ALL).document
    content = "Emil owns boat number 3"
    proposed = NewFact(content, "context", 0.9, "user", "durable", "descriptive", (Evidence(0, content),))
    again = told({**held, "ledger": {}}, f"{content}.", Update(new_facts=(proposed,)))
    assert [one["content"] for one in again.document["facts"]] == [content]
    with pytest.raises(Rejected, match="E_FACT_KNOWN"):
        edits.restore(again.document, "fact_00000003", NOW, SETTINGS)
    assert edits.restore(again.document, "fact_00000002", NOW, SETTINGS).document["facts"]


def test_a_later_wish_finds_room_beside_all_that_is_suspended_already() -> None:
    """What a wish for everything suspended takes no place of others, and no document grows for ever."""
    held = told(boats(25), ALL).document
    made = {**held, "ledger": {}, "facts": [fact("fact_00000bbb", "User has a daughter called Zoe", source="manual")]}
    applied = told(made, "Please forget about my daughter Zoe.")
    assert (applied.document["facts"], applied.refusals) == ([], ())
    many = [
        suspended.suspended(fact(f"fact_{n:08x}", f"Emil owns kite number {n}"), suspended.ALL, "2026-01-01T00:00:00Z")
        for n in range(256, 256 + suspended.MAX_OF_ALL)
    ]
    applied = told({**boats(3), "suspended": many}, ALL)
    assert len(suspended.facts_of(applied.document)) == suspended.MAX_OF_ALL
    assert [id_of(one) for one in applied.forgotten] == [f"fact_{n:08x}" for n in range(256, 260)]


def test_what_is_told_after_the_wish_to_forget_everything_is_new() -> None:
    """The wish takes what was known before it."""
    proposed = NewFact(
        "User plays chess", "context", 0.9, "user", "durable", "descriptive", (Evidence(1, "I play chess"),)
    )
    sent = [
        Message("user", ALL, identity="i1"),
        Message("user", "I play chess.", identity="i2"),
    ]
    kept = may_keep(sent)
    asked = ToForget(kept.no_quotes, kept.matters, pointed=kept.pointed, everything=kept.before == "everything")
    origin = Origin("t", NOW, "m", "7", asked=asked)
    applied = apply(boats(2), Update(new_facts=(proposed,)), sent, sent, origin, SETTINGS)
    assert [one["content"] for one in applied.document["facts"]] == ["User plays chess"]


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
    asked = ToForget(kept.no_quotes, kept.matters, pointed=kept.pointed)
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


def one_turn(*said: str | tuple[str, str]) -> Document:
    """A document with facts that the turn `TURN` alone proves: content and quote, or one text for both."""
    pairs = [(one, one) if isinstance(one, str) else one for one in said]
    return document(
        *(
            fact(f"fact_{n:08x}", content, evidence=[{"thread": "t", "message": "m", "quote": quote}])
            for n, (content, quote) in enumerate(pairs)
        )
    )


def contents(facts: Sequence[Any]) -> list[str]:
    """The sentences of facts."""
    return [one["content"] for one in facts]


IDA = ("My name is Ida", "I am allergic to peanuts", "I am vegetarian", "I have asthma", "I live in Lisbon")
BOTH = "I am a nurse in Lisbon with two cats"


@pytest.mark.parametrize(
    ("said", "wish", "gone"),
    [
        (IDA, "Forget what I told you about Lisbon.", ["I live in Lisbon"]),
        (("我叫林静", "我对花生过敏", "我住在上海"), "忘掉我说过的关于上海的事", ["我住在上海"]),
        (("I run", "Mira and I left Lisbon"), "Forget everything about Lisbon.", ["Mira and I left Lisbon"]),
        ((*IDA, ("她在葡萄牙住", "Lisbon is home now")), "Forget everything about Lisbon.", [IDA[4], "她在葡萄牙住"]),
        ((*IDA[:4], ("她在葡萄牙住", "Lisbon is home now")), "Forget everything about Lisbon.", ["她在葡萄牙住"]),
        ((("Is a nurse", BOTH), ("Lives in Lisbon", BOTH)), "Forget everything about Lisbon.", ["Lives in Lisbon"]),
        (IDA[:4], "Forget what I told you about Lisbon.", []),
        ((("Is a nurse", BOTH), ("Has two cats", BOTH)), "Forget everything about Lisbon.", []),
        (IDA[:3], "Forget what I just told you.", list(IDA[:3])),
    ],
)  # fmt: skip
def test_a_wish_that_names_its_matter_takes_only_what_holds_it(
    said: tuple[str | tuple[str, str], ...], wish: str, gone: list[str]
) -> None:
    """What was only said in the same turn stays active, and may be said again; a wish that points takes the turn.

    A sentence that holds the matter goes whole, and so does a paraphrase that only quotes of it prove.
    """
    made = one_turn(*said)
    applied = told(made, wish)
    assert sorted(contents(applied.forgotten)) == sorted(gone)
    assert (applied.suspended, len(applied.document.get("removed", []))) == ((), len(gone))
    left = applied.document["facts"]
    assert contents(left) == [content for content in contents(made["facts"]) if content not in gone]
    assert all(TURN in proven_by(one) for one in left)
    assert [one["evidence"] for one in left if BOTH not in str(said)] == [
        one["evidence"] for one in made["facts"] if one in left
    ]
    assert not any(matter in str(left) for matter in ("Lisbon", "上海"))
    for one in left:
        assert removed.refusal(removed.hashes(applied.document), one["content"]) is None


def test_what_the_extractor_names_and_what_holds_the_matter_come_first() -> None:
    """At most three go; the others of a turn that a wish points back to wait."""
    made = one_turn("I run", "I swim", "I ski", "I owe 9k", "I live in Lisbon")
    wish = "Forget what I just told you. And forget everything about Lisbon."
    named = Update(forgotten_facts=(ForgottenFact("fact_00000003", "Forget what I just told you"),))
    sent = [Message("user", wish, identity="i1")]
    asked = ToForget(frozenset({TURN}), may_keep(sent).matters, pointed=frozenset({TURN}))
    applied = apply(made, named, sent, sent, Origin("t", NOW, "m", "7", asked=asked), SETTINGS)
    assert contents(applied.forgotten) == ["I run", "I owe 9k", "I live in Lisbon"]
    assert contents(suspended.facts_of(applied.document)) == ["I swim", "I ski"]


def test_what_only_shares_words_with_the_matter_waits() -> None:
    """No fact holds it: the one of the turn that shares most is suspended, and the others stay."""
    applied = told(one_turn("I run", "I like my job"), "Forget what I said about my job interview.")
    assert (contents(applied.document["facts"]), applied.forgotten) == (["I run"], ())
    assert [one["suspendedWhy"] for one in suspended.facts_of(applied.document)] == ["unclear_wish"]


def test_a_fact_that_loses_its_quote_still_names_the_turn() -> None:
    """Its quote held the matter; a later wish that points back to the turn takes the fact as well."""
    left = told(one_turn(("Works as a nurse", BOTH), ("Lives in Lisbon", BOTH)), "Forget everything about Lisbon.")
    [nurse] = left.document["facts"]
    assert (nurse["evidence"], nurse["provenBy"]) == ([], [TURN])
    assert "no quote proves it: it went with something" in why_text(why(left.document, nurse["id"]))
    again = told({**left.document, "ledger": {}}, "Forget what I just told you.")
    assert contents(again.forgotten) == ["Works as a nurse"]
