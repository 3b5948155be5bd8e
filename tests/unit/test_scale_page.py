"""docs/scale.md has the tables that its command prints, from figures of a run that is kept beside the benchmarks."""

from __future__ import annotations

import subprocess
import sys

from support import ROOT


def test_the_tables_of_the_page_are_those_of_its_command() -> None:
    """As `python -m benchmarks.needs` prints them; with numbers of one's own it counts anew."""
    printed = [_needs(), _needs("50000", "--contexts", "7")]
    assert printed[0] in (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
    assert "| contexts a day | users × contexts | 350 K |" in printed[1]


def _needs(*words: str) -> str:
    command = [sys.executable, "-m", "benchmarks.needs", *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
