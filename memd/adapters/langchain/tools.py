"""The two memory tools as tools of LangChain, for agents that decide themselves what to note and what to look up.

The run names its user, as it does for the middleware; the model cannot.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from langchain.tools import ToolRuntime, tool
from langchain_core.tools import BaseTool

from memd.adapters.agent_run import OFF, enables_memory, run_of
from memd.adapters.langchain.runs import named
from memd.adapters.memory_tools import MemoryTools, said
from memd.client import Memd
from memd.context import DEFAULT_AGENT


def memory_tools(memd: Memd, *, user_id: str | None = None, agent_name: str = DEFAULT_AGENT) -> list[BaseTool]:
    """`memory_save` and `memory_search` for `create_agent(tools=…)`, beside the middleware or without it.

    `user_id`: the only user that this agent serves; otherwise each run names its own, in `context` or `configurable`,
    and one that names none gets an error as the tool's result, as does one with `enable_memory` False.
    """

    def of_run(runtime: ToolRuntime[Any, Any]) -> MemoryTools:
        run = run_of(partial(named, runtime), user_id, memd.settings.client.default_user)
        return MemoryTools(memd, run.user_id, agent_name=agent_name, thread_id=run.thread_id, project_id=run.project_id)

    def memory_save(content: str, runtime: ToolRuntime[Any, Any], memory_type: str = "") -> str:
        return said(lambda: of_run(runtime).memory_save(content, memory_type) if _is_on(runtime) else OFF)

    def memory_search(query: str, runtime: ToolRuntime[Any, Any], limit: int = 10) -> str:
        return said(lambda: of_run(runtime).memory_search(query, limit) if _is_on(runtime) else OFF)

    memory_save.__doc__, memory_search.__doc__ = MemoryTools.memory_save.__doc__, MemoryTools.memory_search.__doc__
    return [tool(parse_docstring=True)(memory_save), tool(parse_docstring=True)(memory_search)]


def _is_on(runtime: ToolRuntime[Any, Any]) -> bool:
    return enables_memory(partial(named, runtime))
