"""OpenAI's Agents SDK: a session, the user's memory in the instructions, and tools.

The session has the SDK's `Session` protocol, without importing it: `Runner.run(agent, text, session=MemdSession(…))`.
Its window stays small, whatever the conversation's length, and what was said is pushed when it is saved.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, Self

from msgspec.structs import replace

from memd.adapters.agent_memory import with_note
from memd.adapters.agent_run import fields_of
from memd.adapters.memory_tools import MemoryTools
from memd.adapters.saving import saved
from memd.client import Memd
from memd.context import DEFAULT_AGENT
from memd.errors import MemdError
from memd.events import Event
from memd.session.chat import ChatBlock, ChatTurn, Other, Text, ToolResult, ToolUse, json_text
from memd.session.conversation import Session
from memd.session.reading_chats import read
from memd.session.window import window

_log = logging.getLogger("memd")

Item = dict[str, Any]
"""An item of the Responses API, as the SDK keeps it."""

FAKE_ID = "__fake_id__"
"""The id that the SDK gives to every answer of a model whose API gives none."""

_FILES = ("input_image", "input_file", "input_audio")


class MemdSession:
    """The conversation of one thread of one user.

    `session_id` is the thread's id. `max_tokens`: budget of the block in the instructions; None: the setting.
    `enable_memory` False: what is added stays in the window, nothing is pushed, and the instructions have no block.
    Methods raise Rejected, StoreUnavailable and SessionForgotten. While the inbox is out of reach what was said waits
    in the session.
    """

    session_settings: Any = None

    def __init__(
        self,
        memd: Memd,
        *,
        user_id: str,
        session_id: str,
        user_name: str | None = None,
        agent_name: str = DEFAULT_AGENT,
        max_tokens: int | None = None,
        enable_memory: bool = True,
    ) -> None:
        self.session_id = session_id
        self._memd = memd
        self._user_id = user_id
        self._user_name = user_name
        self._agent_name = agent_name
        self._max_tokens = max_tokens
        self._enabled = enable_memory
        self._session: Session | None = None
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    def of_run(cls, memd: Memd, config: object, **options: Any) -> Self:
        """The session of one run, by its configuration: as `LongTermMemory.of_run`, but for `project_id`, since what a
        session pushes stays private. Raises Rejected.
        """
        fields = fields_of(config, memd.settings)
        del fields["project_id"]
        return cls(memd, session_id=fields.pop("thread_id"), **fields, **options)

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The window, oldest first, with a summary in the place of what has left it; `limit`: only the newest."""
        async with self._one_at_a_time:
            session = await self._opened()
            limit = getattr(self.session_settings, "limit", None) if limit is None else limit
            items = [item for turn in window(session.messages, self._memd.settings.session) for item in _items(turn)]
            return items if limit is None else items[len(items) - min(limit, len(items)) :]

    async def add_items(self, items: Sequence[Any]) -> None:
        """Add the items of a turn, and save: one write, one push."""
        async with self._one_at_a_time:
            session = await self._opened()
            turns = [turn for item in items for turn in _turns(item)]
            for turn in turns:
                session.add(turn if self._enabled else replace(turn, kind="summary"))
            if turns:
                await asyncio.to_thread(saved, session)

    async def pop_item(self) -> Item | None:
        """Take the newest item out of the window, and return it. If it is not pushed yet, it never is."""
        async with self._one_at_a_time:
            session = await self._opened()
            if not session.messages:
                return None
            turn = session.messages[-1]
            session.delete(len(session.messages) - 1)
            await asyncio.to_thread(saved, session)
            return next(iter(reversed(list(_items(turn)))), None)

    async def clear_session(self) -> None:
        """Empty the window. What is not pushed yet still is."""
        async with self._one_at_a_time:
            session = await self._opened()
            session.clear()
            await asyncio.to_thread(saved, session)

    def instructions(self, text: str = "") -> Callable[[Any, Any], Awaitable[str]]:
        """The agent's instructions with the user's `<memory>` block behind them: `Agent(instructions=…)`.

        The block is read at each call of the model. When it cannot be read, the agent goes on without it.
        """

        async def with_memory(context: Any, agent: Any) -> str:
            block = await asyncio.to_thread(self._block) if self._enabled else ""
            return "\n\n".join(filter(None, [text, block]))

        return with_memory

    def tools(self) -> list[Callable[..., str]]:
        """`memory_save` and `memory_search` as functions: `Agent(tools=[function_tool(f) for f in session.tools()])`.

        None in a run without memory.
        """
        if not self._enabled:
            return []
        return MemoryTools(self._memd, self._user_id, agent_name=self._agent_name, thread_id=self.session_id).all()

    def _block(self) -> str:
        try:
            block = self._memd.inject(
                self._user_id,
                agent_name=self._agent_name,
                max_tokens=self._max_tokens,
                thread_id=self.session_id,
            )
        except MemdError as error:  # the agent goes on without its memory
            _log.warning("%s %s", Event.INJECT_FAILED, error)
            return ""
        return with_note(block)

    async def _opened(self) -> Session:
        if self._session is None:
            self._session = await asyncio.to_thread(
                self._memd.session,
                self.session_id,
                user_id=self._user_id,
                agent_name=self._agent_name,
                user_name=self._user_name,
            )
        return self._session


def _turns(item: object) -> Iterator[ChatTurn]:
    for turn in read(item):
        yield replace(turn, id="") if turn.id == FAKE_ID else turn


def _items(turn: ChatTurn) -> Iterator[Item]:
    """The items of a turn: its words, then each call or result. Blocks of other providers are left out."""
    words = [block for block in turn.blocks if isinstance(block, Text)]
    files = [part for block in turn.blocks if isinstance(block, Other) and (part := _file(block.raw))]
    if words and files and turn.role == "user":
        parts = [{"type": "input_text", "text": block.text} for block in words]
        yield {"role": "user", "content": [*parts, *files]}
    elif words:
        yield {"role": turn.role, "content": turn.text}
    for block in turn.blocks:
        yield from _item(block)


def _item(block: ChatBlock) -> Iterator[Item]:
    match block:
        case ToolUse(name, tool, given):
            yield {"type": "function_call", "call_id": name, "name": tool, "arguments": json_text(given)}
        case ToolResult(name):
            yield {"type": "function_call_output", "call_id": name, "output": block.text}
        case Other(raw) if "type" in raw and not _file(raw) and _is_item(raw):
            yield raw


def _is_item(raw: Item) -> bool:
    """Whether a block is an item of its own: a thought, or a call that the provider answers itself."""
    return raw["type"] == "reasoning" or str(raw["type"]).endswith(("_call", "_call_output"))


def _file(raw: Item) -> Item | None:
    return raw if raw.get("type") in _FILES else None
