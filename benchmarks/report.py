"""The reports of a run: a table on the terminal, JSON for scripts, RESULTS.md for readers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.figures import Figure, Plot, Skip
from benchmarks.machine import Machine
from benchmarks.plots import svg

COLUMNS = ("what", "median", "least … most", "peer", "ratio", "target", "")


def number(value: float) -> str:
    """A value with three significant digits and thousands separators."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def row(figure: Figure) -> tuple[str, ...]:
    """A figure as the cells of its row."""
    span = "" if figure.spread is None else " … ".join(map(number, figure.spread))
    peer = f"{figure.peer}: {number(figure.peer_value)}" if figure.peer_value is not None else figure.peer
    ratio = "" if figure.ratio is None else f"{figure.ratio:.2f} ×"
    verdict = {None: "", True: "met", False: "MISSED"}[figure.met]
    return (
        figure.what,
        f"{number(figure.value)} {figure.unit}".strip(),
        span,
        peer,
        ratio,
        "" if figure.target is None else str(figure.target),
        verdict,
    )


def show(area: str, figures: Sequence[Figure], skips: Sequence[Skip], console: Console) -> None:
    """The table of one area."""
    table = Table(title=area, box=box.SIMPLE, title_justify="left", title_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("what", "peer", "") else "right")
    for figure in figures:
        style = "red" if figure.met is False else None
        table.add_row(*row(figure), style=style)
    console.print(table)
    for skip in skips:
        console.print(f"  skipped: {skip.what}: {skip.reason}")


def write(
    folder: Path, machine: Machine, figures: Sequence[Figure], plots: Sequence[Plot], skips: Sequence[Skip]
) -> None:
    """results.json, RESULTS.md and a file for each plot."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": machine.as_dict(),
        "figures": [figure.as_dict() for figure in figures],
        "plots": [{"name": plot.name, "lines": plot.lines} for plot in plots],
        "skipped": [{"area": skip.area, "what": skip.what, "reason": skip.reason} for skip in skips],
    }
    (folder / "results.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for plot in plots:
        (folder / f"{plot.name}.svg").write_text(svg(plot), encoding="utf-8")
    (folder / "RESULTS.md").write_text(markdown(machine, figures, plots, skips), encoding="utf-8")


def markdown(machine: Machine, figures: Sequence[Figure], plots: Sequence[Plot], skips: Sequence[Skip]) -> str:
    """The text of RESULTS.md: written by the run, never by hand."""
    judged = [figure for figure in figures if figure.met is not None]
    met = sum(bool(figure.met) for figure in judged)
    lines = [
        "# Results",
        "",
        f"Written by `{machine.command}` on {machine.date}; do not edit. {met} of {len(judged)} targets met.",
        "",
        *(f"* {name}: {value}" for name, value in machine.lines()),
        "",
        "Contestants take turns within one run, so ratios count more than absolute figures. Medians of the turns.",
    ]
    for area, group in groupby(figures, key=lambda figure: figure.area):
        lines += ["", f"## {area}", "", "| " + " | ".join(COLUMNS) + " |", "|---|---:|---:|---|---:|---:|---|"]
        for figure in group:
            cells = (*row(figure)[:-1], "; ".join(filter(None, (row(figure)[-1], figure.remark))))
            lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    lines += [part for plot in plots for part in ("", f"![{plot.title}]({plot.name}.svg)")]
    if skips:
        lines += ["", "## Not measured", "", *(f"* {skip.area}, {skip.what}: {skip.reason}" for skip in skips)]
    return "\n".join(lines) + "\n"
