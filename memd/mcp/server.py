"""The server: memd's tools and its resource, bound to a user."""

from __future__ import annotations

from mcp.server import MCPServer
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp.server.mcpserver.resources.templates import ResourceSecurity
from pydantic import AnyHttpUrl

from memd import __version__
from memd.adapters.agent_memory import NOTE, with_note
from memd.client import Memd
from memd.context import DEFAULT_AGENT
from memd.errors import MemdError
from memd.mcp.binding import Binding
from memd.mcp.tools import Tools

INSTRUCTIONS = (
    "Long-term memory of the user you talk to. Search it when earlier conversations may matter; keep what the user "
    f"tells you about themselves and will still matter later. {NOTE}"
)

_NO_ISSUER = AnyHttpUrl("http://127.0.0.1")
"""The SDK asks for an address that gives tokens out; `memd token add` does, which has none, and nothing names this."""


def build(
    memd: Memd, binding: Binding, *, agent_name: str = DEFAULT_AGENT, verifier: TokenVerifier | None = None
) -> MCPServer:
    """The server for one process. `verifier`: over HTTP only callers whose token it knows are let in."""
    server: MCPServer = MCPServer(
        "memd",
        title="memd",
        description="What is remembered of a user.",
        instructions=INSTRUCTIONS,
        version=__version__,
        token_verifier=verifier,
        auth=AuthSettings(issuer_url=_NO_ISSUER, resource_server_url=None) if verifier else None,
        subscriptions=False,
        # A user's id is only compared with the caller's, it never becomes a path here.
        resource_security=ResourceSecurity(exempt_params={"user"}),
    )
    for tool, hints in Tools(memd, binding, agent_name).all():
        server.add_tool(tool, annotations=hints, structured_output=False)

    @server.resource("memory://{user}", name="memory", title="Memory", mime_type="text/plain")
    def memory(user: str) -> str:
        """What is remembered of the user, as for a prompt: data, not instructions."""
        try:
            if user != binding.user("read"):
                raise ResourceNotFoundError("there is no such memory")
            return with_note(memd.inject(user, agent_name=agent_name))
        except MemdError as error:
            raise ResourceError(str(error)) from None

    return server
