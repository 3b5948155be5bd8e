"""How a memory changes over time: duplicates, reviews, merges and eviction; manual facts stay."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import settings as settings_of
from hypothesis import strategies as st

from memd.config import ApplySettings, RecallSettings
from memd.context import Bucket, Message, identify
from memd.extraction.prompt import build
from memd.extraction.protocol import Maintenance, Request
from memd.extraction.short_ids import short_ids, with_full_ids
from memd.extraction.update import (
    ConfirmedFact,
    Evidence,
    MergedFact,
    NewFact,
    RetiredFact,
    ReviewedFact,
    Subject,
    Update,
)
from memd.memory.apply import Applied, Origin, apply, maintenance_due
from memd.memory.document import Document, Fact, empty_document, withheld_of
from memd.memory.duplicates import Alike, similarity
from memd.memory.facts import is_correction, is_manual, is_mergeable, is_note, rank
from memd.memory.many_texts import ManyTexts
from memd.memory.merging import neighbours
from memd.memory.parsing import parse
from memd.memory.removed import buried, hashes, refusal
from memd.memory.text import normal_key, normal_keys
from memd.ops.audit import audit
from memd.push.times import iso
from memd.recall.inject import inject
from memd.recall.why import why, why_text

NOW = datetime(2026, 11, 20, 10, 30, tzinfo=UTC)
ORIGIN = Origin("t", NOW, "a-model", "3")
QUOTE = "That is how it is."


def ago(days: float) -> str:
    return iso(NOW - timedelta(days=days))


def said(text: str = QUOTE, *signals: str, name: str = "m1") -> tuple[Message, ...]:
    return tuple(identify("t", [Message("user", text, id=name, signals=frozenset(signals))]))


def fact(number: int, content: str, **fields: Any) -> Fact:
    given: Fact = {"id": f"fact_{number:08x}", "content": content, "category": "preference", "confidence": 0.9}
    return {**given, "createdAt": ago(10), "source": "old", **fields}


def holding(*facts: Fact) -> Document:
    return {**empty_document(Bucket("ana")), "facts": list(facts)}


def new(content: str, **changes: Any) -> NewFact:
    given: dict[str, Any] = {"category": "preference", "confidence": 0.9, "scope": "user", "durability": "durable"}
    given |= {"authority": "descriptive", "evidence": (Evidence(0, QUOTE),), **changes}
    return NewFact(content, **given)


def run(
    document: Document,
    update: Update,
    *signals: str,
    recent_use: dict[str, float] | None = None,
    message: str = "m1",
    **changes: Any,
) -> Applied:
    settings = ApplySettings(**changes)
    turns = said(QUOTE, *signals, name=message)
    maintenance = maintenance_due(document, NOW, settings)
    origin = replace(ORIGIN, before=tuple(Message("assistant", fact.content) for fact in update.new_facts))
    return apply(document, update, turns, turns, origin, settings, maintenance=maintenance, recent_use=recent_use or {})


def contents(applied: Applied) -> list[str]:
    return [one["content"] for one in applied.document["facts"]]


def reasons(applied: Applied) -> list[str]:
    return [refusal.reason for refusal in applied.refusals]


def gone(applied: Applied) -> dict[str, str]:
    return {one["content"]: one["archiveReason"] for one in applied.document["archive"]}


# --- duplicates -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "again"),
    [
        ("The user likes tea.", "the user LIKES tea"),
        ("The user likes tea, not coffee", "The user likes tea – not coffee!"),
        ("The user knows C#", "ＴＨＥ user knows c#."),
        ("用户住在上海。", "用户 住在 上海"),
        ("用户用 Python 写后端", "用户用Python写后端！"),
        ("The user works as backend engineer for a bakery", "The user works as a backend engineer at a bakery"),
        ("The user likes tea and coffee in the morning", "The user likes coffee and tea in the morning"),
        ("用户住在上海浦东新区", "用户住在上海的浦东新区"),
    ],
)  # fmt: skip
def test_what_says_the_same_confirms(old: str, again: str) -> None:
    """Spelling, width, punctuation, spacing and small words make no second fact."""
    applied = run(holding(fact(1, old)), Update(new_facts=(new(again),)))
    assert contents(applied) == [old]
    assert applied.confirmed == ("fact_00000001",)
    assert applied.document["facts"][0]["lastConfirmedAt"] == iso(NOW)


@pytest.mark.parametrize(
    ("old", "other"),
    [
        ("The user knows C", "The user knows C#"),
        ("The user has 2 children", "The user has 3 children"),
        ("The user's daughter likes drawing horses and ships", "The user likes drawing horses and ships"),
        ("用户有两个孩子在上海读书", "用户有三个孩子在上海读书"),
        ("The user lives in Porto", "The user lives in Braga"),
        ("The user runs 1.5 km a day", "The user runs 15 km a day"),
        ("The user used to work at a bakery in Leeds", "The user works at a bakery in Leeds"),
        (
            "The user prefers Python over Go for services at work and at home",
            "The user prefers Go over Python for services at work and at home",
        ),
        (
            "The user moved from Berlin to Bonn with the whole family in spring",
            "The user moved from Bonn to Berlin with the whole family in spring",
        ),
        ("用户觉得上海的生活比北京的生活更舒服", "用户觉得北京的生活比上海的生活更舒服"),
        ("用户今年春天和家人一起从柏林搬到了波恩", "用户今年春天和家人一起从波恩搬到了柏林"),
        ("The user hardly ever eats fish with lemon and rice", "The user ever eats fish with lemon and rice"),
        ("The user plays chess with a nephew every Sunday", "The user plays chess with a niece every Sunday"),
        (
            "The user dislikes long meetings early in the morning without notes",
            "The user likes long meetings early in the morning without notes",
        ),
    ],
)
def test_what_says_something_else_is_added(old: str, other: str) -> None:
    """A number, a negation, another person or time makes a fact of its own, however alike the words."""
    applied = run(holding(fact(1, old)), Update(new_facts=(new(other),)))
    assert contents(applied) == [old, other]
    assert similarity(old, other) < 0.85


@pytest.mark.parametrize(
    ("old", "other"),
    [
        ("The user eats meat at home and in restaurants", "The user does not eat meat at home and in restaurants"),
        ("用户喜欢香菜和洋葱还有大蒜", "用户不喜欢香菜和洋葱还有大蒜"),
    ],
)
def test_a_denial_is_no_confirmation_and_ends_what_it_denies(old: str, other: str) -> None:
    """Both are never active together."""
    applied = run(holding(fact(1, old)), Update(new_facts=(new(other),)))
    assert contents(applied) == [other]
    assert similarity(old, other) < 0.85


WORDS = st.lists(
    st.sampled_from(
        [
            "The user",
            "likes",
            "tea,",
            "cats",
            "dog",
            "3",
            "1.5",
            "C#",
            "'s",
            "not",
            "short",
            "用户",
            "喜欢",
            "上海的",
            "浦东，",
        ]
    ),
    max_size=8,
).map(" ".join)


@settings_of(max_examples=300)
@given(WORDS, WORDS, st.sampled_from([0.0, 0.5, 0.7, 0.85, 0.99]))
def test_what_is_alike_is_never_passed_over(one: str, other: str, floor: float) -> None:
    """The prefilter rejects no content that reaches the floor."""
    if similarity(one, other) >= max(floor, 0.01):
        keys = ["", normal_key(other), normal_key(one)]
        assert Alike(one, floor).may_be(keys[1])
        assert 1 in Alike(one, floor).among(ManyTexts(keys))


@settings_of(max_examples=300)
@given(st.lists(st.text(max_size=20) | WORDS))
def test_many_keys_at_once_are_those_of_each(contents: list[str]) -> None:
    """Batched keys equal single ones, whatever the other contents are."""
    assert normal_keys(contents) == [normal_key(content) for content in contents]


@settings_of(max_examples=300)
@given(st.text(st.characters(max_codepoint=127), max_size=20) | WORDS.filter(str.isascii))
def test_both_ways_to_a_key_come_to_the_same(content: str) -> None:
    """The fast path for ASCII and the general path give the same key."""
    assert normal_key(f"{content} é") == f"{normal_key(content)} é".strip()


def test_what_says_more_takes_the_place() -> None:
    """A near-duplicate with all the words of the old fact and further ones replaces it, within the budget."""
    old = fact(1, "The user prefers short answers with code examples")
    applied = run(holding(old), Update(new_facts=(new("The user prefers short answers with code examples first"),)))
    assert contents(applied) == ["The user prefers short answers with code examples first"]
    assert applied.document["facts"][0]["replaces"] == ["fact_00000001"]
    assert gone(applied) == {old["content"]: "replaced"}


def test_near_duplicates_can_be_let_in() -> None:
    """With a threshold of 1 only equal keys are duplicates."""
    old, other = "The user likes tea and coffee at work", "The user likes coffee and tea at work"
    assert contents(run(holding(fact(1, old)), Update(new_facts=(new(other),)), near_duplicate=1)) == [old, other]


def test_facts_about_others_are_never_merged_with_the_users() -> None:
    """The same sentence about another person is another fact."""
    about = new("Likes tea in the morning", subject=Subject("Mia", "daughter"))
    applied = run(holding(fact(1, "Likes tea in the morning")), Update(new_facts=(about,)))
    assert len(applied.document["facts"]) == 2
    again = run(applied.document | {"ledger": {}}, Update(new_facts=(about,)))
    assert len(again.document["facts"]) == 2
    assert again.confirmed == applied.added


@pytest.mark.parametrize(
    ("sentence", "person", "same"),
    [
        ("Mira can't have peanuts", "Mira", True),
        ("The user's daughter is Mira's age", "mira", True),
        ("美羽不能吃花生", "美羽", True),
        ("Can't have peanuts", "Mira", False),
        ("Almira can't have peanuts", "Mira", False),
    ],
)
def test_a_sentence_that_names_the_person_needs_no_subject(sentence: str, person: str, same: bool) -> None:
    """With and without subject it is one fact, in whatever order they come, and removed it stays away either way."""
    about = new(sentence, subject=Subject(person, "daughter"))
    for first, then in ((about, new(sentence)), (new(sentence), about)):
        applied = run(run(holding(), Update(new_facts=(first,))).document | {"ledger": {}}, Update(new_facts=(then,)))
        assert len(applied.document["facts"]) == (1 if same else 2)
    tombstones = buried({}, run(holding(), Update(new_facts=(about,))).document["facts"], iso(NOW))
    assert (refusal(hashes({"removed": tombstones}), sentence) == "removed") is same


# --- corrections and praise -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("category", ["correction", "context"])
def test_an_explicit_correction_is_nearly_certain(category: str) -> None:
    """With the signal in the message it quotes, a correction has at least 0.95, and keeps what was wrong."""
    wanted = new("The user means the second one", category=category, confidence=0.7, source_error="Took the first")
    (loud,) = run(holding(), Update(new_facts=(wanted,)), "correction").document["facts"]
    (quiet,) = run(holding(), Update(new_facts=(wanted,))).document["facts"]
    assert (loud["confidence"], quiet["confidence"]) == (0.95, 0.7)
    assert loud["sourceError"] == "Took the first"


def test_praise_confirms_the_facts_it_bears_out() -> None:
    """A reinforcement names facts, with the praise as the quote; each is counted once an update."""
    named = ConfirmedFact("fact_00000001", QUOTE)
    applied = run(holding(fact(1, "The user likes tables", confirmations=2)), Update(confirmed_facts=(named, named)))
    assert applied.document["facts"][0]["confirmations"] == 3


def test_a_thread_may_add_so_many_facts_a_day() -> None:
    """The rate gate counts what the thread added today, stored or archived; it is off by default."""
    update = Update(new_facts=tuple(new(f"The user has a boat named B{number}") for number in range(5)))
    earlier = [fact(1, "The user sails", source="t", createdAt=iso(NOW)), fact(2, "The user rows", source="t")]
    applied = run(holding(*earlier), update, max_new_per_thread_day=3)
    assert len(applied.added) == 2
    assert reasons(applied) == ["rate"] * 3
    assert len(run(holding(), update).added) == 5


KINDS = ("green", "black", "white", "mint", "ginger", "jasmine", "oolong", "sage")


# --- what a person wrote --------------------------------------------------------------------------------------------


def test_what_a_person_wrote_stays() -> None:
    """No update replaces, retires, merges or evicts a manual fact; the wish is withheld."""
    mine = fact(1, "The user lives in Leeds", source="manual", confidence=0.1, validUntil=ago(1), createdAt=ago(900))
    others = [fact(number, f"The user owns boat number {number}") for number in range(2, 20)]
    update = Update(
        new_facts=(new("The user lives in Porto", replaces=("fact_00000001",)),),
        retired_facts=(RetiredFact("fact_00000001", "moved", QUOTE),),
        reviewed_facts=(ReviewedFact("fact_00000001", "retire"),),
        merged_facts=(MergedFact("The user lives in Leeds and owns boat 2", ("fact_00000001", "fact_00000002")),),
    )
    applied = run(holding(mine, *others), update, max_facts=10)
    assert "The user lives in Leeds" in contents(applied)
    assert reasons(applied) == ["manual", "manual", "not_in_review", "bad_merge"]
    wishes = [(one["fact"], one["wanted"], one["why"]) for one in applied.document["withheld"]]
    assert wishes == [("fact_00000001", "replaced", "manual"), ("fact_00000001", "retired", "manual")]
    again = run(applied.document, Update(retired_facts=update.retired_facts), message="m2")
    assert reasons(again) == ["manual"]


@pytest.mark.parametrize("thread", ["manual", "agent", "unknown"])
def test_a_thread_may_be_called_like_another_source(thread: str) -> None:
    """Its facts are neither manual nor notes: the model may change them."""
    turns = identify(thread, [Message("user", f"{QUOTE} It is in Porto.", id="m1")])
    origin = Origin(thread, NOW, "a-model", "3")
    update = Update(new_facts=(new("The user lives in Porto"),))
    (stored,) = apply(holding(), update, turns, turns, origin, ApplySettings()).document["facts"]
    assert not is_manual(stored)
    assert not is_note(stored)
    assert stored["evidence"][0]["thread"] == thread


BOATS = [fact(number, f"The user owns boat number {number}") for number in range(20)]


def test_bare_retirements_beyond_the_budget_are_withheld_until_the_user_says_it_again() -> None:
    """A fifth of the memory may retire, 5 facts of a small one; what a later message says again is granted."""
    wanted = tuple(RetiredFact(one["id"], "sold", QUOTE) for one in BOATS)
    applied = run(holding(*BOATS), Update(retired_facts=wanted))
    assert len(applied.retired) == 5
    assert [one["why"] for one in applied.document["withheld"]] == ["too_many_retired"] * 15
    again = run(applied.document | {"ledger": {}}, Update(retired_facts=wanted[5:11]))  # the same message once more
    assert (len(again.retired), len(again.document["withheld"])) == (5, 10)
    granted = run(applied.document, Update(retired_facts=wanted[5:]), message="m2")
    assert (len(granted.retired), granted.document["withheld"]) == (15, [])
    confirmed = run(applied.document, Update(confirmed_facts=(ConfirmedFact(BOATS[9]["id"], QUOTE),)), message="m2")
    assert len(confirmed.document["withheld"]) == 14


@settings_of(max_examples=60)
@given(st.integers(1, 60), st.lists(st.integers(1, 3), max_size=10), st.integers(0, 5))
def test_what_the_user_replaces_goes_whatever_the_size_of_the_memory(size: int, counts: list[int], bare: int) -> None:
    """Up to 10 facts that others replace, 3 by each of these, and 5 that only end: none of them is withheld."""
    facts = [fact(number, f"The user owns boat number {number}") for number in range(size)]
    left = [one["id"] for one in facts]
    replacing: list[NewFact] = []
    for number, count in enumerate(counts):
        room = min(count, 10 - sum(len(one.replaces) for one in replacing))
        old, left = tuple(left[:room]), left[room:]
        replacing.append(new(f"The user sails {KINDS[number % 8]} ship {number}", replaces=old))
    retired = tuple(RetiredFact(name, "sold", QUOTE) for name in left[:bare])
    applied = run(holding(*facts), Update(new_facts=tuple(replacing), retired_facts=retired))
    assert reasons(applied) == []
    assert len(applied.retired) == sum(len(one.replaces) for one in replacing) + len(retired)


def test_replacements_beyond_what_one_fact_or_update_may_are_withheld() -> None:
    """3 by one fact and 10 an update; the wish names the fact that was to take the place."""
    ids = [one["id"] for one in BOATS]
    greedy = run(holding(*BOATS), Update(new_facts=(new("The user owns a plane", replaces=tuple(ids[:5])),)))
    assert len(greedy.retired) == 3
    assert [(one["fact"], one["by"]) for one in greedy.document["withheld"]] == [
        (ids[3], *greedy.added),
        (ids[4], *greedy.added),
    ]
    planes = tuple(new(f"The user owns plane number {n}", replaces=(ids[n],)) for n in range(12))
    many = run(holding(*BOATS), Update(new_facts=planes))
    assert (len(many.retired), reasons(many)) == (10, ["too_many_retired"] * 2)


def test_what_is_withheld_is_shown_where_the_fact_is() -> None:
    """The audit names the wish, `why` also the fact that was to take the place, a block marks the line as doubtful."""
    one = fact(1, "The user lives in Leeds", source="manual")
    update = Update(new_facts=(new("The user lives in Porto", replaces=(one["id"],)),))
    document = run(holding(one), update).document
    (finding,) = [found for found in audit(document, NOW, ApplySettings()) if found.rule == "withheld"]
    assert finding.fact_id == one["id"]
    text = why_text(why(document, one["id"]))
    assert "to be replaced; a person wrote it" in text
    assert "The user lives in Porto" in text
    block = inject(document, RecallSettings())
    assert "The user lives in Leeds (outdated?)\n" in block
    assert block.count("(outdated?)") == 1


def test_the_former_name_of_what_is_withheld_is_read() -> None:
    """A document of an older version has it as `quarantine`; the next one has it as `withheld` alone."""
    wish = {"fact": BOATS[0]["id"], "wanted": "retired", "why": "too_many_retired", "at": ago(1), "source": "t"}
    document = parse(orjson.dumps(holding(*BOATS) | {"quarantine": [wish]}), Bucket("ana"))
    assert withheld_of(document) == [wish]
    granted = run(document, Update(retired_facts=tuple(RetiredFact(one["id"], "", QUOTE) for one in BOATS[::-1])))
    assert len(granted.retired) == 5 + 1
    assert "quarantine" not in granted.document


# --- review ---------------------------------------------------------------------------------------------------------


ENDED = fact(1, "The user rents a car", validUntil=ago(1))
STALE = fact(2, "The user learns Danish", createdAt=ago(400))
FRESH = fact(3, "The user likes rowing", createdAt=ago(400), lastConfirmedAt=ago(3))
CORRECTED = fact(4, "The user is no vegetarian", sourceError="Assumed a vegetarian", createdAt=ago(170))
OLDER = fact(5, "The user plays chess", createdAt=ago(500))


def test_what_is_past_its_time_or_long_unconfirmed_is_asked_about() -> None:
    """Ended facts first, then the longest unconfirmed; the request names them."""
    document = holding(STALE, ENDED, FRESH, CORRECTED, OLDER)
    maintenance = maintenance_due(document, NOW, ApplySettings())
    assert maintenance.review == {ENDED["id"]: "ended", OLDER["id"]: "stale", STALE["id"]: "stale"}
    text = build(Request(document, said(), maintenance=maintenance), NOW.date())
    names = short_ids([fact["id"] for fact in document["facts"]])
    ended, older, stale = (names[fact["id"]] for fact in (ENDED, OLDER, STALE))
    assert f"<review>\n{ended} ended\n{older} stale\n{stale} stale\n</review>" in text
    assert list(maintenance_due(document, NOW, ApplySettings(review_max=1)).review) == [ENDED["id"]]
    assert "<review>" not in build(Request(document, said()), NOW.date())


IDS = st.lists(
    st.sampled_from(["fact_1", "0badcafe", "abcd", "fact_", "by hand"])
    | st.text("0ab", min_size=8, max_size=9).map("fact_".__add__),
    unique=True,
    max_size=30,
)


@settings_of(max_examples=300)
@given(IDS)
def test_a_handle_means_one_fact(ids: list[str]) -> None:
    """Whatever ids there are: what stands in the request comes back as the id, and is no other one's."""
    names = short_ids(ids)
    assert list(names) == ids
    assert len(set(names.values())) == len(ids)
    update = Update(retired_facts=tuple(RetiredFact(name, "", "") for name in names.values()))
    assert [fact.id for fact in with_full_ids(update, ids).retired_facts] == ids


