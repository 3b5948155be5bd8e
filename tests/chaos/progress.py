"""The progress of a run on stderr: a bar on a terminal, else a line every few seconds."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LINE_EVERY_S = 5.0
LOOK_EVERY_S = 0.25


class Display:
    """Shows a count of contexts and a line of text."""

    def __init__(self, total: int, *, quiet: bool = False) -> None:
        self._total = total
        self._quiet = quiet
        self._start = time.monotonic()
        self._next_line = self._next_look = 0.0
        self._bar: Progress | None = None
        if sys.stderr.isatty() and not quiet:
            columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
            self._bar = Progress(*columns, console=Console(stderr=True))
            self._task = self._bar.add_task("starting", total=total)

    @property
    def wanted(self) -> bool:
        """Whether the next display is due."""
        now = time.monotonic()
        if self._quiet or now < self._next_look:
            return False
        self._next_look = now + LOOK_EVERY_S
        return True

    def show(self, done: int, words: str, *, now: bool = False) -> None:
        """Show the progress. `now`: at once, even if the next line is not due."""
        if self._quiet:
            return
        if self._bar is not None:
            self._bar.update(self._task, completed=done, description=words)
            return
        elapsed = time.monotonic() - self._start
        if now or elapsed >= self._next_line:
            self._next_line = elapsed + LINE_EVERY_S
            sys.stderr.write(f"{elapsed:5.0f} s  {done:,} of {self._total:,}  {words}\n")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
