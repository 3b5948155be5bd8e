"""Looking around: the users that have a memory, and the keys that have not ended."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, cast

import typer

from memd.cli.common import Json, OnlyUser, echo, echo_json, nothing, settings, when
from memd.cli.tables import table
from memd.client import Memd
from memd.inbox.keys import PendingKey
from memd.recall.users import UserRow

Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Rows to print at most.")]
After = Annotated[str, typer.Option("--after", metavar="CURSOR", help="Continue after the page that printed this.")]


def users(
    by: Annotated[str, typer.Option("--by", help="id, or changed: the one that changed last comes first.")] = "id",
    find: Annotated[str, typer.Option("--find", metavar="TEXT", help="Only users whose id has this text in it.")] = "",
    limit: Limit = 50,
    after: After = "",
    as_json: Json = False,
) -> None:
    """List the users that have a memory: agents, facts, pending keys, last change.

    A user without stored facts appears only in `memd pending`. Without a server the column pending is empty.

    Example: memd users --by changed --limit 10
    """
    with Memd(settings()) as memd:
        page = memd.users(by=cast("Any", by), after=after, limit=limit, find=find)
    if as_json:
        echo_json(asdict(page))
        return
    if not page.users:
        nothing("no users" if not after else "no more users")
        return
    table(("user", "facts", "pending", "changed", "agents"), map(_user, page.users), ("facts", "pending"))
    _more(page.next)


def _user(row: UserRow) -> tuple[object, ...]:
    return (
        row.user_id,
        "damaged" if row.facts is None else row.facts,
        "-" if row.pending is None else row.pending,
        when(row.changed_at),
        ", ".join(row.agents),
    )


def pending(
    user: OnlyUser = None,
    limit: Limit = 50,
    after: After = "",
    as_json: Json = False,
) -> None:
    """List the keys that have not ended: user, state, size, due time, worker.

    No text is printed. The states: claimed, due, waiting (for the quiet time), parked (another key of this memory is
    claimed), rationed (a budget is used up), batched (its request is in a batch).

    Example: memd pending --user ana
    """
    with Memd(settings()) as memd:
        page = memd.pending(user_id=user, after=after, limit=limit)
    if as_json:
        echo_json(asdict(page))
        return
    if page.keys:
        head = ("state", "user", "agent", "thread", "turns", "tokens", "due in", "claimed by")
        table(head, map(_key, page.keys), ("turns", "tokens", "due in"))
    elif not page.next:
        echo("nothing is pending")
    _more(page.next)


def _key(key: PendingKey) -> tuple[object, ...]:
    due = "" if key.due_in_s is None else "now" if key.due_in_s == 0 else f"{key.due_in_s:.0f} s"
    whose = (key.user_id, key.agent_name, key.thread_id)
    return key.state, *whose, key.turns, key.tokens, due, key.claimed_by or ""


def _more(cursor: str) -> None:
    if cursor:
        echo(f"more: --after {_quoted(cursor)}")


def _quoted(cursor: str) -> str:
    return "'" + cursor.replace("'", "'\\''") + "'"