def test_handles_are_short_and_resolved_everywhere() -> None:
    """Four digits mostly; an id in full is one as well; what means two facts, or none, is refused."""
    one, two, three = (fact(n, text) for n, text in ((1, "Likes tea"), (2, "Likes rice"), (3, "Likes fog")))
    one["id"], two["id"], three["id"] = "fact_0a1b2c3d", "fact_0a1bffff", "fact_77777777"
    assert short_ids([one["id"], two["id"], three["id"]]) == {
        one["id"]: "0a1b2",
        two["id"]: "0a1bf",
        three["id"]: "7777",
    }
    wanted = Update(
        confirmed_facts=(ConfirmedFact("fact_0a1bffff", QUOTE),),
        retired_facts=(RetiredFact("0a1b2", "over", QUOTE), RetiredFact("0a1b", "over", QUOTE)),
        new_facts=(new("The user lives by the sea", replaces=("7777",)),),
    )
    applied = run(holding(one, two, three, *(fact(n, f"Likes no. {n}") for n in range(10, 20))), wanted)
    assert applied.confirmed == (two["id"],)
    assert gone(applied) == {one["content"]: "retired", three["content"]: "replaced"}
    assert reasons(applied) == ["unknown_id"]


@pytest.mark.parametrize("fields", [{"category": "correction"}, {"sourceError": "Assumed tea"}])
def test_a_correction_is_asked_about_after_180_days(fields: dict[str, Any]) -> None:
    """Whatever has a source error is a correction, in any category; it is also neither merged nor the first to go."""
    settings = ApplySettings(stale_after_days=30)
    young, old = (
        fact(n, f"The user drinks no. {n}", createdAt=ago(days), **fields) for n, days in ((1, 170), (2, 190))
    )
    assert maintenance_due(holding(young, old), NOW, settings).review == {old["id"]: "stale"}
    assert is_correction(young)
    assert not is_mergeable(young)
    assert rank(young) > rank({**young, "category": "context", "sourceError": "", "createdAt": NOW.isoformat()})


