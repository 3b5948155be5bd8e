"""Searching a memory."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from memd.cli.common import Agent, Json, Pending, User, echo, echo_json, settings
from memd.printable import printable

if TYPE_CHECKING:
    from memd.recall.search import Found


def search(  # noqa: PLR0913, PLR0917  (each is an option of the command line)
    user: User,
    query: Annotated[str, typer.Argument(help="Words to look for; nothing in it is an operator.")],
    agent: Agent = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="Facts at most.")] = 10,
    category: Annotated[list[str] | None, typer.Option("--category", help="Only this category; repeatable.")] = None,
    since: Annotated[str | None, typer.Option("--since", help="Learned or changed since, ISO 8601.")] = None,
    until: Annotated[str | None, typer.Option("--until", help="Learned or changed before, ISO 8601.")] = None,
    include_pending: Pending = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each score is made of.")] = False,
    as_json: Json = False,
) -> None:
    """The facts that answer a query, best first.

    Example: memd search ana "where does she live" --explain
    """
    from memd.client import Memd  # noqa: PLC0415

    with Memd(settings()) as memd:
        found = memd.search(
            user, query,
            agent_name=agent, limit=limit, categories=category or (), since=since, until=until,
            include_pending=include_pending,
        )  # fmt: skip
    if as_json:
        echo_json([asdict(one) for one in found])
        return
    for one in found:
        echo(_line(one))
        if explain:
            echo(_explained(one))


def _line(one: Found) -> str:
    category = "pending" if one.pending else printable(one.fact.get("category", "context"))
    agent = f"  (agent {printable(one.agent_name)})" if one.agent_name else ""
    return f"{one.score:.3f}  {category:<10}  {printable(one.fact['content'])}{agent}"


def _explained(one: Found) -> str:
    from memd.recall.search import WEIGHTS  # noqa: PLC0415

    factors = (("similarity", one.similarity), ("confidence", one.confidence), ("scope", one.scope))
    parts = (f"{weight:g} × {name} {value:.3f}" for weight, (name, value) in zip(WEIGHTS, factors, strict=True))
    return f"       = {' + '.join(parts)}  {printable(one.fact.get('id', '?'))}"


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(search)
