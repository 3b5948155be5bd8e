"""Tests and searches that take long and rarely find anything, each within its share of ten minutes: `make test-long`.

PYTHONPATH=tests .venv/bin/python -m support.long           # the pages of docs/, new histories, requests and kills
PYTHONPATH=tests .venv/bin/python -m support.long --smoke   # seconds: each command starts and ends
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO

TESTS = Path(__file__).parents[1]
PYTEST = ["-m", "pytest", "-c", "../pyproject.toml", "--rootdir=..", "-p", "no:cacheprovider"]


@dataclass(frozen=True, slots=True)
class Search:
    """One search: the words of one round, which gets the seconds that are left, and the seconds of all rounds."""

    name: str
    words: Callable[[int], Sequence[str]]
    seconds: int
    rounds: bool = False
    """Whether rounds follow each other while there is time for one more; otherwise one round keeps to the seconds."""

    histories: int = 0
    """STATEFUL_EXAMPLES of a round."""


LONG = (
    Search("long tests", lambda _: [*PYTEST, "-m", "long", "-q", "-n", "3", "."], seconds=240),
    Search("histories", lambda _: [*PYTEST, "flow/test_stateful.py", "-q"], seconds=60, rounds=True, histories=40),
    Search("requests", lambda left: ["-m", "support.http_fuzz", "--seconds", str(left)], seconds=50),
    Search("slow texts", lambda left: ["-m", "support.slow_texts", "--seconds", str(left)], seconds=50),
    Search("forgettings", lambda left: ["-m", "support.forget_races", "--seconds", str(left)], seconds=40),
    Search("kills", lambda _: ["-m", "chaos", "long", "--shorten", "25"], seconds=120),
)
"""Nine minutes in all: a search may end late, on busy cores by a minute."""

GOT_WORSE = "unit/test_shipped.py::test_nothing_has_got_worse"

LINEAR = ["-m", "long", "-q", "unit/test_slow_texts.py", "-k", "a_stage_takes"]

SMOKE = (
    Search("evaluation", lambda _: [*PYTEST, "-m", "long", "-q", GOT_WORSE], seconds=0),
    Search("linear time", lambda _: [*PYTEST, *LINEAR], seconds=0),
    Search("browser", lambda _: [*PYTEST, "-m", "browser", "-q", "-rs", "-k", "smoke", "browser"], seconds=0),
    Search("requests", lambda _: ["-m", "support.http_fuzz", "--phases", "fuzzing", "--examples", "1"], seconds=0),
    Search("frameworks", lambda _: ["-m", "support.frameworks", "--smoke"], seconds=0),
    Search("PostgreSQL", lambda _: ["-m", "support.on_postgres", "--smoke"], seconds=0),
    Search("RQ 3, OpenTelemetry", lambda _: ["-m", "support.newest", "--smoke"], seconds=0),
    Search("TypeScript", lambda _: [*PYTEST, "-m", "long", "-q", "-rs", "doors/test_typescript.py"], seconds=0),
)
"""Without kills, histories and forgettings, which `make test` has some of. `make test-browser`,
`make test-store`, `make test-newest` and `make test-clients` do the rest of theirs."""

AT_ONCE = 2
"""So many searches of the smoke test run side by side; each one's output is printed when it has ended."""


def run(search: Search, output: IO[bytes] | None = None) -> bool:
    """All rounds of a search, and a line with its figures; whether it found nothing. The first finding ends it.

    `output` takes what the search prints, otherwise shown at once.
    """
    began, rounds, last = time.monotonic(), 0, 0.0
    found_nothing = True
    while found_nothing and (not rounds or (search.rounds and _left(search, began) >= last)):
        round_began = time.monotonic()
        words = [sys.executable, *search.words(max(1, int(_left(search, began))))]
        environ = {**os.environ, "PYTHONPATH": str(TESTS), "STATEFUL_EXAMPLES": str(search.histories)}
        ended = subprocess.run(words, cwd=TESTS, env=environ, stdout=output, stderr=output, check=False)
        found_nothing = ended.returncode == 0
        rounds, last = rounds + 1, time.monotonic() - round_began
    outcome = "nothing found" if found_nothing else "FOUND SOMETHING, see above"
    count = f"{rounds * search.histories} histories, " if search.histories else ""
    if output is not None:
        output.seek(0)
        sys.stdout.write(output.read().decode(errors="replace"))
    sys.stdout.write(f"== {search.name}: {outcome} ({count}{time.monotonic() - began:.0f} s)\n")
    sys.stdout.flush()
    return found_nothing


def run_beside(search: Search) -> bool:
    """The same with its output kept together, as others run at the same time."""
    with tempfile.TemporaryFile() as output:
        return run(search, output)


def _left(search: Search, began: float) -> float:
    return search.seconds - (time.monotonic() - began)


def _cpu_s() -> float:
    """The CPU seconds of the processes that this one has started and waited for, and of their own."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """All searches, whatever one finds; exit code 0 only when none found anything."""
    parser = argparse.ArgumentParser(prog="python -m support.long", description="Searches that take long.")
    parser.add_argument("--smoke", action="store_true", help="each search for a moment, to see that it works")
    searches = SMOKE if parser.parse_args().smoke else LONG
    began = time.monotonic()
    if searches is SMOKE:
        with ThreadPoolExecutor(AT_ONCE) as threads:
            quiet = list(threads.map(run_beside, searches))
    else:
        quiet = [run(search) for search in searches]
    sys.stdout.write(f"== all searches: {time.monotonic() - began:.0f} s, {_cpu_s():.0f} s of CPU\n")
    return 0 if all(quiet) else 1


if __name__ == "__main__":
    sys.exit(main())