def test_verdicts_are_followed() -> None:
    """Keep removes the end, extend sets a new one, retire archives; facts not under review do not change."""
    verdicts = (
        ReviewedFact(ENDED["id"], "extend", 30),
        ReviewedFact(STALE["id"], "keep"),
        ReviewedFact(OLDER["id"], "retire"),
        ReviewedFact(FRESH["id"], "retire"),
    )
    applied = run(holding(ENDED, STALE, FRESH, OLDER), Update(reviewed_facts=verdicts))
    facts = {one["id"]: one for one in applied.document["facts"]}
    assert facts[ENDED["id"]]["validUntil"] == iso(NOW + timedelta(days=30))
    assert facts[STALE["id"]]["reviewedAt"] == iso(NOW)
    assert gone(applied) == {OLDER["content"]: "stale"}
    assert reasons(applied) == ["not_in_review"]
    kept = run(holding(ENDED), Update(reviewed_facts=(ReviewedFact(ENDED["id"], "keep"),)))
    assert "validUntil" not in kept.document["facts"][0]
    assert maintenance_due(applied.document, NOW, ApplySettings()).review == {}


def test_without_a_verdict_the_ended_goes_and_the_stale_is_asked_later() -> None:
    """Without a verdict a stale fact stays, and an ended one is archived."""
    applied = run(holding(ENDED, STALE), Update())
    assert contents(applied) == [STALE["content"]]
    assert gone(applied) == {ENDED["content"]: "expired"}
    assert maintenance_due(applied.document, NOW, ApplySettings()).review == {}


