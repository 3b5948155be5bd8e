"""The demo's run: a daemon of its own, the shipped conversations in, everybody's memory out."""

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

import orjson
import typer

from memd import config
from memd.client import Memd
from memd.config import Settings, as_environment
from memd.errors import InboxUnavailable, MemdError
from memd.extraction import chosen
from memd.inbox.flush import FlushProgress
from memd.recall.view import view

READY_S = 15.0
END_S = 120.0


def run(keep: Path | None, log_level: str | None) -> int:
    """Run the demo; answers the exit code. `keep`: a folder for the data, which is thrown away otherwise."""
    with tempfile.TemporaryDirectory(prefix="memd-demo-") as scratch:
        settings = _settings(keep or Path(scratch), log_level)
        _say(f"Extractor: {_extractor(settings)}")
        with _daemon(settings), Memd(settings) as memd:
            users = _push(memd)
            code = _flush(memd)
            for user in users:
                _show(memd, user)
            _totals(memd)
        _say("Everything is shut down." + (f" The data is in {keep}." if keep else ""))
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
    return "offline patterns (set ANTHROPIC_API_KEY to use Anthropic)"


@contextmanager
def _daemon(settings: Settings) -> Iterator[None]:
    """`memd up` on the demo's folder, until the end."""
    _say("Starting the embedded server, the scheduler and the workers ...")
    process = subprocess.Popen(
        [sys.executable, "-m", "memd", "up"],
        env={**os.environ, **as_environment(settings)},
        start_new_session=True,
    )
    try:
        _await_ready(settings, process)
        yield
    finally:
        process.terminate()
        process.wait()


def _await_ready(settings: Settings, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + READY_S
    while True:
        try:
            with Memd(settings) as memd:
                if memd.status().workers:
                    return
        except MemdError:  # not there yet; the deadline says when that is an error
            pass
        if process.poll() is not None or time.monotonic() > until:
            raise InboxUnavailable("memd up did not get ready; its log is above")
        time.sleep(0.05)


def _push(memd: Memd) -> list[str]:
    """Push all conversations; answers their users."""
    users: dict[str, None] = {}
    lines = resources.files("memd.demo").joinpath("conversations.jsonl").read_bytes().splitlines()
    for line in lines:
        push: dict[str, Any] = orjson.loads(line)
        users[push["user_id"]] = None
        answer = memd.push_json(line)
        dropped = ", ".join(f"{count} {reason}" for reason, count in answer.dropped.items())
        _say(
            f"  {push['user_id']:<18} {push['thread_id']:<20} {len(push['messages']):>2} turns in, "
            f"{answer.messages:>2} kept, {answer.status}" + (f"; dropped {dropped}" if dropped else "")
        )
    return list(users)


def _flush(memd: Memd) -> int:
    said = -1

    def progress(at: FlushProgress) -> None:
        nonlocal said
        if at.ended != said:
            said = at.ended
            _say(f"  {at.ended} of {at.total} conversations remembered")

    _say("Flushing ...")
    result = memd.flush(wait=True, timeout_s=END_S, progress=progress)
    return 4 if result.timed_out else 3 if result.counts.get("dead") else 0


def _show(memd: Memd, user: str) -> None:
    _say(f"\n=== The memory of {user} ===")
    _say(view(memd.document(user)))
    _say("--- what the next prompt gets ---")
    _say(memd.inject(user))


def _totals(memd: Memd) -> None:
    status = memd.status()
    usage = status.usage
    _say(
        f"\n{status.stored} pushes stored, {status.skipped} skipped, {status.facts['added']} facts; "
        f"{usage['model_calls']} extractions, {usage['input_tokens']} tokens in, {usage['output_tokens']} out."
    )


def _say(text: str) -> None:
    typer.echo(text)
