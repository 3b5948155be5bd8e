"""Doubtful facts: list, approve, drop."""

from __future__ import annotations

from typing import Annotated

import typer

from memd.cli.common import Agent, DryRun, FactId, Json, User, echo, echo_json, nothing
from memd.cli.fact_changes import editing_of, tell
from memd.cli.held_back import After, Limit, UserOrAll, tell_all
from memd.context import Bucket
from memd.memory.document import Fact
from memd.memory.facts import content_of, id_of, quotes_of, replaces
from memd.memory.hand.editing import Editing
from memd.printable import printable

Anyway = Annotated[bool, typer.Option("--anyway", help="Also where the user has said something else since.")]


def doubtful(
    user: UserOrAll = None, agent: Agent = "", limit: Limit = 50, after: After = "", as_json: Json = False
) -> None:
    """List the facts that memd doubts, with what the user said. Neither a prompt nor a search has them.

    Why: authority (it sounds like a permission or an order), support (what was said does not quite prove it), or
    sensitive. Decide with `memd facts approve` or `drop`; after 90 days they go. Without a user: those of all, by user.

    Example: memd facts doubtful ana
    """
    if user is None:
        tell_all(Editing.doubtful, _tell, agent, after, limit, as_json=as_json)
        return
    editing, bucket = editing_of(user, agent)
    found = editing.doubtful(bucket)
    if as_json:
        echo_json(found)
        return
    _tell(editing, bucket, found)
    if not found:
        nothing("nothing")


def _tell(_editing: Editing, _bucket: Bucket, found: list[Fact]) -> None:
    for fact in found:
        since, why = (printable(fact.get(name) or "?") for name in ("doubtfulAt", "doubtfulWhy"))
        echo(f"{printable(id_of(fact))}  {since[:10]}  {why}  {printable(content_of(fact))}")
        for quote in quotes_of(fact):
            echo(f"    said: {printable(quote)}")
        if old := replaces(fact):
            echo(f"    would replace: {printable(', '.join(old))}")


def approve(
    user: User, fact_id: FactId, agent: Agent = "", anyway: Anyway = False, dry_run: DryRun = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Make a doubtful fact a fact of the memory, with its quotes and its time; it replaces what it was to replace.

    Example: memd facts approve ana fact_0badcafe
    """
    editing, bucket = editing_of(user, agent)
    tell(editing.approve(bucket, fact_id, anyway=anyway, dry_run=dry_run), "approved", dry_run, as_json)


def drop(user: User, fact_id: FactId, agent: Agent = "", dry_run: DryRun = False, as_json: Json = False) -> None:
    """Drop a doubtful fact for good; only `memd facts add` brings it back.

    Example: memd facts drop ana fact_0badcafe
    """
    editing, bucket = editing_of(user, agent)
    tell(editing.drop(bucket, fact_id, dry_run=dry_run), "dropped", dry_run, as_json)
