"""What the commands on facts share: the memory that they edit, and how they tell what they changed."""

from __future__ import annotations

import sys
from typing import Any

from msgspec import to_builtins

from memd.cli.common import echo, echo_json, settings
from memd.context import Bucket
from memd.memory.facts import category_of, content_of
from memd.memory.hand.by_hand import bucket_of
from memd.memory.hand.editing import Change, Editing
from memd.printable import counted, printable

MAX_STDIN_CHARS = 100_000
"""Most characters read from stdin; far above the limit of a fact, so a longer text is refused by that limit."""


def editing_of(user: str, agent: str) -> tuple[Editing, Bucket]:
    """The editor of memories, and the memory that a command names."""
    bucket = bucket_of(user, agent)
    return Editing(settings()), bucket


def content_given(content: str) -> str:
    """The argument, or the text on stdin, which no process list shows."""
    return sys.stdin.read(MAX_STDIN_CHARS) if content == "-" else content


def tell(change: Change, done: str, dry_run: bool, as_json: bool) -> None:
    """What an edit changed, or would change. `done`: its verb in the past."""
    if as_json:
        fields: dict[str, Any] = {"before": change.before, "after": change.after}
        if dry_run and change.turns:
            fields["turns"] = [{"agent": agent, **to_builtins(turn)} for agent, turn in change.turns]
        echo_json({"id": change.fact_id, "changed": change.changed, "dry_run": dry_run, **fields})
        return
    if not change.changed:
        echo(f"{printable(change.fact_id)} unchanged: it is already so")
        return
    echo(f"{printable(change.fact_id)} {'would be ' if dry_run else ''}{done}")
    for sign, fact in (("-", change.before), ("+", change.after)):
        if fact is not None:
            echo(f"  {sign} [{printable(category_of(fact))}] {printable(content_of(fact))}")


def tell_turns(change: Change, dry_run: bool) -> None:
    """The messages that go with a fact: all of them before it is done, afterwards only their number."""
    if change.turns:
        number = counted(len(change.turns), "message")
        echo(f"{number} of what was said {'would go' if dry_run else 'went'} with it")
    for agent, turn in change.turns if dry_run else ():
        where = f"{printable(agent)}, " if agent else ""
        echo(f"  - {where}{printable(turn.said_at[:10] or '?')} {turn.role}: {printable(turn.text)}")
