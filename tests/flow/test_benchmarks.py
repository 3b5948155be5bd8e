"""The benchmarks run at all: tiny sizes, nothing timed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
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


FAILED_PEER = """
from benchmarks.peers.checked import check_succeeded, figures_of
from benchmarks.figures import Figure

def peer():
    check_succeeded("the peer's jobs", 1, 2)
    yield Figure("wire", "of failing jobs", 1.0, "/s")

def measure(size):
    yield from figures_of("wire", "the peer", peer())
"""
BREAKS = "def measure(size):\n    raise OSError('no such machine')\n    yield\n"


@pytest.mark.long
@pytest.mark.parametrize("module", [BREAKS, FAILED_PEER], ids=["breaks", "a-failing-peer"])
def test_what_failed_has_no_figure_and_the_exit_code_says_so(tmp_path: Path, module: str) -> None:
    """Neither a benchmark that breaks nor a peer whose work failed; the others' figures are still written."""
    (tmp_path / "wire.py").write_text(module)
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


@pytest.mark.long
def test_a_figure_of_failing_jobs_is_not_printed() -> None:
    """Of two real jobs of RQ one fails: what comes of the measurement is the reason, and no figure."""
    code = """
from rq import Queue
from benchmarks.drain import rq_drained
from benchmarks.figures import Figure
from benchmarks.ground import ground
from benchmarks.peers.checked import figures_of
from benchmarks.peers.rq_jobs import extract, nothing
from memd.inbox.connection import connect

def measured(place):
    queue = Queue("bench", connection=connect(place.settings))
    queue.enqueue(nothing, "", result_ttl=0)
    queue.enqueue(extract, "ana", "", result_ttl=0)  # it finds no model
    yield Figure("drain", "RQ", rq_drained(place, ["-m", "benchmarks.peers.rq_worker"], 2), "/s")

with ground() as place:
    for found in figures_of("drain", "RQ alone", measured(place)):
        print(type(found).__name__, found.reason)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.stdout == "Skip RQ's jobs: 1 of 2 succeeded (1 failed)\n", done.stderr


def test_the_model_of_the_benchmarks_answers_any_prompt() -> None:
    """memd's prompt and anybody else's: a complete reply with one fact that quotes what was asked."""
    code = """
import json
from benchmarks.played import answer
for prompt in ("I live in Porto.", "x\\n<messages>\\n<m 0>I like tea.</m>"):
    reply = json.loads(answer(json.dumps({"messages": [{"role": "user", "content": prompt}]}).encode()))
    print(reply["stop_reason"], json.loads(reply["content"][0]["text"])["newFacts"][0]["content"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "end_turn I live in Porto.\nend_turn I like tea.\n", done.stderr
