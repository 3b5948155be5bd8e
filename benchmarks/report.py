"""The reports of a run: a table on the terminal, JSON for scripts, RESULTS.md for readers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks import bars, plots
from benchmarks.figures import Figure, Results
from benchmarks.figures import Table as SideBySide
from benchmarks.machine import Machine

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


def show(area: str, results: Results, console: Console) -> None:
    """The tables of one area."""
    table = Table(title=area, box=box.SIMPLE, title_justify="left", title_style="bold")
    for name in COLUMNS:
        table.add_column(name, justify="left" if name in ("what", "peer", "") else "right")
    for figure in results.figures:
        style = "red" if figure.met is False else None
        table.add_row(*row(figure), style=style)
    console.print(table)
    for found in results.tables:
        side_by_side = Table(*found.columns, title=found.title, box=box.SIMPLE, title_justify="left")
        for cells in found.rows:
            side_by_side.add_row(*map(cell, cells))
        console.print(side_by_side)
    for skip in results.skips:
        console.print(f"  skipped: {skip.what}: {skip.reason}")


def write(folder: Path, machine: Machine, results: Results) -> None:
    """results.json, RESULTS.md and a file for each plot."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {
        "machine": machine.as_dict(),
        "figures": [figure.as_dict() for figure in results.figures],
        "tables": [{"name": one.name, "columns": one.columns, "rows": one.rows} for one in results.tables],
        "plots": [{"name": plot.name, "lines": plot.lines} for plot in results.plots],
        "skipped": [{"area": skip.area, "what": skip.what, "reason": skip.reason} for skip in results.skips],
    }
    (folder / "results.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    for plot in results.plots:
        (folder / f"{plot.name}.svg").write_text(plots.svg(plot), encoding="utf-8")
    for drawn in results.bars:
        (folder / f"{drawn.name}.svg").write_text(bars.svg(drawn), encoding="utf-8")
    (folder / "RESULTS.md").write_text(markdown(machine, results), encoding="utf-8")


def markdown(machine: Machine, results: Results) -> str:
    """The text of RESULTS.md: written by the run, never by hand."""
    judged = [figure for figure in results.figures if figure.met is not None]
    met = sum(bool(figure.met) for figure in judged)
    lines = [
        "# Results",
        *(part for drawn in results.bars for part in ("", f"![{drawn.title}]({drawn.name}.svg)")),
        "",
        f"Written by `{machine.command}` on {machine.date}; do not edit. {met} of {len(judged)} targets met.",
        "",
        *(f"* {name}: {value}" for name, value in machine.lines()),
        "",
        "Contestants take turns within one run, so ratios count more than absolute figures. Medians of the turns.",
        *(line for found in results.tables for line in _side_by_side(found)),
    ]
    for area, group in groupby(results.figures, key=lambda figure: figure.area):
        lines += ["", f"## {area}", "", "| " + " | ".join(COLUMNS) + " |", "|---|---:|---:|---|---:|---:|---|"]
        for figure in group:
            lines.append(_line((*row(figure)[:-1], "; ".join(filter(None, (row(figure)[-1], figure.remark))))))
    lines += [part for plot in results.plots for part in ("", f"![{plot.title}]({plot.name}.svg)")]
    if results.skips:
        lines += ["", "## Not measured", "", *(f"* {skip.area}, {skip.what}: {skip.reason}" for skip in results.skips)]
    return "\n".join(lines) + "\n"


def cell(value: str | float) -> str:
    """A cell of a table of contestants."""
    return value if isinstance(value, str) else number(value)


def _side_by_side(found: SideBySide) -> Iterator[str]:
    """A table of contestants: figures to the right."""
    yield from ("", f"## {found.title}", "", _line(found.columns))
    yield "|" + "|".join("---" if isinstance(value, str) else "---:" for value in found.rows[0]) + "|"
    yield from (_line(tuple(map(cell, cells))) for cells in found.rows)
    yield from ("", found.note)


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(each.replace("|", "\\|") for each in cells) + " |"
