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
    """Figures with peers, ratios and targets, in JSON and in words, and plots for growth."""
    words = ["-m", "benchmarks", "wire", "growth", "store_growth", "tokens", "--size", "tiny", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    assert {figure["area"] for figure in found["figures"]} == {"wire", "growth", "store growth", "tokens"}
    assert all(figure["value"] > 0 for figure in found["figures"])
    pushes = [figure for figure in found["figures"] if figure["what"].startswith("memd_push")]
    assert pushes
    assert all(one["ratio"] and one["target"] and one["met"] in (True, False) for one in pushes)
    for name in ("growth", "growth_by_facts", "growth_by_users"):
        assert (tmp_path / f"{name}.svg").read_text(encoding="utf-8").startswith("<svg")
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


def test_each_peer_gets_the_fact_in_its_own_form_and_what_it_keeps_is_counted(tmp_path: Path) -> None:
    """A tool call, mem0's JSON; of three facts one lost, one doubled, one made up; the report begins with the plot."""
    code = """
import json, sys
from pathlib import Path
from benchmarks import contest, report
from benchmarks.figures import Results
from benchmarks.machine import examine
from benchmarks.model import prompt_tokens
from benchmarks.played import answer, first_words

said = contest.said(3)
words = [one["messages"][0]["content"] for one in said]
def asked(prompt, **more):
    request = json.dumps({"messages": [{"role": "user", "content": prompt}], **more}).encode()
    assert prompt_tokens(request)[1] > 30
    return json.loads(answer(request))["content"][0]
fact = first_words(words[0])
marked = {"type": "text", "text": "x" * 100, "cache_control": {"type": "ephemeral"}}
assert prompt_tokens(json.dumps({"system": [marked], "messages": []}).encode()) == (30, 0, True)
assert asked("Remember: " + words[0], tools=[{"name": "Memory"}])["input"] == {"content": fact}
told = asked("## Existing Memories\\n[]\\n\\n## New Messages\\nuser: " + words[0])["text"]
assert [each["text"] for each in json.loads(told)["memory"]] == [fact]
kept = {"user-0": [fact, fact], "user-1": ["other"], "user-2": [first_words(words[2])]}
assert contest.judged(said, kept) == (1, 1, 1)

results = Results()
one = contest.Contender("memd <1>", "1", 256, 70.0, 5.0, 160.0, 1, 3188, 2809, 3, 1, 1, 1, "files")
for found in (contest.bars([one]), contest.table([one])):
    results.add(found)
report.write(Path(sys.argv[1]), examine("test"), results)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = (tmp_path / "RESULTS.md").read_text(encoding="utf-8")
    assert told.startswith("# Results\n\n![memd and its peers")
    assert "| memd <1> | 1 | 256 | 70 | 5 | 160 | 1 | 3,188 | 2,809 | 2 of 3 | 1 | 2 | files |" in told
    assert "memd &lt;1&gt;" in (tmp_path / "peers.svg").read_text(encoding="utf-8")
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["tables"][0]["rows"][0][0] == "memd <1>"


def test_a_peer_that_fails_ends_nothing() -> None:
    """One is not installed, one takes too long, one prints no result: each is named with its reason."""
    code = """
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from benchmarks.peers import checked

def measured(script, text, timeout_s):
    (Path(folder) / "bin" / "python").write_text(f"#!/bin/sh\\n{text}\\n")
    checked.run("", script=script, timeout_s=timeout_s)
    yield from ()

with TemporaryDirectory() as folder:
    checked.FOLDER = Path(folder)
    try:
        checked.run("nobody")
    except checked.NotInstalled as error:
        print(error)
    (Path(folder) / "bin").mkdir()
    (Path(folder) / "bin" / "python").touch(0o755)
    for text in ("exec sleep 60", "echo no json", "echo broken >&2; exit 3"):
        for found in checked.figures_of("peers", "x", measured("x", text, 0.3 if "sleep" in text else 30)):
            print(found.reason, found.failed)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "nobody is not installed (make bench-peers)",
        "not within 0.3 s:  has done its work True",
        " printed no result True",
        " failed: ['broken'] True",
    ], done.stderr


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
