"""Pushing from the shell."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from memd.cli.common import Json, echo, echo_json, settings, warn
from memd.errors import Rejected


def push(
    file: Annotated[str, typer.Argument(help="JSON or JSONL; - for standard input.")] = "-",
    now: Annotated[bool, typer.Option("--now", help="Due at once.")] = False,
    as_json: Json = False,
) -> None:
    """Push conversations: one JSON object, a JSON array of them, or one a line.

    A bad one is reported with its number and code, and the rest goes on; the exit code is then 65.

    Example: memd push conversations.jsonl --now
    """
    from memd.client import Memd  # noqa: PLC0415

    answers: list[dict[str, Any]] = []
    bad = 0
    with Memd(settings()) as memd:
        for number, raw in enumerate(_pushes(_read(file)), 1):
            try:
                answer = asdict(memd.push_json(raw, now=now))
            except Rejected as error:  # nothing of this one was stored; the others are independent of it
                bad += 1
                answer = {"status": "rejected", "code": error.code, "error": str(error)}
                warn(f"push {number}: {error}")
            answers.append({"push": number, **answer})
            if not as_json and "code" not in answer:
                echo(_line(number, answer))
    if as_json:
        echo_json(answers)
    if bad:
        raise typer.Exit(Rejected.exit_code)


def _read(file: str) -> bytes:
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{file} cannot be read ({error.strerror})") from None


def _pushes(raw: bytes) -> Iterator[bytes]:
    """The pushes in the bytes. What is not one whole JSON value is taken line by line."""
    import orjson  # noqa: PLC0415

    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:  # JSONL, or a bad single push, which its line reports
        yield from (line for line in raw.splitlines() if line.strip())
        return
    if isinstance(value, list):
        yield from (orjson.dumps(part) for part in value)
    else:
        yield raw


def _line(number: int, answer: dict[str, Any]) -> str:
    dropped = ", ".join(f"{count} {reason}" for reason, count in answer["dropped"].items())
    parts = [f"push {number}: {answer['status']}"]
    if answer["reason"]:
        parts.append(f"({answer['reason']})")
    if answer["id"]:
        parts.append(f"{answer['messages']} messages, due {answer['due_at']:%H:%M:%S}, receipt {answer['id']}")
    return " ".join(parts) + (f"; dropped: {dropped}" if dropped else "")


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(push)
