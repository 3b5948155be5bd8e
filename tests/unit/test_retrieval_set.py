"""evaluation/retrieval/: quotes are in their turns, ids resolve, and the sizes hold that evaluation/README.md names."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "evaluation" / "retrieval"
USERS = sorted(FOLDER.glob("*/*/memory.jsonl"))
KINDS = {"single", "several", "time", "other_person", "changed", "proactive", "turns_only"}


def rows(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_three_users_in_each_half() -> None:
    assert Counter(file.parts[-3] for file in USERS) == {"open": 3, "held_out": 3}
    assert sum(file.stat().st_size for file in FOLDER.rglob("*.jsonl")) < 3_000_000


@pytest.mark.parametrize("file", USERS, ids=lambda file: file.parent.name)
def test_a_user_is_consistent(file: Path) -> None:
    memory, said = rows(file), rows(file.with_name("said.jsonl"))
    facts = {row["document"]: row for row in memory if "document" in row}
    archived = {row["archived"]: row for row in said if "archived" in row}
    turns = {row["turn"]: row for row in said if "turn" in row}
    questions = [row for row in memory if "question" in row]
    assert len(facts) + len(archived) + len(turns) + len(questions) == len(memory) + len(said), "an id is used twice"
    assert len(facts) >= 200
    assert len(turns) >= 300
    assert len(questions) >= 40
    assert {row["group"] for row in memory + said} == {file.parent.name}
    times = [datetime.fromisoformat(turn["saidAt"]) for turn in turns.values()]
    assert times == sorted(times)
    assert (times[-1] - times[0]).days >= 180
    for name, fact in (facts | archived).items():
        check_fact(name, fact, facts, archived, turns)
    for question in questions:
        check_question(question, facts, archived, turns)


def check_fact(
    name: str,
    fact: dict[str, Any],
    facts: dict[str, dict[str, Any]],
    archived: dict[str, dict[str, Any]],
    turns: dict[str, dict[str, Any]],
) -> None:
    for entry in fact["evidence"]:
        turn = turns[entry["turn"]]
        assert entry["quote"] in turn["text"], name
        assert turn["role"] == "user", name
        assert turn["saidAt"] == fact["saidAt"], name
    for older in fact.get("replaces", ()):
        assert archived[older]["saidAt"] < fact["saidAt"], name
        assert archived[older]["replacedBy"] == name, name
    assert fact.get("replacedBy", name) in facts | archived, name


def check_question(
    question: dict[str, Any],
    facts: dict[str, dict[str, Any]],
    archived: dict[str, dict[str, Any]],
    turns: dict[str, dict[str, Any]],
) -> None:
    name = question["question"]
    assert question["kind"] in KINDS, name
    assert question["evidence"], name
    assert list(question["answers"]) == question["evidence"], name
    for proof, sentence in question["answers"].items():
        assert sentence == facts[proof]["text"] if proof in facts else sentence in turns[proof]["text"], name
    if question["kind"] == "turns_only":
        quoted = [entry["quote"] for fact in facts.values() for entry in fact["evidence"]]
        assert all(quote not in sentence for sentence in question["answers"].values() for quote in quoted), name
    assert set(question.get("stale", ())) <= facts.keys() | archived.keys(), name
