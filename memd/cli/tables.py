"""Tables for people: on a terminal they fit its width; elsewhere each row is one whole line, for grep and awk."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any

from memd.cli.common import echo
from memd.printable import printable

UNBOUNDED = 100_000
"""Columns where no terminal limits them."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[str] = ()) -> None:
    """Print a table. `numbers`: the columns that are aligned to the right. Cells are made safe to print."""
    for line in lines(head, rows, numbers, width()):
        echo(line)


def width() -> int:
    """The columns of the terminal on standard output, or UNBOUNDED without a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else UNBOUNDED


def lines(head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[str], columns: int) -> list[str]:
    """The lines of a table, at most `columns` wide; long cells continue on the next line."""
    from rich import console, text  # noqa: PLC0415  (60 ms: most calls of a command print no table, or JSON)
    from rich.table import Table  # noqa: PLC0415  (as above)

    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    right = frozenset(numbers)
    for name in head:
        kind: Any = "right" if name in right else "left"
        grid.add_column(name, justify=kind, overflow="fold", header_style="")
    for row in rows:
        grid.add_row(*(text.Text(printable(cell)) for cell in row))
    paper = console.Console(width=columns, color_system=None, force_terminal=False, highlight=False)
    with paper.capture() as printed:
        paper.print(grid)
    return [line.rstrip() for line in printed.get().splitlines()]