@pytest.mark.parametrize("review_max", [0, 5])
def test_what_the_user_says_again_has_not_ended(review_max: int) -> None:
    """Confirmed or told anew, a fact past its time lasts anew, whatever the verdict; replaced, it is not expired."""
    rented = {**ENDED, "createdAt": ago(31)}
    again = Update(
        confirmed_facts=(ConfirmedFact(ENDED["id"], QUOTE),),
        reviewed_facts=(ReviewedFact(ENDED["id"], "retire"),),
    )
    for update in (again, Update(new_facts=(new("The user rents a car"),))):
        applied = run(holding(rented), update, review_max=review_max)
        assert (gone(applied), applied.confirmed) == ({}, (ENDED["id"],))
        assert reasons(applied) == [] or review_max == 0
        assert applied.document["facts"][0]["validUntil"] == iso(NOW + timedelta(days=30))
    sold = run(
        holding(ENDED), Update(new_facts=(new("The user owns a car", replaces=(ENDED["id"],)),)), review_max=review_max
    )
    assert gone(sold) == {ENDED["content"]: "replaced"}


def test_verdicts_on_what_has_ended_are_free() -> None:
    """They cost no budget, which is left for what the user says is over; a stale fact's retirement does."""
    ended = [fact(n, f"The user rents boat number {n}", validUntil=ago(1)) for n in range(30, 40)]
    over = [fact(n, f"The user owns boat number {n}") for n in range(20, 25)]
    update = Update(
        reviewed_facts=tuple(ReviewedFact(one["id"], "retire") for one in ended),
        retired_facts=tuple(RetiredFact(one["id"], "sold", QUOTE) for one in over),
    )
    applied = run(holding(*ended, *over, STALE), update, review_max=20)
    assert (len(applied.retired), reasons(applied)) == (15, [])
    stale = Update(retired_facts=update.retired_facts, reviewed_facts=(ReviewedFact(STALE["id"], "retire"),))
    assert reasons(run(holding(*over, STALE), stale)) == ["too_many_retired"]


