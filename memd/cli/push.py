"""Pushing from the shell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any

import orjson
import typer

from memd.cli.bars import bar
from memd.cli.common import Json, echo, echo_json, read_file, settings, warn
from memd.client import Memd
from memd.errors import Rejected
from memd.printable import counted

LINES = 20
"""Most pushes that are printed one by one."""

_FILTERED = ("dropped", "cut")
"""What filtering counts: turns by reason, and blocks by kind."""


def push(
    file: Annotated[str, typer.Argument(help="JSON or JSONL; - for standard input.")] = "-",
    now: Annotated[bool, typer.Option("--now", help="Make them due at once.")] = False,
    project: Annotated[str | None, typer.Option("--project", help="The project, for pushes that name none.")] = None,
    as_json: Json = False,
) -> None:
    """Push conversations from a file or standard input.

    The input is one JSON object, a JSON array of objects, or one object a line (JSONL). For more than 20 pushes only
    the counts are printed; --json has the receipt of each. A refused push is reported with its number (in JSONL: its
    line) and code, and the others are still pushed. The exit code is then 65, as for an input without any push.

    Example: memd push conversations.jsonl --now
    """
    answers: list[dict[str, Any]] = []
    pushes = list(_pushes(read_file(file)))
    try:
        with Memd(settings()) as memd, bar("pushing", len(pushes)) as advance:
            for number, raw in pushes:
                answers.append({"push": number, **_answer(memd, raw, number, now=now, project=project)})
                advance()
                if not as_json and len(pushes) <= LINES and "code" not in answers[-1]:
                    echo(_line(number, answers[-1]))
    finally:  # also when the server went away half-way: the pushes accepted so far are reported
        if as_json:
            echo_json(answers)
        elif len(pushes) > LINES:
            echo(_sum(answers))
    if not answers:
        warn("nothing was pushed: the input contains no push")
    if not answers or any("code" in answer for answer in answers):
        raise typer.Exit(Rejected.exit_code)


def _answer(memd: Memd, raw: bytes, number: int, *, now: bool, project: str | None) -> dict[str, Any]:
    try:
        return asdict(memd.push_json(raw, now=now, project_id=project))
    except Rejected as error:  # nothing of this push was stored; the others do not depend on it
        warn(f"push {number}: {error}")
        return {"status": "rejected", "code": error.code, "error": str(error)}


def _pushes(raw: bytes) -> Iterator[tuple[int, bytes]]:
    """The pushes in the input, numbered from 1. Input that is not one JSON value is read line by line."""
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:  # JSONL, or one bad push, which its line reports
        yield from ((number, line) for number, line in enumerate(raw.splitlines(), 1) if line.strip())
        return
    if isinstance(value, list):
        yield from enumerate(map(orjson.dumps, value), 1)
    else:
        yield 1, raw


def _sum(answers: list[dict[str, Any]]) -> str:
    states = Counter(answer["status"] for answer in answers)
    kept = sum(answer.get("messages", 0) for answer in answers if answer.get("id"))
    totals = {name: sum((Counter(answer.get(name, {})) for answer in answers), Counter()) for name in _FILTERED}
    counts = ", ".join(f"{count:,} {state}" for state, count in states.most_common())
    return f"{counted(len(answers), 'push', 'pushes')}: {counts}; {counted(kept, 'message')}{_filtered(totals)}"


def _line(number: int, answer: dict[str, Any]) -> str:
    parts = [f"push {number}: {answer['status']}"]
    if answer["reason"]:
        parts.append(f"({answer['reason']})")
    if answer["id"]:
        parts.append(
            f"{counted(answer['messages'], 'message')}, due {answer['due_at']:%H:%M:%S}, receipt {answer['id']}"
        )
    return " ".join(parts) + _filtered(answer)


def _filtered(counts: Mapping[str, Any]) -> str:
    """What filtering dropped and cut, by reason and kind."""
    named = [(name, Counter(counts[name]).most_common()) for name in _FILTERED]
    return "".join(f"; {name}: {', '.join(f'{n:,} {kind}' for kind, n in found)}" for name, found in named if found)
