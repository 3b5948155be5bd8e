"""The benchmarks run at all: tiny sizes, nothing timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_a_tiny_run_says_what_it_measured(tmp_path: Path) -> None:
    """Figures with peers, ratios and targets, in JSON and in words, and a plot for growth."""
    words = ["-m", "benchmarks", "wire", "growth", "tokens", "--size", "tiny", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert {figure["area"] for figure in found["figures"]} == {"wire", "growth", "tokens"}
    assert all(figure["value"] > 0 for figure in found["figures"])
    pushes = [figure for figure in found["figures"] if figure["what"].startswith("memd_push")]
    assert pushes
    assert all(one["ratio"] and one["target"] and one["met"] in (True, False) for one in pushes)
    assert (tmp_path / "growth.svg").read_text(encoding="utf-8").startswith("<svg")
    told = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert "## wire" in told
    assert "memd_push, 10 KB" in told
    assert found["machine"]["cores"] > 0


def test_every_module_of_a_run_can_be_measured() -> None:
    """What `make bench` goes through is there, and takes a size."""
    code = (
        "import importlib, inspect; from benchmarks.__main__ import MODULES\n"
        "for name in MODULES:\n"
        "    assert len(inspect.signature(importlib.import_module(f'benchmarks.{name}').measure).parameters) == 1, name"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_benchmark_that_breaks_is_told_and_the_exit_code_says_so(tmp_path: Path) -> None:
    """The others' figures are still written."""
    (tmp_path / "wire.py").write_text("def measure(size):\n    raise OSError('no such machine')\n    yield\n")
    code = (
        "import sys, benchmarks; benchmarks.__path__.insert(0, sys.argv[1]); from benchmarks.__main__ import main;"
        "sys.argv = ['benchmarks', 'wire', 'tokens', '--out', sys.argv[2]]; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), str(tmp_path / "out")],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    found = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    assert [skip["area"] for skip in found["skipped"]] == ["wire"]
    assert {figure["area"] for figure in found["figures"]} == {"tokens"}
