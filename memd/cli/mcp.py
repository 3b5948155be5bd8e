"""The Model Context Protocol."""

from __future__ import annotations

from typing import Annotated

import typer

from memd.cli.common import Agent, daemon_settings


def mcp(
    user: Annotated[
        str | None,
        typer.Option("--user", envvar="MEMD_MCP_USER", help="Whose memory this process serves."),
    ] = None,
    agent: Agent = "",
    http: Annotated[bool, typer.Option("--http", help="Streamable HTTP at /mcp, in place of stdio.")] = False,
    host: Annotated[str, typer.Option("--host", help="Address to listen on, with --http.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="TCP port, with --http.")] = 8478,
) -> None:
    """Serve one user's memory to an MCP host: tools and a resource. Without --user, --http knows users by their tokens.

    Example: memd mcp --user ana
    """
    try:
        from memd.mcp import server  # noqa: PLC0415  (heavy, and an extra)
    except ModuleNotFoundError as error:
        from memd.errors import ConfigError  # noqa: PLC0415

        raise ConfigError(f"`memd mcp` needs the package {error.name}: pip install 'memd[mcp]'") from None
    settings = daemon_settings()
    if http:
        server.run_http(settings, user, agent, host, port)
    else:
        server.run_stdio(settings, user, agent)


def register(app: typer.Typer) -> None:
    """Add this command."""
    app.command()(mcp)
