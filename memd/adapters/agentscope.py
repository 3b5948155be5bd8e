"""AgentScope 2: a middleware that gives an agent its user's memory and remembers for it. (1.x: `longterm`.)

`Agent(…, middlewares=[MemoryMiddleware(LongTermMemory(memd, user_id=…, thread_id=…))])`, with
`Toolkit(tools=await middleware.list_tools())` where the model is to have the tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from functools import wraps
from typing import Any

from agentscope.message import Msg
from agentscope.middleware import MiddlewareBase
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, ToolBase

from memd.adapters.longterm import LongTermMemory
from memd.errors import MemdError
from memd.events import Event

_log = logging.getLogger("memd")


class MemoryMiddleware(MiddlewareBase):  # type: ignore[misc]  # agentscope is not installed where types are checked
    """Memory for an AgentScope 2 agent.

    `memory`: of one user and one thread, in mode static, agent or both, as for AgentScope 1.x. The block stands at the
    end of the system prompt and never in the context, so no compression sees it. A reply's messages are pushed when it
    ends, also when it fails; while the inbox is out of reach they wait in this object, and the next reply takes them.
    """

    def __init__(self, memory: LongTermMemory) -> None:
        self._memory = memory
        self._waiting, self._run = memory.waiting_turns()
        self._asked: Any = None

    async def on_reply(
        self, agent: Any, input_kwargs: dict[str, Any], next_handler: Callable[..., AsyncGenerator[Any, None]]
    ) -> AsyncGenerator[Any, None]:
        """Note what was asked, and record it with the answer."""
        inputs = input_kwargs.get("inputs")
        asked = [one for one in (inputs if isinstance(inputs, list) else [inputs]) if isinstance(one, Msg)]
        self._asked = asked or self._asked
        answers: list[Any] = []
        try:
            async for item in next_handler(**input_kwargs):
                if isinstance(item, Msg) and item.role == "assistant":
                    answers = [item]
                yield item
        finally:
            turns = self._memory.turns([*asked, *answers])
            await asyncio.to_thread(self._waiting.push, self._run, turns)

    async def on_system_prompt(self, agent: Any, current_prompt: str) -> str:
        """The prompt with the user's `<memory>` block behind it; without it while the memory cannot be read."""
        try:
            block = await self._memory.retrieve(self._asked)
        except MemdError as error:  # the agent goes on without its memory
            _log.warning("%s %s", Event.INJECT_FAILED, error)
            block = ""
        return "\n\n".join(filter(None, [current_prompt, block]))

    async def list_tools(self) -> list[ToolBase]:
        """The memory's two tools, which ask nobody for a permission; empty in mode static, and without memory."""
        allowed = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="the user's own memory")
        return [FunctionTool(_text_of(tool), name=tool.__name__, permission=allowed) for tool in self._memory.tools()]


def _text_of(tool: Callable[..., Any]) -> Callable[..., Any]:
    """The tool with its words as result, which AgentScope 2 takes; its name, signature and description stay."""

    @wraps(tool)
    async def called(*args: Any, **options: Any) -> str:
        answer = await tool(*args, **options)
        return "\n".join(block["text"] for block in answer.content)

    return called
