"""Stopping: Ctrl-C ends a measurement between two steps, so what is measured can be reported."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any


def completes(work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
    """Run the work. False when Ctrl-C ended it.

    Each Ctrl-C cancels the work. A KeyboardInterrupt would rise inside a step, and asyncio prints it as its own error.
    """
    tasks: list[asyncio.Task[None]] = []
    asked: list[int] = []

    async def main() -> None:
        tasks.append(asyncio.create_task(work()))
        if asked:  # before the loop ran
            tasks[0].cancel()
        await asyncio.wait(tasks)

    def stop(number: int, _frame: object) -> None:
        asked.append(number)
        with suppress(RuntimeError):  # the loop is closed, so the work has ended
            for task in tasks:
                task.get_loop().call_soon_threadsafe(task.cancel)

    with _on_interrupt(stop):
        asyncio.run(main())
    if not tasks[0].cancelled():
        tasks[0].result()  # raises the error of the work
    return not asked


@contextmanager
def _on_interrupt(handler: Callable[[int, object], None]) -> Iterator[None]:
    """Handle SIGINT by this; outside the main thread, where no signal arrives, change nothing."""
    before = signal.getsignal(signal.SIGINT)
    with suppress(ValueError):
        signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        with suppress(ValueError):
            signal.signal(signal.SIGINT, before)
