"""Searching a memory."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from memd.cli.common import (
    Agent,
    Json,
    Pending,
    ProjectOption,
    ThreadOption,
    User,
    echo,
    echo_json,
    nothing,
    settings,
    warn_of_words_only,
)
from memd.cli.fact_filters import Categories, Member, PeriodBy, Scopes, Since, Until
from memd.client import Memd
from memd.memory.facts import category_of, content_of, id_of
from memd.printable import printable
from memd.recall.search import WEIGHTS, Found


def search(  # noqa: PLR0913, PLR0917  (each parameter is an option)
    user: User,
    query: Annotated[str, typer.Argument(help="Words to search for; there are no operators.")],
    agent: Agent = "",
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=500, help="Facts to return at most.")] = 10,
    category: Categories = None,
    scope: Scopes = None,
    member: Member = None,
    since: Since = None,
    until: Until = None,
    by: PeriodBy = "learned",
    thread: ThreadOption = None,
    project: ProjectOption = None,
    include_pending: Pending = False,
    explain: Annotated[bool, typer.Option("--explain", help="Print the factors of each score.")] = False,
    as_json: Json = False,
) -> None:
    """Search a user's facts, best first.

    Example: memd search ana "where does she live" --explain
    """
    with Memd(settings()) as memd:
        hits = memd.search(
            user, query,
            agent_name=agent, limit=limit, categories=category or (), scopes=scope or (), member=member,
            since=since, until=until, by=by, thread_id=thread, project_id=project,
            include_pending=include_pending,
        )  # fmt: skip
    warn_of_words_only(hits.words_only)
    if as_json:
        echo_json(list(map(_row, hits)))
        return
    if not hits:
        nothing("nothing found")
    for hit in hits:
        echo(_line(hit))
        if explain:
            echo(_explained(hit))


def _row(hit: Found) -> dict[str, Any]:
    """A hit as JSON."""
    factors = {"similarity": hit.similarity, "confidence": hit.confidence, "scope": hit.scope}
    labels = {"kind": hit.kind, "pending": hit.pending, "agent_name": hit.agent_name}
    return {"fact": hit.fact, "score": hit.score, **factors, **labels}


def _line(hit: Found) -> str:
    category = "pending" if hit.pending else printable(category_of(hit.fact))
    agent = f"  (agent {printable(hit.agent_name)})" if hit.agent_name else ""
    return f"{hit.score:.3f}  {category:<10}  {printable(content_of(hit.fact))}{agent}"


def _explained(hit: Found) -> str:
    factors = (("similarity", hit.similarity), ("confidence", hit.confidence), ("scope", hit.scope))
    parts = (f"{weight:g} × {name} {value:.3f}" for weight, (name, value) in zip(WEIGHTS, factors, strict=True))
    used = f", last used {hit.fact['lastUsedAt'] or 'never'}" if hit.kind == "fact" else ""
    return f"       = {' + '.join(parts)}  {printable(id_of(hit.fact) or '?')}{used}"
