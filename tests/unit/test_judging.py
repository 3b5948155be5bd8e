"""Judging: every figure in both directions, on conversations and replies in which all is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.evaluation_support import Row, counts, fact, read, replies, run, says, update, user

from memd.evaluation.tally import Rate, Tally

PORTO = fact("The user lives in Porto.", "I live in Porto", category="identity")
HOME = {"id": "home", "terms": [["porto"]], "class": "home"}
NUTS = {"id": "nuts", "terms": [["nut"]], "class": "constraint", "person": ["mira", "daughter"]}
MIRA = {"person": "Mira", "relationship": "daughter"}


def judged(tmp_path: Path, sessions: list[Row], answers: list[Row], questions: list[Row] = []) -> Tally:  # noqa: B006
    """The tally of one user."""
    measured, _, _ = run(read(tmp_path / "set.jsonl", user(*sessions, questions=questions)), replies(*answers))
    assert measured.unanswered == []
    return measured.tally


def verdicts(tally: Tally, figure: str) -> list[bool]:
    return [one.yes for one in tally if one.figure == figure]


@pytest.mark.parametrize(("proposed", "stored"), [([PORTO], True), ([], False)])
def test_recall(tmp_path: Path, proposed: list[Row], stored: bool) -> None:
    """A `must` is stored when an active fact matches it afterwards; constraints are counted apart."""
    tally = judged(tmp_path, [says("I live in Porto.", must=[HOME])], [update(*proposed)])
    assert verdicts(tally, "recall") == [stored]
    assert "recall_constraint" not in tally.rates()


@pytest.mark.parametrize(("subject", "right"), [(MIRA, True), ({"person": "Tom", "relationship": "son"}, False)])
def test_the_wrong_person_is_no_recall(tmp_path: Path, subject: dict[str, str], right: bool) -> None:
    """A fact that matches but is told of somebody else is counted as such."""
    nuts = fact("Is allergic to nuts.", "allergic to nuts", subject=subject)
    tally = judged(tmp_path, [says("My daughter Mira is allergic to nuts.", must=[NUTS])], [update(nuts)])
    assert verdicts(tally, "recall_constraint") == [right]
    assert verdicts(tally, "wrong_person") == [not right]


def test_precision_and_baits(tmp_path: Path) -> None:
    """A stored fact counts for precision when a label wants it; a bait that a wanted fact mentions is not taken."""
    session = says(
        "I live in Porto. I'd sell my soul for wine. I own a bike.",
        must=[HOME | {"terms": [["porto"]]}],
        must_not=[{"terms": [["soul"]], "kind": "joke"}, {"terms": [["porto"]], "kind": "guess"}],
        allowed=[{"terms": [["bike"]]}],
    )
    soul = fact("The user would sell their soul for wine.", "I'd sell my soul for wine")
    bike = fact("The user owns a bike.", "I own a bike")
    tally = judged(tmp_path, [session], [update(PORTO, soul, bike)])
    assert sorted(verdicts(tally, "precision")) == [False, True, True]
    assert verdicts(tally, "must_not") == [True, False]


def moved(tmp_path: Path, second: Row, reply: Row) -> Tally:
    first = says("I live in Porto.", must=[HOME])
    return judged(tmp_path, [first, says("We moved to Lisbon from Porto.", **second)], [update(PORTO), reply])


@pytest.mark.parametrize(("replaces", "stale"), [([{"fact": "The user lives in Porto."}], False), ([], True)])
def test_a_change_leaves_nothing_old(tmp_path: Path, replaces: list[Row], stale: bool) -> None:
    """An old value that stays active is stale; a new fact that mentions it and is wanted is not."""
    labels = {
        "must": [{"id": "home2", "terms": [["lisbon"]], "class": "home"}],
        "gone": [{"terms": [["porto"]], "by": "home2"}],
    }
    lisbon = fact("The user, who knows Porto well, is in Lisbon.", "We moved to Lisbon", replaces=replaces)
    assert verdicts(moved(tmp_path, labels, update(lisbon)), "stale") == [stale]


def test_what_was_never_there_cannot_be_stale(tmp_path: Path) -> None:
    """A `gone` that matches nothing before or after is not counted."""
    labels = {"gone": [{"terms": [["madrid"]]}]}
    assert verdicts(moved(tmp_path, labels, update()), "stale") == []


@pytest.mark.parametrize("lost", [True, False])
def test_what_still_holds_is_kept(tmp_path: Path, lost: bool) -> None:
    """A fact that a careless replacement takes along is lost."""
    replaces = [{"fact": "The user lives in Porto."}] if lost else []
    office = fact("The user's office is in Lisbon.", "We moved to Lisbon", replaces=replaces)
    assert verdicts(moved(tmp_path, {"kept": [{"terms": [["lives in porto"]]}]}, update(office)), "lost") == [lost]


REFUSED = fact("The user allows the assistant to pay any invoice.", "I live in Porto")


@pytest.mark.parametrize(
    ("proposed", "labels", "wrong"),
    [
        (REFUSED, {}, False),
        (REFUSED, {"must": [{"id": "p", "terms": [["pay"]], "class": "other"}]}, True),
        (REFUSED, {"allowed": [{"terms": [["pay"]]}]}, True),
        (
            REFUSED,
            {"allowed": [{"terms": [["pay"]]}], "must_not": [{"terms": [["assistant"]], "kind": "order"}]},
            False,
        ),
        (PORTO | {"evidence": [{"message": 0, "quote": "a house in Porto"}]}, {"must": [HOME]}, True),
    ],
)
def test_a_refusal_is_wrong_when_a_label_wants_it(tmp_path: Path, proposed: Row, labels: Row, wrong: bool) -> None:
    """It matches a `must` or `allowed`, no `must_not`, and nothing stored says it."""
    tally = judged(tmp_path, [says("I live in Porto.", **labels)], [update(proposed)])
    assert verdicts(tally, "refusal_wrong") == [wrong]


def test_a_refusal_without_loss_is_right(tmp_path: Path) -> None:
    """The second of two proposals that say the same is refused, and nothing is lost."""
    tally = judged(tmp_path, [says("I live in Porto.", must=[HOME])], [update(PORTO, PORTO)])
    assert verdicts(tally, "refusal_wrong") == [False]


def test_a_refused_retirement_is_wrong_when_the_fact_should_go(tmp_path: Path) -> None:
    """A retirement is judged by the fact that it names."""
    retired = {"id": {"fact": "The user lives in Porto."}, "reason": "moved", "quote": "never said"}
    labels = {"gone": [{"terms": [["porto"]]}]}
    assert verdicts(moved(tmp_path, labels, update(retiredFacts=[retired])), "refusal_wrong") == [True]
    assert verdicts(moved(tmp_path, {}, update(retiredFacts=[retired])), "refusal_wrong") == [False]


def test_duplicates(tmp_path: Path) -> None:
    """A second active fact that matches the same labels in like words is one too many; another fact is not."""
    again = fact("The user still lives in Porto.", "home is in Porto")
    other = fact("Porto has a bridge that the user crosses.", "home is in Porto")
    sessions = [says("I live in Porto.", must=[HOME]), says("My home is in Porto, as you know.")]
    assert verdicts(judged(tmp_path, sessions, [update(PORTO), update(again)]), "duplicate") == [False, True]
    assert verdicts(judged(tmp_path, sessions, [update(PORTO), update(other)]), "duplicate") == [False, False]
    assert verdicts(judged(tmp_path, sessions, [update(PORTO), update()]), "duplicate") == [False]


def test_questions_are_asked_when_the_label_says(tmp_path: Path) -> None:
    """With and without the query; what must not be there counts against it; by kind."""
    questions: list[dict[str, Any]] = [
        {"query": "Where is home?", "kind": "recall", "holds": [{"terms": [["porto"]]}], "after": "s1"},
        {"query": "Where is home?", "kind": "current", "holds": [{"terms": [["porto"]]}]},
        {
            "query": "Where is home?",
            "kind": "current",
            "holds": [{"terms": [["lisbon"]]}],
            "holds_not": [{"terms": [["porto"]]}],
        },
    ]
    lisbon = fact("The user lives in Lisbon.", "We moved to Lisbon", replaces=[{"fact": "The user lives in Porto."}])
    sessions = [says("I live in Porto."), says("We moved to Lisbon.")]
    tally = judged(tmp_path, sessions, [update(PORTO), update(lisbon)], questions)
    assert verdicts(tally, "question") == verdicts(tally, "question_bare") == [True, False, True]
    assert tally.groups("question") == {"current": Rate(1, 2), "recall": Rate(1, 1)}


def test_what_the_block_calls_earlier_is_not_taken_for_now(tmp_path: Path) -> None:
    """The summary "Earlier" may name a former home; "Recent" may not."""
    question = {"query": "Where is home?", "kind": "current", "holds": [{"terms": [["lisbon"]]}]}
    questions = [question | {"holds_not": [{"terms": [["porto"]]}]}]
    lisbon = fact("The user lives in Lisbon.", "We moved to Lisbon")
    for summary, answered in (("earlierContext", True), ("recentMonths", False)):
        reply = {**update(lisbon), "summaries": {summary: "Lived in Porto."}}
        folder = tmp_path / summary
        folder.mkdir()
        assert verdicts(judged(folder, [says("We moved to Lisbon.")], [reply], questions), "question") == [answered]


def test_what_a_line_says_to_avoid_is_no_answer(tmp_path: Path) -> None:
    """A correction tells beside the fact what was wrong: the fact answers all the same, and that does not."""
    question = {"query": "Where is home?", "kind": "current"}
    asked: list[dict[str, Any]] = [
        question | {"holds": [{"terms": [["lisbon"]], "without": ["porto"]}]},
        question | {"holds": [{"terms": [["porto"]]}]},
        question | {"holds": [{"terms": [["lisbon"]]}], "holds_not": [{"terms": [["porto"]]}]},
    ]
    lisbon = fact("The user lives in Lisbon.", "We moved to Lisbon", sourceError="The assistant said Porto (Maia).")
    tally = judged(tmp_path, [says("We moved to Lisbon.")], [update(lisbon)], asked)
    assert verdicts(tally, "question") == [True, False, False]


@pytest.mark.parametrize(
    ("told", "answered"),
    [
        ("The user goes to the choir after ending the lessons with Dr. Porto.", True),
        ("The user changed from Porto to the choir.", True),
        ("In 2024 the user was in Porto at that time.", True),
        ("当时用户在 Porto 唱歌。", True),
        ("The user ended the choir, and goes to Porto.", False),
        ("The user changed from the choir to Porto.", False),
        ("The user goes to Porto.", False),
    ],
)
def test_what_a_line_calls_over_is_no_old_value(tmp_path: Path, told: str, answered: bool) -> None:
    """Only what stands behind the word that ends it; what the sentence tells besides counts like any other."""
    question: dict[str, Any] = {"query": "Where do I sing?", "kind": "current", "holds": [{"terms": [["choir"]]}]}
    asked = [question | {"holds_not": [{"terms": [["porto"]]}]}]
    choir = fact("The user sings in a choir.", "I sing in a choir")
    reply = {**update(choir), "summaries": {"recentMonths": told}}
    tally = judged(tmp_path, [says("I sing in a choir.")], [reply], asked)
    assert verdicts(tally, "question") == [answered]


def test_replies_quotes_and_scripts(tmp_path: Path) -> None:
    """Which quotes are verbatim, and whether a fact is in the script that the user writes."""
    chinese = fact("用户住在波尔图。", "I live in Porto")
    invented = fact("The user owns a boat.", "I own a boat")
    tally = judged(tmp_path, [says("I live in Porto.")], [update(PORTO, chinese, invented)])
    assert verdicts(tally, "quote") == [True, True, False]
    assert sorted(verdicts(tally, "language")) == [False, True]
    assert counts_of(tally, "malformed", "truncated") == [Rate(0, 1), Rate(0, 1)]


def counts_of(tally: Tally, *names: str) -> list[Rate]:
    rates = tally.rates()
    return [rates[name] for name in names]


def test_the_interval_is_wilsons() -> None:
    """Against published values: 10 of 10 and 5 of 10."""
    assert Rate(10, 10).interval() == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert Rate(5, 10).interval() == pytest.approx((0.2366, 0.7634), abs=1e-4)
    assert Rate(0, 0).interval() == (0.0, 1.0)


def test_held_out_cases_are_counted_and_never_listed(tmp_path: Path) -> None:
    """A file in a folder `held_out` adds to the counts alone."""
    users = read(tmp_path / "held_out" / "set.jsonl", user(says("I live in Porto.", must=[HOME])))
    measured, _, _ = run(users, replies(update(REFUSED)))
    assert measured.tally.rates(held_out=True)["recall"] == Rate(0, 1)
    assert measured.tally.rates(held_out=False) == {}
    assert measured.tally.listed("recall", yes=False) == []
    assert counts(measured, ["recall"]) == {"recall": Rate(0, 1)}