# --- merging --------------------------------------------------------------------------------------------------------


def tea(number: int, kind: str) -> Fact:
    evidence = [{"thread": "old", "message": str(number), "quote": kind}]
    return fact(number, f"The user likes {kind} tea", confidence=0.8 + number / 100, evidence=evidence)


TEAS = [tea(number, kind) for number, kind in enumerate(KINDS)]
FULL: dict[str, Any] = {"max_facts": 10}
"""Settings for which the teas take more than seven tenths of the places."""

ALL_TEAS = "The user likes green, black, white, mint, ginger, jasmine, oolong and sage tea"


def test_facts_that_overlap_become_one_that_names_them() -> None:
    """Eight facts of one category become one, as sure as the least sure; the originals are in the archive."""
    document = holding(*TEAS, fact(20, "The user is a nurse", category="identity"))
    assert maintenance_due(document, NOW, ApplySettings(**FULL)).merge == ("preference",)
    sources = tuple(one["id"] for one in TEAS)
    applied = run(document, Update(merged_facts=(MergedFact(ALL_TEAS, sources),)), **FULL)
    merged = applied.document["facts"][-1]
    assert (merged["content"], merged["replaces"], merged["confidence"]) == (ALL_TEAS, list(sources), 0.8)
    assert [piece["quote"] for piece in merged["evidence"]] == ["green", "black", "white", "mint", "ginger"]
    assert {one["archiveReason"] for one in applied.document["archive"]} == {"merged"}
    assert {one["replacedBy"] for one in applied.document["archive"]} == {merged["id"]}
    assert (applied.added, applied.refusals) == ((), ())


