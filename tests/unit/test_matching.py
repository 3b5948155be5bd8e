"""Matching: when a label finds a fact."""

from __future__ import annotations

import pytest

from memd.evaluation.matching import Matcher, is_about, text_of
from memd.memory.text import fold


@pytest.mark.parametrize(
    ("terms", "text", "matches"),
    [
        ([["porto"]], "The user lives in Porto.", True),
        ([["nut"]], "The user sleeps for a minute.", False),
        ([["nut"]], "Mira is allergic to nuts.", True),
        ([["allerg", "nut"]], "Mira is allergic to milk.", False),
        ([["allerg", "nut"], ["花生", "过敏"]], "用户对花生过敏。", True),
        ([["9"]], "The user is 95 years old.", False),
        ([["9"]], "The user's son is 9.", True),
        ([["1.5"]], "The user runs 11.5 km.", False),
        ([["住在杭州"]], "用户住在杭州。", True),
        ([["doesn't eat"]], "The user doesn’t  EAT meat.", True),
        ([["кофе"]], "Пользователь любит кофе.", True),
        ([["офе"]], "Пользователь любит кофе.", False),
        ([["杭州"]], "用户iPhone在杭州", True),
        ([["iphone"]], "用户用iPhone打电话", True),
    ],
)
def test_terms_stand_at_the_beginning_of_a_word(terms: list[list[str]], text: str, matches: bool) -> None:
    """All terms of one alternative, in any case and width; numbers are whole numbers; Chinese anywhere."""
    assert Matcher(tuple(map(tuple, terms))).matches(fold(text)) is matches


def test_a_term_under_without_rules_a_text_out() -> None:
    """The old home is not meant by a sentence about the move."""
    old = Matcher((("porto",),), ("moved from",))
    assert old.matches(fold("The user lives in Porto."))
    assert not old.matches(fold("The user moved from Porto to Lisbon."))


@pytest.mark.parametrize(
    ("content", "subject", "person", "right"),
    [
        ("The user lives in Porto.", None, (), True),
        ("Mira lives in Porto.", ("Mira", "daughter"), (), False),
        ("The user lives in Porto.", ("the user", "self"), (), True),
        ("The user's daughter is allergic.", None, ("mira", "daughter"), True),
        ("The user is allergic.", None, ("mira", "daughter"), False),
        ("Is allergic.", ("Mira", "daughter"), ("daughter",), True),
        ("Is allergic.", ("Tom", "son"), ("mira", "daughter"), False),
        ("用户的女儿对花生过敏。", None, ("女儿",), True),
    ],
)
def test_whom_a_fact_is_about(
    content: str, subject: tuple[str, str] | None, person: tuple[str, ...], right: bool
) -> None:
    """A subject decides; without one, the sentence names the person; without a name, it is about the user."""
    fact = {"content": content}
    if subject:
        fact |= {"subject": {"person": subject[0], "relationship": subject[1]}}  # type: ignore[dict-item]  # as documents have it
    assert is_about(fact, person) is right


def test_labels_look_at_the_person_too() -> None:
    """A fact that names its person only in `subject` is found by the name."""
    fact = {"content": "Is allergic to nuts.", "subject": {"person": "Mira", "relationship": "daughter"}}
    assert Matcher((("mira", "nut"),)).matches(text_of(fact))
