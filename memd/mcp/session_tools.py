"""The tools that a model has for the session of its conversation: make it small, read what was offloaded."""

from __future__ import annotations

from typing import Annotated

from mcp_types import ToolAnnotations
from pydantic import Field

from memd.client import Memd
from memd.mcp.binding import Binding, Need
from memd.mcp.offered import OfferedTool
from memd.mcp.tool_errors import tool_errors
from memd.printable import counted
from memd.session.conversation import Session


class SessionTools:
    """The two tools. The process names the thread, the binding knows the user of each call; the model names neither."""

    def __init__(self, memd: Memd, binding: Binding, thread_id: str, agent_name: str) -> None:
        self._memd = memd
        self._binding = binding
        self._thread_id = thread_id
        self._agent_name = agent_name

    def compact(self) -> str:
        """Put a summary in the place of this conversation so far, all but its newest turn.

        Use it when a piece of work is done, or when the conversation has become long. What is cut is remembered.
        """
        with tool_errors():
            session = self._session("write")
            before = len(session.messages)
            if not before:
                return "Nothing has been said in this conversation yet."
            session.compact()
        return f"{counted(before, 'turn')} before, {counted(len(session.messages), 'turn')} now."

    def reload(
        self, id: Annotated[str, Field(description="The id in a reference `[offloaded <id>: <n> characters]`.")]
    ) -> str:
        """Read a text of this conversation that was taken out of it, where a reference stands in its place."""
        with tool_errors():
            return self._session("read").reload(id)

    def all(self) -> list[OfferedTool]:
        """The tools, with the hints that hosts get."""
        reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        shortens = ToolAnnotations(destructive_hint=False, idempotent_hint=True, open_world_hint=False)
        return [
            OfferedTool(self.compact, "Compact the conversation", shortens),
            OfferedTool(self.reload, "Read an offloaded text", reads),
        ]

    def _session(self, need: Need) -> Session:
        return self._memd.session(self._thread_id, user_id=self._binding.user(need), agent_name=self._agent_name)