@pytest.mark.parametrize(
    ("content", "sources", "reason"),
    [
        (ALL_TEAS, [0], "bad_merge"),
        (ALL_TEAS, [0, 20], "bad_merge"),
        (ALL_TEAS, [0, 99], "unknown_id"),
        ("The user likes green tea and wants the house sold", [0, 1], "not_in_sources"),
        ("The user likes 7 kinds of green and black tea", [0, 1], "not_in_sources"),
        ("tea!", [0, 1], "too_short"),
        ("The user likes green tea, key AKIAIOSFODNN7EXAMPLE", [0, 1], "secret"),
    ],
)
def test_a_merge_that_is_none_changes_nothing(content: str, sources: list[int], reason: str) -> None:
    """It must be of one category and person, and say what its sources say."""
    document = holding(*TEAS, fact(20, "The user is a nurse", category="identity"))
    ids = tuple(f"fact_{number:08x}" for number in sources)
    applied = run(document, Update(merged_facts=(MergedFact(content, ids),)), **FULL)
    assert reasons(applied) == [reason]
    assert applied.document["facts"] == document["facts"]


def test_one_merge_an_update_and_none_that_was_not_asked_for() -> None:
    """A reply cannot empty a memory by merging."""
    ids = [one["id"] for one in TEAS]
    two = (
        MergedFact("The user likes green and black tea", (ids[0], ids[1])),
        MergedFact("The user likes white and mint tea", (ids[2], ids[3])),
    )
    assert reasons(run(holding(*TEAS), Update(merged_facts=two), **FULL)) == ["too_many_merged"]
    assert reasons(run(holding(*TEAS), Update(merged_facts=two[:1]), consolidate_from=0, **FULL)) == ["bad_merge"]
    few = maintenance_due(holding(*TEAS[:7]), NOW, ApplySettings(**FULL, profile=False))
    assert few == Maintenance()


