"""What memd holds back of all users, a page of users at a time: doubtful facts, and what is withheld."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated, Any

import typer

from memd.cli.common import completes, echo, echo_json, nothing, settings, warn
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import DocumentDamaged
from memd.memory.hand.editing import Editing
from memd.printable import printable

UserOrAll = Annotated[
    str | None,
    typer.Argument(metavar="[USER]", help="The user's id; without it all users.", autocompletion=completes("user")),
]
Limit = Annotated[int, typer.Option("--limit", "-n", min=1, max=1000, help="Without USER: users on a page at most.")]
After = Annotated[str, typer.Option("--after", metavar="USER", help="Without USER: continue after this one.")]

Found = list[dict[str, Any]]
Read = Callable[[Editing, Bucket], Found]
Tell = Callable[[Editing, Bucket, Found], None]


def tell_all(read: Read, tell: Tell, agent: str, after: str, limit: int, *, as_json: bool) -> None:
    """Print what memories hold back, user by user, and how to go on. `agent`: only those of this agent."""
    editing = Editing(settings())
    users = _users(editing, read, agent, after)
    page = list(islice(users, limit))
    more = page[-1][0] if len(page) == limit and next(users, None) else ""
    memories = [memory for _, of_user in page for memory in of_user]
    if as_json:
        rows = [{"user_id": of.user_id, "agent_name": of.agent_name, "facts": found} for of, found in memories]
        echo_json({"memories": rows, "next": more})
        return
    for bucket, found in memories:
        echo(f"{printable(bucket.user_id)}" + (f", agent {printable(bucket.agent_name)}" if bucket.agent_name else ""))
        tell(editing, bucket, found)
    if not memories:
        nothing("nothing")
    if more:
        echo(f"more: --after {printable(more)}")


def _users(editing: Editing, read: Read, agent: str, after: str) -> Iterator[tuple[str, list[tuple[Bucket, Found]]]]:
    for user in sorted(user for user in editing.users() if user > after):
        agents = [agent] if agent else [DEFAULT_AGENT, *editing.agents(user)]
        memories = [(bucket, found) for name in agents if (found := _read(editing, read, bucket := Bucket(user, name)))]
        if memories:
            yield user, memories


def _read(editing: Editing, read: Read, bucket: Bucket) -> Found:
    try:
        return read(editing, bucket)
    except DocumentDamaged as error:
        warn(f"{printable(bucket.user_id)} is left out: {error}")
        return []
