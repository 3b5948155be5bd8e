"""Reading memories."""

from __future__ import annotations

from typing import Annotated

import typer

from memd.cli.common import Agent, Json, Pending, User, echo, echo_json, settings


def show(user: User, agent: Agent = "", as_json: Json = False) -> None:
    """A user's memory, readable; with --json the document itself.

    Example: memd show ana
    """
    from memd.client import Memd  # noqa: PLC0415
    from memd.recall.view import view  # noqa: PLC0415

    with Memd(settings()) as memd:
        document = memd.document(user, agent_name=agent)
    if as_json:
        echo_json(document)
    else:
        echo(view(document))


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
        block = memd.inject(user, agent_name=agent, max_tokens=max_tokens, query=query, include_pending=include_pending)
    if block:
        echo(block)


def register(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (show, inject):
        app.command()(command)