def test_merges_wait_until_a_memory_is_nearly_full_and_take_turns() -> None:
    """Above seven tenths of the places one category an update may be merged, another one the next time."""
    boats = [fact(30 + n, f"The user owns boat number {n}", category="context") for n in range(8)]
    document = holding(*TEAS, *boats)
    assert maintenance_due(document, NOW, ApplySettings(max_facts=23)).merge == ()
    turns = [
        maintenance_due({**document, "revision": revision}, NOW, ApplySettings(max_facts=22)).merge
        for revision in range(3)
    ]
    assert turns == [("context",), ("preference",), ("context",)]


@pytest.mark.parametrize(
    ("first", "second", "merged", "kept"),
    [
        ("Uses Python at work", "Uses Go at work", "Uses Python and Go at work", True),
        ("Uses Python at work", "Never uses Go at work", "Uses Python and Go at work", False),
        ("Prefers Python over Go", "Prefers Go over Perl", "Prefers Go over Python and Perl", False),
        ("Plays chess on Sunday evenings with Noor", "Plays Go with Noor", "Plays chess and Go with Noor", False),
        ("用户喜欢绿茶", "用户喜欢红茶", "用户喜欢绿茶和红茶", True),
        ("用户不喝绿茶", "用户不喝红茶", "用户喝绿茶和红茶", False),
    ],
)
def test_a_merge_keeps_what_its_sources_say(first: str, second: str, merged: str, kept: bool) -> None:
    """The words that change a meaning, and seven tenths of the others in their order."""
    document = holding(fact(90, first), fact(91, second), *TEAS)
    ids = ("fact_0000005a", "fact_0000005b")
    applied = run(document, Update(merged_facts=(MergedFact(merged, ids),)), **FULL)
    assert reasons(applied) == ([] if kept else ["bad_merge"])


