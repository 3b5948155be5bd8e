"""Reading memories."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from memd.cli.common import Agent, Json, Pending, User, echo, echo_json, settings, warn

if TYPE_CHECKING:
    from memd.client import Memd

SHOWN = 10
"""Oddities of a document that are told one by one."""


def show(
    user: User,
    agent: Agent = "",
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="As it was believed then: 2026-03-01, or with a time.")
    ] = None,
    as_json: Json = False,
) -> None:
    """A user's memory, readable; with --json the document itself.

    Times without a zone are UTC, a day means its beginning. What the past cannot tell is said on stderr.

    Example: memd show ana --at 2026-03-01
    """
    from memd.recall.view import view  # noqa: PLC0415  (each command imports what it needs)

    moment = _moment(at)
    document = _document(user, agent)
    if moment is not None:
        document = _past(document, moment, as_json=as_json)
    if as_json:
        echo_json(document)
    else:
        echo(view(document))


def why(
    user: User,
    fact_id: Annotated[str, typer.Argument(metavar="FACT_ID", help="As `memd show` has it; archived ones too.")],
    agent: Agent = "",
    as_json: Json = False,
) -> None:
    """Where a fact comes from: each quote, thread, time, model and prompt version, and what it replaced.

    Example: memd why ana fact_0badcafe
    """
    from memd.client import Memd  # noqa: PLC0415
    from memd.recall.why import why_text  # noqa: PLC0415

    with Memd(settings()) as memd:
        tell_oddities(memd, user, agent)
        found = memd.why(user, fact_id, agent_name=agent)
    if as_json:
        echo_json(found)
    else:
        echo(why_text(found))


def inject(
    user: User,
    agent: Agent = "",
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, help="The block's budget, estimated.")
    ] = None,
    query: Annotated[str | None, typer.Option("--query", help="The facts that answer it best come first.")] = None,
    include_pending: Pending = False,
) -> None:
    """The <memory> block for the next prompt, within its budget; nothing when nothing is known.

    Example: memd inject ana --max-tokens 500
    """
    from memd.client import Memd  # noqa: PLC0415

    with Memd(settings()) as memd:
        tell_oddities(memd, user, agent)
        block = memd.inject(user, agent_name=agent, max_tokens=max_tokens, query=query, include_pending=include_pending)
    if block:
        echo(block)


def tell_oddities(memd: Memd, user: str, agent: str) -> None:
    """Say what a hand broke in the document; raises DocumentDamaged, with the place, where it cannot be read."""
    found = memd.inspect(user, agent)
    for sentence in found[:SHOWN]:
        warn(f"memd: {sentence}; it is read as if it were not there")
    if len(found) > SHOWN:
        warn(f"memd: and {len(found) - SHOWN} more such places; `memd audit` has all")


def _document(user: str, agent: str) -> dict[str, Any]:
    from memd.client import Memd  # noqa: PLC0415

    with Memd(settings()) as memd:
        tell_oddities(memd, user, agent)
        return memd.document(user, agent_name=agent)


def _moment(at: str | None) -> datetime | None:
    from memd.memory.document import moment  # noqa: PLC0415

    if at is None:
        return None
    found = moment(at)
    if found is None:
        raise typer.BadParameter("write a day (2026-03-01) or a time (2026-03-01T18:00:00Z)", param_hint="--at")
    if found > datetime.now(UTC):
        raise typer.BadParameter("what will be believed is not known yet", param_hint="--at")
    return found


def _past(document: dict[str, Any], at: datetime, *, as_json: bool) -> dict[str, Any]:
    from memd.memory.document import iso  # noqa: PLC0415
    from memd.recall.past import as_of  # noqa: PLC0415

    past = as_of(document, at, settings().apply.archive_cap)
    if as_json:
        return {**past.document, "asOf": iso(at), "missing": past.missing}
    echo(f"As believed at {iso(at)}")
    for sentence in past.missing:
        warn(f"may be incomplete: {sentence}")
    return past.document


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (show, why, inject):
        app.command()(command)
