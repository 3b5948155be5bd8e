"""`python -m benchmarks.ratios`: the ratios of a short run beside those of the last release, in under a minute.

python -m benchmarks.ratios                # make bench-short: the table
python -m benchmarks.ratios --gate         # make bench-gate: exit code 1 when a ratio is far worse than recorded

Only ratios to a peer that takes turns with memd in the same run are shown: they say something on any machine. The last
release's are those of results.json, which `make bench` wrote.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure
from benchmarks.sizes import BRIEF, Size

MODULES = ("cpu", "wire", "cost", "starts")
"""Those whose figures are CPU beside a peer's: rates of one connection say nothing on a busy machine."""

PEERS = ("python,",)
"""How the figures of others begin: nothing in memd changes their ratios."""

RATES = ("/s",)
"""Units of which more is better."""

WORSE = 4
"""A gate's bound: so many times worse than recorded. benchmarks/README.md has what ten runs on a busy machine gave."""

RECORDED = Path(__file__).parent / "results.json"


@dataclass(frozen=True, slots=True)
class Ratio:
    """One figure's ratio now and as recorded (None: it is new), and how many times worse it is (below 1: better)."""

    area: str
    what: str
    peer: str
    now: float
    then: float | None
    more_is_better: bool

    @property
    def worse(self) -> float | None:
        """None for a new one."""
        if self.then is None:
            return None
        return self.then / self.now if self.more_is_better else self.now / self.then


def main() -> int:
    """Measure, show the table; with --gate judge it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ratios", description=__doc__)
    parser.add_argument("--gate", action="store_true", help=f"fail where a ratio is over {WORSE} times worse")
    gate = parser.parse_args().gate
    began = time.monotonic()
    ratios = list(compared(list(measured(BRIEF)), json.loads(RECORDED.read_text(encoding="utf-8"))["figures"]))
    Console(width=max(110, Console().width)).print(table(ratios, time.monotonic() - began))
    late = [ratio for ratio in ratios if ratio.worse is not None and ratio.worse > WORSE]
    for ratio in late if gate else ():
        sys.stdout.write(f"{ratio.area}, {ratio.what}: {ratio.worse:.1f} times worse than recorded\n")
    return 1 if gate and late else 0


def measured(size: Size) -> Iterator[Figure]:
    """The figures with a peer."""
    for name in MODULES:
        for found in importlib.import_module(f"benchmarks.{name}").measure(size):
            if isinstance(found, Figure) and found.ratio and not found.what.startswith(PEERS):
                yield found


def compared(figures: Sequence[Figure], recorded: Sequence[dict[str, object]]) -> Iterator[Ratio]:
    """Each figure beside the one of the same name on record."""
    before = {(figure["area"], figure["what"]): figure["ratio"] for figure in recorded}
    for figure in figures:
        then = before.get((figure.area, figure.what))
        if figure.ratio:
            yield Ratio(
                figure.area,
                figure.what,
                figure.peer,
                figure.ratio,
                then if isinstance(then, float | int) else None,
                figure.unit in RATES,
            )


def table(ratios: Sequence[Ratio], seconds: float) -> Table:
    """The ratios, a line each."""
    shown = Table("what", "peer", "ratio", "last release", "times worse", title=f"{seconds:.0f} s")
    for column in shown.columns[2:]:
        column.justify = "right"
    for ratio in ratios:
        then, worse = ("–" if value is None else f"{value:.2f}" for value in (ratio.then, ratio.worse))
        shown.add_row(f"{ratio.area}: {ratio.what}", ratio.peer, f"{ratio.now:.2f}", then, worse)
    return shown


if __name__ == "__main__":
    sys.exit(main())
