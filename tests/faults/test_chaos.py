"""The chaos run can fail: what it compares, and the seeded bugs. `make chaos`, part of `make test`, runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from chaos import load
from chaos.compare import Findings, compare
from chaos.mutants import seeding
from chaos.mutants.bugs import BUGS, LUA, Bug, Edit
from chaos.mutants.hook.sitecustomize import UNSEEDED
from chaos.plan import Plan, small

from memd.context import Bucket, Message, identify, of_project
from memd.memory import ledger
from memd.memory.document import Document, empty_document

PLAN = replace(small(seed=1), contexts=40, users=2, threads=2)


def documents(plan: Plan) -> dict[Bucket, Document]:
    """The documents that a run of this plan must end with."""
    projects = [of_project(load.project(index)) for index in range(plan.projects)]
    made = {bucket: empty_document(bucket) for bucket in projects}
    for number in range(plan.contexts):
        turn = load.turn(plan, number)
        document = made.setdefault(turn.bucket, empty_document(turn.bucket))
        if mark := load.mark(plan, number):
            made[of_project(mark)]["facts"].append({"content": turn.statement, "createdBy": turn.bucket.user_id})
        else:
            document["facts"].append({"content": turn.statement})
        messages = identify(turn.thread, [Message("user", turn.statement, turn.messages[0]["id"])])
        replies = identify(turn.thread, [*messages, Message("assistant", turn.messages[1]["content"])])
        document["ledger"] = ledger.taken(document["ledger"], turn.thread, (m.identity for m in replies), 1000)
    return made


def found(made: dict[Bucket, Document]) -> Findings:
    """What a comparison finds in these documents."""
    return compare(PLAN, range(PLAN.contexts), lambda bucket: made[bucket])


def test_documents_as_they_must_be_have_no_findings() -> None:
    """Everything is stored and nothing is wrong."""
    assert found(documents(PLAN)) == Findings(stored=40)


def _lose(mine: Document, _other: Document) -> None:
    mine["facts"].pop()


def _repeat(mine: Document, _other: Document) -> None:
    mine["facts"].append(mine["facts"][-1])


def _confirm(mine: Document, _other: Document) -> None:
    mine["facts"][0]["confirmations"] = 1


def _swap(mine: Document, _other: Document) -> None:
    mine["facts"].reverse()


def _mix_up(mine: Document, other: Document) -> None:
    mine["facts"].append(other["facts"][0])


def _invent(mine: Document, _other: Document) -> None:
    mine["facts"].append({"content": "The user likes tea."})


def _share(_mine: Document, other: Document) -> None:
    other["facts"].append({"content": load.turn(PLAN, 3).statement})  # a project's, in its user's own memory


def _forget(mine: Document, _other: Document) -> None:
    mine["ledger"]["thread-0"].pop()


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (_lose, "lost"),
        (_repeat, "twice"),
        (_confirm, "twice"),
        (_swap, "out_of_order"),
        (_mix_up, "wrong_user"),
        (_invent, "foreign"),
        (_forget, "ledger"),
        (_share, "wrong_document"),
    ],
)
def test_the_comparison_finds(damage: Callable[[Document, Document], None], kind: str) -> None:
    """Each kind of damage to one document is counted as what it is."""
    made = documents(PLAN)
    damage(made[Bucket("user-0")], made[Bucket("user-1")])
    findings = found(made)
    assert getattr(findings, kind) > 0
    assert set(findings.examples) == {kind}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name.replace(" ", "-"))
def test_every_seeded_bug_fits_the_code(bug: Bug) -> None:
    """The text that it changes stands in the code, and so does the test that catches it: else nothing would."""
    seeding.check(bug)
    if bug.test:
        file, _, name = bug.test.partition("::")
        assert f"def {name.partition('[')[0]}(" in (Path(__file__).parents[1] / file).read_text()


@pytest.mark.parametrize("file", ["memd/memory/store/json_store.py", f"{LUA}settle.lua"])
def test_an_edit_that_does_not_fit_is_refused(file: str) -> None:
    """An edit that finds nothing to change raises, and so does one that finds it twice."""
    for old in ("this stands nowhere", "e"):
        with pytest.raises(seeding.Stale):
            seeding.check(Bug("stale", (Edit(file, old, ""),)))


def test_a_process_whose_bug_cannot_be_seeded_ends() -> None:
    """It does not run on as if the bug were there."""
    paths = os.pathsep.join((str(seeding.HOOK), str(Path(__file__).parents[1])))
    env = {**os.environ, "PYTHONPATH": paths, seeding.VARIABLE: "no such bug"}
    done = subprocess.run([sys.executable, "-c", "import memd"], env=env, capture_output=True, check=False)
    assert done.returncode == UNSEEDED
    assert b"no bug is named" in done.stderr
