"""PydanticAI: a capability that gives an agent its user's memory, remembers for it, and brings two tools.

`Agent(model, deps_type=…, capabilities=[MemdCapability(Memd())])`. The run's `deps` name its user and thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.run import AgentRunResult
from pydantic_ai.toolsets import FunctionToolset

from memd.adapters.agent_memory import with_note
from memd.adapters.agent_run import OFF, AgentRun, enables_memory, run_of, values_of
from memd.adapters.memory_tools import MemoryTools, said
from memd.adapters.waiting_turns import Turn, WaitingTurns
from memd.client import Memd
from memd.context import DEFAULT_AGENT
from memd.errors import MemdError
from memd.events import Event

_log = logging.getLogger("memd")


@dataclass
class MemdCapability(AbstractCapability[Any]):  # type: ignore[misc]  # not installed where types are checked
    """Memory for a PydanticAI agent.

    The run names its user and thread as `user_id` and `thread_id` (or `session_id`) in its `deps`, a mapping or an
    object; without a thread it is the run's `conversation_id`. A run without a user is refused with Rejected before the
    model is called. `user_id`: the only user that this agent serves. `tools`: the model gets `memory_save` and
    `memory_search`. `max_tokens`: budget of the block; None: the setting. A run with `enable_memory` False gets no
    block and pushes nothing. While memd is away the agent goes on, and what was said waits for the next run.
    """

    memd: Memd = field(default_factory=Memd)
    user_id: str | None = None
    agent_name: str = DEFAULT_AGENT
    max_tokens: int | None = None
    tools: bool = True

    def __post_init__(self) -> None:
        self._turns = WaitingTurns(self.memd, self.agent_name)

    def get_instructions(self) -> Callable[[RunContext[Any]], Awaitable[str]]:
        """The `<memory>` block, read at each call of the model; it is no part of the messages."""

        async def block(ctx: RunContext[Any]) -> str:
            return await asyncio.to_thread(self._block, self._run(ctx)) if _is_on(ctx) else ""

        return block

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """The two tools, bound to the user of each run."""
        if not self.tools:
            return None

        async def memory_save(ctx: RunContext[Any], content: str, memory_type: str = "") -> str:
            return await self._tool(ctx, lambda tools: tools.memory_save(content, memory_type))

        async def memory_search(ctx: RunContext[Any], query: str, limit: int = 10) -> str:
            return await self._tool(ctx, lambda tools: tools.memory_search(query, limit))

        memory_save.__doc__, memory_search.__doc__ = MemoryTools.memory_save.__doc__, MemoryTools.memory_search.__doc__
        return FunctionToolset(tools=[memory_save, memory_search])

    async def before_run(self, ctx: RunContext[Any]) -> None:
        """Refuse a run without a user, before it costs anything. Raises Rejected."""
        if _is_on(ctx):
            self._run(ctx)

    async def after_run(self, ctx: RunContext[Any], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        """Push what user and agent said in this run."""
        await self._push(ctx, result.new_messages())
        return result

    async def on_run_error(self, ctx: RunContext[Any], *, error: BaseException) -> AgentRunResult[Any]:
        """Push what the user said to the run that failed; the error goes on."""
        if ctx.prompt:
            await self._push(ctx, [ModelRequest([UserPromptPart(ctx.prompt)])])
        raise error

    async def _push(self, ctx: RunContext[Any], messages: Sequence[ModelMessage]) -> None:
        if _is_on(ctx):
            turns = list(_turns(messages, ctx.run_id or ""))
            await asyncio.to_thread(self._turns.push, self._run(ctx), turns)

    async def _tool(self, ctx: RunContext[Any], work: Callable[[MemoryTools], str]) -> str:
        def done() -> str:
            if not _is_on(ctx):
                return OFF
            run = self._run(ctx)
            return work(
                MemoryTools(
                    self.memd,
                    run.user_id,
                    agent_name=self.agent_name,
                    thread_id=run.thread_id,
                    project_id=run.project_id,
                )
            )

        return await asyncio.to_thread(said, done)

    def _run(self, ctx: RunContext[Any]) -> AgentRun:
        """User and thread of this run. Raises Rejected."""
        of_deps = values_of(ctx.deps)

        def find(name: str) -> Any:
            value = of_deps(name)
            return ctx.conversation_id if value is None and name == "session_id" else value

        return run_of(find, self.user_id, self.memd.settings.client.default_user)

    def _block(self, run: AgentRun) -> str:
        try:
            block = self.memd.inject(
                run.user_id,
                agent_name=self.agent_name,
                max_tokens=self.max_tokens,
                thread_id=run.thread_id,
                project_id=run.project_id,
            )
        except MemdError as error:  # the agent goes on without its memory
            _log.warning("%s %s", Event.INJECT_FAILED, error)
            return ""
        return with_note(block)


def _is_on(ctx: RunContext[Any]) -> bool:
    return enables_memory(values_of(ctx.deps))


def _turns(messages: Sequence[ModelMessage], run_id: str) -> Iterator[Turn]:
    """What user and agent said. What the agent says beside a call of a tool is said to nobody."""
    for number, message in enumerate(messages):
        if isinstance(message, ModelRequest):
            parts = [part for part in message.parts if isinstance(part, UserPromptPart)]
            text = "\n\n".join(filter(None, map(_words, parts)))
            turn = {"role": "user", "content": text}
            at = parts[0].timestamp if parts else None
        else:
            turn = {"role": "assistant", "content": _answer(message)}
            at = message.timestamp
        if turn["content"]:
            yield {**turn, "id": f"{run_id}-{number}", **({"created_at": at.isoformat()} if at else {})}


def _words(part: UserPromptPart) -> str:
    """The text of a prompt; pictures and files are no words."""
    if isinstance(part.content, str):
        return part.content
    pieces = (piece if isinstance(piece, str) else getattr(piece, "content", None) for piece in part.content)
    return "\n\n".join(piece for piece in pieces if isinstance(piece, str))


def _answer(message: ModelResponse) -> str:
    if any(isinstance(part, ToolCallPart) for part in message.parts):
        return ""
    return "".join(part.content for part in message.parts if isinstance(part, TextPart))
