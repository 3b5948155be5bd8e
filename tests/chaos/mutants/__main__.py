"""`python -m chaos.mutants`: each seeded bug must be caught; exit code 0 only when all are."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from support import STORE

from chaos.fleet import TESTS
from chaos.mutants import seeding
from chaos.mutants.bugs import BUGS, Bug
from chaos.plan import Plan
from chaos.report import Report
from chaos.run import chaos

TRIES = 3
"""Runs for one bug, each with another seed: a run can miss the moment that shows the bug."""

FAILED = 1
"""pytest's exit code for tests that ran and failed."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    caught_by: str
    seconds: float
    good: bool


def main() -> int:
    """Check the edits, run without a bug, run with each."""
    options = _options()
    chosen = [bug for bug in BUGS if STORE in bug.stores and options.only in bug.name]
    for bug in chosen:
        seeding.check(bug)
    sys.stderr.write(f"chaos-mutants: seed {options.seed}, store {STORE}\n")
    controls = [] if options.no_control else _controls(chosen)
    rows = [_timed(name, control, options.seed) for name, control in controls]
    rows += [_timed(bug.name, _catcher(bug), options.seed) for bug in chosen]
    width = max(len(row.name) for row in rows)
    for row in rows:
        sys.stdout.write(f"{row.name:<{width}}  {row.seconds:4.0f} s  {row.caught_by}\n")
    caught = sum(row.good for row in rows[len(controls) :])
    sys.stdout.write(f"{caught} of {len(chosen)} caught\n")
    return 0 if all(row.good for row in rows) else 1


Attempt = Callable[[int], tuple[str, bool]]
"""Run with a seed; returns the finding in words, and whether it is the expected one."""


def _timed(name: str, attempt: Attempt, seed: int) -> Row:
    sys.stderr.write(f"{name} ...\n")
    start = time.monotonic()
    found, good = "", False
    for number in range(TRIES):
        found, good = attempt(seed + number)
        if good:
            break
    return Row(name, found, time.monotonic() - start, good)


def _controls(bugs: list[Bug]) -> list[tuple[str, Attempt]]:
    """The same runs and tests without a bug; if they fail, catching a bug proves nothing."""
    plans = dict.fromkeys(bug.plan for bug in bugs if bug.plan is not None)
    tests = dict.fromkeys(bug.test for bug in bugs if bug.test)
    return [
        *((f"(no bug, {plan.__name__})", _passing_run(plan)) for plan in plans),
        *((f"(no bug, {test.rpartition('::')[2]})", _passing_test(test)) for test in tests),
    ]


def _passing_run(plan: Callable[[int], Plan]) -> Attempt:
    def attempt(seed: int) -> tuple[str, bool]:
        report = chaos(plan(seed), quiet=True)
        return ("passes" if report.passed else "; ".join(report.failures)), report.passed

    return attempt


def _passing_test(test: str) -> Attempt:
    def attempt(_seed: int) -> tuple[str, bool]:
        code = _pytest(test, {})
        return ("passes" if code == 0 else f"pytest ends with {code}"), code == 0

    return attempt


def _catcher(bug: Bug) -> Attempt:
    plan = bug.plan
    environment = seeding.environment(bug, TESTS)

    def run(seed: int) -> tuple[str, bool]:
        assert plan is not None
        report = chaos(plan(seed), bug=bug.name, extra=environment, quiet=True)
        caught = [words for figure in bug.figures if (words := _shows(report, figure))]
        return ", ".join(caught) or f"NOT caught ({'; '.join(report.failures) or 'the run passed'})", bool(caught)

    def test(_seed: int) -> tuple[str, bool]:
        code = _pytest(bug.test, environment)
        return (bug.test if code == FAILED else f"NOT caught (pytest ends with {code})"), code == FAILED

    return test if plan is None else run


def _shows(report: Report, figure: str) -> str:
    """The figure in words when it is wrong, else an empty text."""
    if figure == "drain":
        return "chaos run: never drained" if report.drain_s is None else ""
    if figure == "late":
        return "chaos run: drained too late" if report.is_late else ""
    return f"chaos run: {figure.replace('_', ' ')} {report.zeros[figure]:,}" if report.zeros[figure] else ""


def _pytest(test: str, extra: dict[str, str]) -> int:
    """The exit code of one test."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not browser", str(TESTS / test)]
    return subprocess.run(
        command, env={**os.environ, **extra}, cwd=TESTS.parent, capture_output=True, check=False
    ).returncode


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--only", metavar="WORDS", default="", help="only bugs whose name contains these words")
    parser.add_argument("--no-control", action="store_true", help="leave out the runs without a bug")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
