"""The evaluation of projects: what it plays, what it counts, and that it can find something."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from memd.evaluation.lines import BadLabels
from memd.evaluation.of_projects import FIGURES, markdown, measure_projects

SHIPPED = Path(__file__).parents[2] / "evaluation" / "projects"


def line(**changes: Any) -> dict[str, Any]:
    return {
        "project": "p", "language": "en", "members": {"ana": "owner", "ben": "editor"}, "leave": [],
        "sessions": [{
            "user": "ana", "thread": "t", "messages": [{"text": "We write it in Go.", "marked": True}],
            "facts": [{"content": "The project is written in Go.", "message": 0, "quote": "We write it in Go",
                       "category": "decision", "scope": "project"}],
        }],
        "shared": [["in go"]], "secret": [{"of": "ana", "terms": ["asthma"]}], "disputes": [], **changes,
    }  # fmt: skip


def measured(tmp_path: Path, *lines: dict[str, Any]) -> dict[str, list[int]]:
    file = tmp_path / "projects.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    return measure_projects([file])["open"]


def test_nothing_private_is_published_or_seen_and_nothing_shared_is_missing() -> None:
    """The shipped projects, both halves."""
    for figures in measure_projects([SHIPPED]).values():
        for name, (hits, cases) in figures.items():
            assert hits == (cases if FIGURES[name].more else 0), name
            assert cases


def test_each_figure_can_be_wrong(tmp_path: Path) -> None:
    """What is missing, published, seen and undisputed is counted as that."""
    good = measured(tmp_path, line())
    assert good == {"shared": [1, 1], "published": [0, 1], "disputes": [0, 0], "seen": [0, 3]}
    bad = measured(
        tmp_path,
        line(shared=[["in rust"]], secret=[{"of": "ana", "terms": ["in go"]}], disputes=[["in go", "in rust"]]),
    )
    assert bad["shared"] == [0, 1]
    assert bad["published"] == [1, 1]
    assert bad["disputes"] == [0, 1]
    assert bad["seen"][0] == 1  # ben reads it; the stranger does not


def test_the_table_has_every_figure(tmp_path: Path) -> None:
    """With both parts, also where one has no case."""
    file = tmp_path / "projects.jsonl"
    file.write_text(json.dumps(line()), encoding="utf-8")
    shown = "\n".join(markdown(measure_projects([file])))
    assert all(f"`{name}`" in shown for name in FIGURES)
    with pytest.raises(BadLabels):
        measured(tmp_path, line(members=[]))