# --- eviction -------------------------------------------------------------------------------------------------------


def full(*facts: Fact) -> Document:
    return holding(
        *facts, *(fact(number, f"The user owns boat number {number}") for number in range(50, 60 - len(facts)))
    )


BIKE = Update(new_facts=(new("The user rides a bike"),))


def test_what_goes_first_when_a_memory_is_full() -> None:
    """Ended facts, then goals, events and decisions, then others; identity, constraints and corrections last."""
    tiers = [
        fact(1, "The user rents cars", category="correction", validUntil=ago(1), createdAt=ago(2)),
        fact(2, "The user wants to see Oslo", category="goal", confidence=0.99),
        fact(3, "The user keeps bees", confidence=0.7, createdAt=ago(20)),
        fact(4, "The user is from Leeds", category="identity", confidence=0.6, createdAt=ago(50)),
        fact(5, "The user must not eat nuts", category="constraint", confidence=0.6, createdAt=ago(200)),
        fact(6, "The user is no vegetarian", category="correction", confidence=0.6, createdAt=ago(400)),
        fact(7, "The user works at night", sourceError="by day", createdAt=ago(800)),
    ]
    document = holding(
        *tiers, *(fact(number, f"The user may eat {number}", source="manual") for number in range(50, 60))
    )
    order: list[str] = []
    for room in range(16, 10, -1):
        applied = run(document, Update(), max_facts=room, review_max=5)
        order.append(sorted(set(gone(applied)) - set(order))[0])
    assert order == [tiers[place]["content"] for place in (0, 1, 2, 6, 5, 4)]


def test_within_a_tier_what_was_said_or_read_longest_ago_goes() -> None:
    """A confirmation or a reading keeps a fact, however unsure the model was; the archive says what it was worth."""
    old = fact(1, "The user keeps bees", confidence=0.99, createdAt=ago(900))
    fresh = fact(2, "The user may like rowing", confidence=0.75, createdAt=ago(901), lastConfirmedAt=ago(1))
    applied = run(full(old, fresh), BIKE, max_facts=10)
    (evicted,) = applied.document["archive"]
    assert (evicted["content"], evicted["archiveNote"]) == (old["content"], "preference, worth 0.25")
    read = run(full(old, {**fresh, "lastConfirmedAt": ago(900)}), BIKE, max_facts=10, recent_use={old["id"]: 1.0})
    assert list(gone(read)) == [fresh["content"]]


def test_what_another_fact_nearly_says_goes_first_and_confidence_decides_between_equals() -> None:
    """Of facts said at the same time those that resemble another one go; of two such the less certain."""
    unsure = fact(1, "The user may like rowing", confidence=0.71)
    assert "boat" in next(iter(gone(run(full(unsure), BIKE, max_facts=10))))
    twins = [fact(1, "The user plays the cello", confidence=0.9), fact(2, "The user plays the viola", confidence=0.8)]
    others = [fact(3, "The user grows leeks"), fact(4, "Mows lawns"), fact(5, "Knows Esperanto"), fact(6, "Likes fog")]
    others += [fact(7, "Avoids lifts"), fact(8, "Reads Kafka"), fact(9, "Paints doors"), fact(10, "Owns a parrot")]
    applied = run(holding(*twins, *others), BIKE, max_facts=10)
    assert list(gone(applied)) == ["The user plays the viola"]


def test_a_full_memory_takes_in_what_is_new() -> None:
    """A new goal does not go at once for being a goal: it counts like the others, and is the freshest of them."""
    goal = Update(new_facts=(new("The user wants a parrot", category="goal"),))
    applied = run(full(), goal, max_facts=10)
    assert "The user wants a parrot" in contents(applied)


def test_each_revision_offers_other_facts_that_may_be_merged() -> None:
    """For a memory that is not shown whole: one fact of a category in question, and those most like it."""
    facts = [fact(n, f"The user drinks tea number {n} at home") for n in range(20)]
    facts += [fact(20 + n, f"The user owns boat number {n}", category="context") for n in range(3)]
    document = holding(*facts)
    offered = [neighbours({**document, "revision": revision}, ["preference"]) for revision in range(20)]
    assert {len(ids) for ids in offered} == {8}
    assert {ids[0] for ids in offered} == {one["id"] for one in facts[:20]}
    assert {name for ids in offered for name in ids} == {one["id"] for one in facts[:20]}
    assert neighbours(document, []) == neighbours(document, ["goal"]) == []
