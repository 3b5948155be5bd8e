"""The fence around a request's private part, counted in both directions on cases of two halves."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from memd.extraction.update import Evidence, NewFact, Subject
from memd.memory.projects.leaks import Fence, is_personal

CASES = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data/projects/leaks.jsonl").read_text().splitlines()
]


@pytest.mark.parametrize("half", ["tune", "held_out"])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_leaks_are_held_back_and_true_facts_are_not(half: str, lang: str) -> None:
    """Of 16 planted leaks at most one is published, of 16 true facts of the project at most one is kept private.

    A word in other words ("吃药" for a medicine) is nothing that a comparison of words can find.
    """
    wrong: Counter[str] = Counter()
    cases = [case for case in CASES if (case["half"], case["lang"]) == (half, lang)]
    for case in cases:
        held = Fence(case["private"], case["marked"]).holds_back(case["content"])
        wrong[case["expect"]] += held != (case["expect"] == "private")
    assert Counter(case["expect"] for case in cases) == {"publish": 16, "private": 16}
    assert wrong["private"] <= 1
    assert wrong["publish"] <= 1


@pytest.mark.parametrize(
    ("changes", "category", "personal"),
    [
        ({}, "decision", False),
        ({}, "identity", True),
        ({}, "preference", True),
        ({}, "behavior", True),
        ({"subject": Subject("Nora", "colleague")}, "context", True),
        ({"sensitive": True}, "context", True),
    ],
)
def test_what_is_about_a_person_is_no_projects(changes: dict[str, Any], category: str, personal: bool) -> None:
    """By its category, its subject, or its label."""
    fact = NewFact("It is so.", category, 0.9, "project", "durable", "descriptive", (Evidence(0, "so"),), **changes)
    assert is_personal(fact, category) == personal


def test_what_the_project_knows_already_is_no_secret() -> None:
    """A word of the private part that stands in the project's own facts, in another form too."""
    fence = Fence(["I met Nora about deployments."], ["The project deploys on Fridays.", "Nora owns the deployment."])
    assert not fence.holds_back("The project's deployments on Friday are Nora's.")
    assert Fence(["I met Nora."], ["We deploy on Fridays."]).holds_back("Nora deploys on Fridays.")
