"""Bars: what takes longer than a second shows on a terminal that it goes on, on stderr; anywhere else it is silent."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

PATIENCE_S = 1.0


@contextmanager
def bar(what: str, total: int | None = None) -> Iterator[Callable[[], None]]:
    """Show a bar from the first second on; yields the function that notes one more of `total` (None: not known)."""
    if not sys.stderr.isatty():
        yield _ignore
        return
    shown = _Bar(what, total)
    timer = threading.Timer(PATIENCE_S, shown.start)
    timer.daemon = True
    timer.start()
    try:
        yield shown.advance
    finally:
        timer.cancel()
        shown.stop()


def _ignore() -> None:
    """Nobody looks."""


class _Bar:
    """A bar that may never be shown. A thread starts it, and another one ends it."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._total, self._done = what, total, 0
        self._lock = threading.Lock()
        self._ended = False
        self._progress: Any = None
        self._task: Any = None

    def start(self) -> None:
        """Show it, unless all is done by now."""
        from rich import console, progress  # noqa: PLC0415  (90 ms, and only what takes long shows a bar)

        with self._lock:
            if not self._ended:
                self._progress = progress.Progress(console=console.Console(stderr=True), transient=True)
                self._task = self._progress.add_task(self._what, total=self._total, completed=self._done)
                self._progress.start()

    def advance(self) -> None:
        """One more is done."""
        self._done += 1
        if self._progress is not None:
            self._progress.update(self._task, completed=self._done)

    def stop(self) -> None:
        """Take it away."""
        with self._lock:
            self._ended = True
            if self._progress is not None:
                self._progress.stop()
