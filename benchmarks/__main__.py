"""`python -m benchmarks`: measure, show the figures, and write them to files."""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import traceback
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from benchmarks import report
from benchmarks.figures import Results, Skip
from benchmarks.machine import examine, share_of_a_core
from benchmarks.sizes import SIZES, Size

MODULES = (
    "push",
    "cpu",
    "wire",
    "intake",
    "growth",
    "debounce",
    "drain",
    "contest",
    "cost",
    "memory",
    "tokens",
    "texts",
    "reading",
    "store_growth",
    "sessions",
    "starts",
)
"""In the order of the flow. Each has `measure(size)`, which yields figures, plots and skips."""


def main() -> int:
    """Run the chosen modules; returns 1 when one of them broke or a peer's work failed."""
    options = _options()
    console = Console(width=max(150, Console().width))
    whole_run = options.size == "short" and not options.modules
    words = ["python -m benchmarks", *options.modules, f"--size {options.size}"]
    machine = examine("make bench" if whole_run else " ".join(words))
    results = Results()
    broken = 0
    for name in options.modules or MODULES:
        started = time.monotonic()
        own, whole = _measured(name, SIZES[options.size])
        broken += not whole
        report.show(f"{name} ({time.monotonic() - started:.0f} s)", own, console)
        results.extend(own)
    machine = replace(machine, share=f"{machine.share} before and {share_of_a_core():.0%} after it")
    if options.out:
        report.write(options.out, machine, results)
    return 1 if broken else 0


def _measured(name: str, size: Size) -> tuple[Results, bool]:
    """The results of one module, and whether all of it worked; prints the traceback of a module that breaks."""
    results = Results()
    try:
        for found in importlib.import_module(f"benchmarks.{name}").measure(size):
            results.add(found)
    except Exception as error:  # noqa: BLE001  (the other modules still run; the exit code tells)
        traceback.print_exc()
        results.add(Skip(name, "the rest of it", f"broke: {type(error).__name__}: {error}", failed=True))
    return results, not any(skip.failed for skip in results.skips)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("modules", nargs="*", help=f"what to measure; by default all: {', '.join(MODULES)}")
    parser.add_argument("--size", choices=sorted(SIZES), default="short", help="tiny, short (default) or full")
    parser.add_argument("--out", type=Path, help="folder for RESULTS.md, results.json and the plots")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
