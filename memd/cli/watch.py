"""Watching: the figures of `memd status`, refreshed until the user quits."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Annotated

import typer

from memd.cli.common import echo, settings
from memd.cli.status import rows
from memd.cli.tables import lines
from memd.client import Memd
from memd.errors import AccountRefused, InboxUnavailable

Figures = list[tuple[str, str]]

BRIEF = ("server", "workers", "paused", "pending", "claimed", "stored", "dead")
"""The figures of a line, where there is no terminal to show all."""


def watch(
    every: Annotated[float, typer.Option("--every", min=0.1, max=3600, help="Seconds between two refreshes.")] = 1.0,
) -> None:
    """Watch the figures of the inbox live; q or Ctrl-C ends it.

    Without a terminal it prints a line at the start and at each change. When the server is away, it says so and goes on
    watching.

    Example: memd watch --every 5
    """
    with Memd(settings()) as memd, suppress(KeyboardInterrupt):
        if sys.stdout.isatty():
            _on_screen(memd, every)
        else:
            _as_lines(memd, every)


def _figures(memd: Memd) -> Figures:
    try:
        return list(rows(memd.status().as_dict()))
    except AccountRefused:  # only a person can fix it
        raise
    except InboxUnavailable as error:
        return [("server", str(error))]


def _as_lines(memd: Memd, every: float) -> None:
    before = ""
    while True:
        line = "; ".join(f"{name} {text}" for name, text in _figures(memd) if name in BRIEF)
        if line != before:
            echo(f"{datetime.now(UTC):%H:%M:%S}Z  {line}")
            sys.stdout.flush()
            before = line
        time.sleep(every)


def _on_screen(memd: Memd, every: float) -> None:
    from rich import live, text  # noqa: PLC0415  (90 ms, and only a terminal shows it)

    with _key_presses() as pressed, live.Live(screen=True, auto_refresh=False) as screen:
        while True:
            columns, height = shutil.get_terminal_size()
            head = ("memd", f"{datetime.now(UTC):%H:%M:%S} UTC; q ends")
            page = lines(head, _figures(memd), (), columns)[:height]
            screen.update(text.Text("\n".join(page)), refresh=True)
            if pressed(every) in {"q", "Q"}:
                return


@contextmanager
def _key_presses() -> Iterator[Callable[[float], str]]:
    """Yields a function that waits up to the given seconds for a key and returns it; "" when no key was pressed."""
    if not sys.stdin.isatty():
        yield _no_key
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)

    def pressed(seconds: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 1).decode(errors="replace") if ready else ""

    try:
        yield pressed
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _no_key(seconds: float) -> str:
    time.sleep(seconds)
    return ""
