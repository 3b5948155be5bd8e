"""docs/guarantees.md names its proofs: each test, file and command that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text()
PROMISES = PAGE.split("## The promises")[1].split("## Limits")[0]
CODE = frozenset(re.findall(r"`([^`\n]+)`", PAGE))
ROWS = [line for line in PROMISES.splitlines() if line.startswith("| **")]


def test_every_test_that_is_named_exists() -> None:
    """By file, or by function."""
    files = {path.name: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    known = {*files, *re.findall(r"^(?:async )?def (test_\w+)", "\n".join(files.values()), re.MULTILINE)}
    named = {name for name in CODE if name.startswith("test_")}
    assert named, "the page names tests"
    assert named - known == set()


def test_every_promise_names_its_proof() -> None:
    """A test or a command in the last column of each row."""
    assert len(ROWS) > 20
    assert [row for row in ROWS if not re.search(r"`(?:test_|make )[^`]+`", row.split(" | ")[-1])] == []


def test_every_path_and_command_that_is_named_exists() -> None:
    """Files and folders of the repository, and the Makefile's targets."""
    paths = {name for name in CODE if name.startswith(("tests/", "memd/", "docs/", "evaluation/", "benchmarks/"))}
    assert {name for name in paths if not (ROOT / name).exists()} == set()
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {name.removeprefix("make ") for name in CODE if name.startswith("make ")} - targets == set()
