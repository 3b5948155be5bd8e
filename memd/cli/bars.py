"""Bars: work that takes longer than a second shows its progress on stderr, if that is a terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

PATIENCE_S = 1.0


@contextmanager
def bar(what: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show a bar after the first second. Yields the function that advances it by one of `total` (None: unknown).

    Called with a count, it moves the bar there, and with a second number it also changes the total.
    """
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


class Bars:
    """The bars of work in several steps, one after the other."""

    def __enter__(self) -> Bars:
        self._shown = ExitStack()
        return self

    def __exit__(self, *_: object) -> None:
        self._shown.close()

    def step(self, what: str) -> Callable[..., None]:
        """Begin a step; returns what advances its bar (see `bar`)."""
        self._shown.close()
        return self._shown.enter_context(bar(what))


def _ignore(_done: int | None = None, _total: int | None = None) -> None:
    """No terminal, so no bar."""


class _Bar:
    """A bar that may never be shown. A timer's thread starts it, and the caller's thread stops it."""

    def __init__(self, what: str, total: int | None) -> None:
        self._what, self._total, self._done = what, total, 0
        self._lock = threading.Lock()
        self._ended = False
        self._progress: Any = None
        self._task: Any = None

    def start(self) -> None:
        """Show the bar, unless the work has ended."""
        from rich import console, progress  # noqa: PLC0415  (90 ms, and only long work shows a bar)

        with self._lock:
            if not self._ended:
                self._progress = progress.Progress(console=console.Console(stderr=True), transient=True)
                self._task = self._progress.add_task(self._what, total=self._total, completed=self._done)
                self._progress.start()

    def advance(self, done: int | None = None, total: int | None = None) -> None:
        """Advance by one, or to a count, of another total."""
        self._done = self._done + 1 if done is None else done
        self._total = self._total if total is None else total
        if self._progress is not None:
            self._progress.update(self._task, completed=self._done, total=self._total)

    def stop(self) -> None:
        """Remove the bar."""
        with self._lock:
            self._ended = True
            if self._progress is not None:
                self._progress.stop()
