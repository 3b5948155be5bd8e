"""Repeated runs of the tests, on idle and on busy cores: `make test-repeat`. Every run must pass.

PYTHONPATH=tests .venv/bin/python -m support.repeat --timing 5 --timing-busy 2 --whole 0 --whole-busy 0
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TESTS = Path(__file__).parents[1]
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+)", re.MULTILINE)


@contextmanager
def busy_cores() -> Iterator[None]:
    """One endless loop for each core, while the block runs."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def run_once(*words: str) -> tuple[int, list[str], str]:
    """One run of pytest: its exit code, the tests that failed with their first words, its last line."""
    command = [sys.executable, "-m", "pytest", "-c", "../pyproject.toml", "--rootdir=..", "-p", "no:cacheprovider"]
    wide = {**os.environ, "COLUMNS": "300"}  # pytest cuts the reason of a failure at the width of the terminal
    done = subprocess.run(
        [*command, "-n", "4", *words], cwd=TESTS, env=wide, capture_output=True, text=True, check=False
    )
    lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or [""]
    return done.returncode, _FAILED.findall(done.stdout), lines[-1]


def repeat(name: str, times: int, words: list[str], *, busy: bool) -> int:
    """Run the same tests so many times; the number of runs that failed."""
    failed = 0
    for number in range(times):
        began = time.monotonic()
        if busy:
            with busy_cores():
                code, names, last = run_once(*words)
        else:
            code, names, last = run_once(*words)
        failed += code != 0
        cores = "busy cores" if busy else "free cores"
        sys.stdout.write(f"{name} {number + 1} of {times}, {cores}, {time.monotonic() - began:.0f} s: {last}\n")
        sys.stdout.writelines(f"  failed: {test}\n" for test in names)
        sys.stdout.flush()
    return failed


def main() -> int:
    """All runs, whatever fails meanwhile; exit code 0 only when all have passed."""
    parser = argparse.ArgumentParser(prog="python -m support.repeat", description="Run the tests repeatedly.")
    parser.add_argument("--timing", type=int, default=15, help="runs of the tests marked `timing`, on free cores")
    parser.add_argument("--timing-busy", type=int, default=5, help="the same with every core busy")
    parser.add_argument("--whole", type=int, default=2, help="runs of all tests, on free cores")
    parser.add_argument("--whole-busy", type=int, default=1, help="the same with every core busy")
    options = parser.parse_args()
    timing = ["-m", "timing and not long", "."]
    failed = repeat("timing", options.timing, timing, busy=False)
    failed += repeat("timing", options.timing_busy, timing, busy=True)
    failed += repeat("whole", options.whole, ["."], busy=False)
    failed += repeat("whole", options.whole_busy, ["."], busy=True)
    sys.stdout.write(f"{failed} runs failed\n" if failed else "every run passed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
