"""The demo: starts a daemon of its own, pushes the shipped conversations, and prints the memory of each user."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

import orjson
import typer

from memd import config
from memd.client import Memd
from memd.config import Settings, as_environment
from memd.errors import InboxUnavailable, MemdError
from memd.extraction import chosen
from memd.inbox import library
from memd.inbox.connection import connect
from memd.inbox.figures import workers_listening
from memd.inbox.flush import FlushProgress
from memd.printable import counted
from memd.recall.view import view

READY_S = 15.0
END_S = 120.0


def run(keep: Path | None, log_level: str | None) -> int:
    """Run the demo; returns the exit code. `keep`: a folder for the data, which is deleted at the end without one."""
    with tempfile.TemporaryDirectory(prefix="memd-demo-") as scratch:
        settings = _settings(keep or Path(scratch), log_level)
        _say(f"Extractor: {_extractor(settings)}")
        with _daemon(settings), Memd(settings) as memd:
            users = _push(memd)
            code = _flush(memd)
            for user in users:
                _show(memd, user)
            _totals(memd)
        _say("The server, the scheduler and the workers are stopped." + (f" The data is in {keep}." if keep else ""))
    return code


def _settings(folder: Path, log_level: str | None) -> Settings:
    flags = {
        "data_dir": str(folder),
        "scheduler.quiet_s": 1,
        "scheduler.max_wait_s": 5,
        "log.level": log_level or "warning",
    }
    own = {name: value for name, value in os.environ.items() if name.startswith("MEMD_EXTRACTION__")}
    return config.load(environ=own, flags=flags, use_file=False).settings


def _extractor(settings: Settings) -> str:
    if chosen(settings.extraction) == "anthropic":
        return f"Anthropic, {settings.extraction.model}"
    return "offline patterns (set ANTHROPIC_API_KEY to use a model of Anthropic)"


@contextmanager
def _daemon(settings: Settings) -> Iterator[None]:
    """`memd up` on the demo's folder, for the length of the block."""
    _say("Starting the embedded server, the scheduler and the workers ...")
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "memd", "up"],
        env={**os.environ, **as_environment(settings)},
        start_new_session=True,
    )
    try:
        _wait_until_ready(settings, process)
        yield
    finally:
        process.terminate()
        process.wait()


def _wait_until_ready(settings: Settings, process: subprocess.Popen[bytes]) -> None:
    """Until the scheduler has loaded the inbox's functions and a worker listens. Raises InboxUnavailable."""
    deadline = time.monotonic() + READY_S
    with connect(settings) as client:
        while True:
            try:
                if library.installed(client) and workers_listening(client):
                    return
            except MemdError:  # the server is still starting; the deadline decides when that is an error
                pass
            if process.poll() is not None or time.monotonic() > deadline:
                raise InboxUnavailable("`memd up` did not become ready; its log is above")
            time.sleep(0.05)


def _push(memd: Memd) -> list[str]:
    """Push all conversations; returns their users."""
    users: dict[str, None] = {}
    lines = resources.files("memd.demo").joinpath("conversations.jsonl").read_bytes().splitlines()
    _say(f"\nPushing {len(lines)} contexts: user, thread, messages sent and kept, state, messages dropped by reason")
    for line in lines:
        push: dict[str, Any] = orjson.loads(line)
        users[push["user_id"]] = None
        receipt = memd.push_json(line)
        dropped = ", ".join(f"{count} {reason}" for reason, count in receipt.dropped.items())
        _say(
            f"  {_padded(push['user_id'], 16)} {_padded(push['thread_id'], 16)} "
            f"{len(push['messages']):>2} sent, {receipt.messages:>2} kept, {receipt.status}"
            + (f"; dropped: {dropped}" if dropped else "")
        )
    return list(users)


def _padded(text: str, width: int) -> str:
    """The text, filled up to `width` columns of a terminal, where Chinese characters take two."""
    columns = sum(2 if east_asian_width(character) in "WF" else 1 for character in text)
    return text + " " * (width - columns)


def _flush(memd: Memd) -> int:
    """Have everything processed now; returns the exit code."""
    shown = -1

    def progress(at: FlushProgress) -> None:
        nonlocal shown
        if at.ended != shown:
            shown = at.ended
            _say(f"  {at.ended} of {at.total} conversations processed")

    _say("\nFlushing: processing starts now instead of after the quiet time ...")
    result = memd.flush(wait=True, timeout_s=END_S, progress=progress)
    return 4 if result.timed_out else 3 if result.counts.get("dead") else 0


def _show(memd: Memd, user: str) -> None:
    _say(f"\n=== {user}: the memory document ===")
    _say(view(memd.document(user)))
    _say(f"--- {user}: the block that memd adds to the next prompt ---")
    _say(memd.inject(user))


def _totals(memd: Memd) -> None:
    status = memd.status()
    usage = status.usage
    _say(
        f"\n{counted(status.stored, 'push', 'pushes')} stored and {status.skipped} skipped, "
        f"{counted(status.facts['added'], 'fact')} added; "
        f"{usage['model_calls']} extractions, "
        f"{usage['input_tokens']} input tokens, {usage['output_tokens']} output tokens."
    )


def _say(text: str) -> None:
    typer.echo(text)
