"""`python -m chaos`: one run, its table on stdout, its progress on stderr; exit code 0 only when it has passed."""

from __future__ import annotations

import argparse
import random
import sys
from dataclasses import replace
from pathlib import Path

from support import STORE
from support.databases import Missing

from chaos.plan import PRESETS, Plan, on_postgres, shortened
from chaos.run import chaos

MAX_SEED = 1_000_000


def main() -> int:
    """Read the options, run, print."""
    options = _options()
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(MAX_SEED)
    sys.stderr.write(f"chaos: {options.preset}, seed {seed}, store {STORE}\n")
    try:
        report = chaos(_plan(options, seed))
    except Missing as error:
        sys.stderr.write(f"make chaos STORE=postgres cannot run here: {error}\n")
        return 3
    sys.stdout.write(report.table() + "\n")
    if options.json is not None:
        report.write(options.json)
    return 0 if report.passed else 1


def _plan(options: argparse.Namespace, seed: int) -> Plan:
    plan = shortened(replace(PRESETS[options.preset](seed), appendfsync=options.appendfsync), options.shorten)
    return on_postgres(plan) if STORE == "postgres" else plan


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("preset", nargs="?", choices=sorted(PRESETS), default="gate", help="how big the run is")
    parser.add_argument("--seed", type=int, help="repeats the order of the kills; default: a new one, printed")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to this file as well")
    parser.add_argument("--shorten", type=int, default=1, metavar="N", help="an Nth of a long run's agents and time")
    fsync = "of the server; with everysec a killed server may lose its last acknowledged writes"
    parser.add_argument("--appendfsync", choices=("always", "everysec"), default="always", help=fsync)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
