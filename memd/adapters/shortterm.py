"""Short-term memory with AgentScope's interface (`MemoryBase` of 1.x) over a session, without depending on AgentScope.

Use it as `ReActAgent(memory=ShortTermMemory(memd, user_id=…, thread_id=…, message=Msg))`. The session compacts, so the
agent needs no `compression_config`. What the framework adds for a moment (its hints, what it retrieved) is shown to the
model and is no part of the conversation: it is neither saved nor pushed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Self

from msgspec.structs import replace

from memd.adapters.agent_run import fields_of
from memd.adapters.longterm import RETRIEVED
from memd.adapters.saving import saved
from memd.client import Memd
from memd.context import DEFAULT_AGENT
from memd.session.chat import ChatBlock, ChatTurn, Other, Text, ToolResult, ToolUse
from memd.session.conversation import Session
from memd.session.reading_chats import read
from memd.session.window import window

KNOWLEDGE = "<retrieved_knowledge>"
"""How a ReActAgent begins what it found in its knowledge bases, as a message of the user."""


@dataclass
class ShownMessage:
    """A message with the fields of AgentScope's Msg."""

    name: str
    content: Any
    role: str
    id: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Note:
    """A message of the framework, and the id of the turn that it came behind."""

    behind: str
    message: Any
    marks: frozenset[str]


class ShortTermMemory:
    """The conversation of one thread, in a session of memd.

    `user_name`: the name of the user's messages, where others speak to the agent too; without it everything said to the
    agent counts as the user's. `enable_memory` False: what is added stays in the window and is never pushed.
    `message`: makes a message from `name`, `content` and `role`; pass AgentScope's `Msg`, the only type that its
    formatters accept. A class may inherit from this one and from AgentScope's base. Methods raise Rejected,
    StoreUnavailable and SessionForgotten.
    """

    def __init__(
        self,
        memd: Memd,
        *,
        user_id: str,
        thread_id: str,
        user_name: str | None = None,
        agent_name: str = DEFAULT_AGENT,
        message: Callable[..., Any] = ShownMessage,
        enable_memory: bool = True,
    ) -> None:
        super().__init__()
        self._kind: Literal["said", "summary"] = "said" if enable_memory else "summary"
        self._settings = memd.settings.session
        self._user_name = user_name
        self._message = message
        self._open = lambda: memd.session(thread_id, user_id=user_id, agent_name=agent_name, user_name=user_name)
        self._session: Session | None = None
        self._one_at_a_time = asyncio.Lock()
        self._notes: list[_Note] = []

    @classmethod
    def of_run(cls, memd: Memd, config: object, **options: Any) -> Self:
        """The memory for one run, by its configuration: as `LongTermMemory.of_run`, but for `project_id`: what a
        session pushes stays private. Raises Rejected.
        """
        fields = fields_of(config, memd.settings)
        del fields["project_id"]
        return cls(memd, **fields, **options)

    async def add(self, memories: Any, marks: str | Sequence[str] | None = None, **_: Any) -> None:
        """Add one or several messages and save the session; one whose id is there already is not added again.

        With `marks` they are the framework's, for this object alone.
        """
        given = _listed(memories)
        marked = frozenset([marks] if isinstance(marks, str) else marks or ())
        async with self._one_at_a_time:
            session = await self._opened()
            known = {turn.id for turn in session.messages} | {_field(note.message, "id") for note in self._notes}
            self._notes = [note for note in self._notes if note.behind in (known | {""})]
            new = [msg for msg in given if not _field(msg, "id") or _field(msg, "id") not in known]
            turns: list[ChatTurn] = []
            for msg in new:
                if marked or _is_retrieved(msg):
                    behind = turns[-1].id if turns else _last_id(session)
                    self._notes.append(_Note(behind, msg, marked))
                else:
                    turns += self._turns(msg)
            for turn in turns:
                session.add(turn)
            if turns:
                await asyncio.to_thread(saved, session)

    async def delete(self, msg_ids: Iterable[str], **_: Any) -> int:
        """Take messages out of the window by their ids; returns how many."""
        gone = frozenset(msg_ids)
        async with self._one_at_a_time:
            session = await self._opened()
            places = [place for place, turn in enumerate(session.messages) if turn.id in gone]
            for place in reversed(places):
                session.delete(place)
            if places:
                await asyncio.to_thread(saved, session)
            return len(places) + self._without(lambda note: _field(note.message, "id") in gone)

    async def delete_by_mark(self, mark: str | Sequence[str], **_: Any) -> int:
        """Remove the messages with one of these marks; returns how many."""
        marks = frozenset([mark] if isinstance(mark, str) else mark)
        return self._without(lambda note: bool(marks & note.marks))

    async def size(self) -> int:
        """How many messages there are."""
        return len((await self._opened()).messages) + len(self._notes)

    async def clear(self) -> None:
        """Empty the window. What is not pushed yet still is."""
        async with self._one_at_a_time:
            session = await self._opened()
            session.clear()
            self._notes.clear()
            await asyncio.to_thread(saved, session)

    async def get_memory(
        self, mark: str | None = None, exclude_mark: str | None = None, prepend_summary: bool = True, **_: Any
    ) -> list[Any]:
        """The window as the model is to see it. `mark`: only messages with it; `exclude_mark`: only those without.

        `prepend_summary`: with the summary of what has left the window.
        """
        session = await self._opened()
        notes = [note for note in self._notes if mark in (None, *note.marks) and exclude_mark not in note.marks]
        if mark is not None:
            return [note.message for note in notes]
        turns = window(session.messages, self._settings)
        return list(self._shown([turn for turn in turns if prepend_summary or turn.kind == "said" or turn.id], notes))

    async def update_messages_mark(
        self, new_mark: str | None, old_mark: str | None = None, msg_ids: Sequence[str] | None = None
    ) -> int:
        """Not offered: the framework marks messages that it has compressed, and here the session compacts."""
        raise NotImplementedError("the session compacts: leave compression_config out")

    async def _opened(self) -> Session:
        if self._session is None:
            self._session = await asyncio.to_thread(self._open)
        return self._session

    def _without(self, is_gone: Callable[[_Note], bool]) -> int:
        kept = [note for note in self._notes if not is_gone(note)]
        gone = len(self._notes) - len(kept)
        self._notes = kept
        return gone

    def _turns(self, msg: Any) -> Iterator[ChatTurn]:
        """The turns of a message: results of tools are one, everything else is another."""
        role = _field(msg, "role")
        content = _field(msg, "content")
        name = _field(msg, "name") if role == "assistant" or self._user_name is not None else None
        message = {
            "role": role,
            "content": content if isinstance(content, str) else [_block_in(block) for block in content or ()],
            "id": _field(msg, "id") or None,
            "created_at": _time(_field(msg, "timestamp")),
            "name": name or None,
        }
        yield from (replace(turn, kind=self._kind) for turn in read(message))

    def _shown(self, turns: Sequence[ChatTurn], notes: Sequence[_Note]) -> Iterator[Any]:
        """The turns as messages, each with the notes that came behind it; notes of turns that have left are dropped."""
        tools = {use.id: use.name for turn in turns for use in turn.calls}
        yield from (note.message for note in notes if not note.behind)
        for turn in turns:
            yield self._written(turn, tools)
            yield from (note.message for note in notes if note.behind and note.behind == turn.id)

    def _written(self, turn: ChatTurn, tools: Mapping[str, str]) -> Any:
        role = "system" if turn.role == "tool" else turn.role
        name = turn.name or (self._user_name if turn.role == "user" else None) or role
        only = turn.blocks[0] if len(turn.blocks) == 1 else None
        content = only.text if isinstance(only, Text) else [_block_out(block, tools) for block in turn.blocks]
        message = self._message(name=name, content=content, role=role)
        if turn.id:
            message.id = turn.id
        return message


def _is_retrieved(msg: Any) -> bool:
    """Whether the framework found it in a memory or a knowledge base, though it gives it to the user."""
    if _field(msg, "role") != "user":
        return False
    content = _field(msg, "content")
    first = content[0] if isinstance(content, list) and content else content
    text = first if isinstance(first, str) else _field(first, "text")
    return _field(msg, "name") == RETRIEVED or str(text).startswith(KNOWLEDGE)


def _block_in(block: Any) -> Any:
    """A block of AgentScope as one that memd reads: its results of tools name their call otherwise."""
    if _field(block, "type") != "tool_result":
        return block
    return {"type": "tool_result", "tool_use_id": _field(block, "id"), "content": _field(block, "output")}


def _block_out(block: ChatBlock, tools: Mapping[str, str]) -> dict[str, Any]:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case ToolUse(name, tool, given):
            return {"type": "tool_use", "id": name, "name": tool, "input": _given(given)}
        case ToolResult(name, output):
            parts = [_block_out(part, tools) for part in output]
            return {"type": "tool_result", "id": name, "name": tools.get(name, "tool"), "output": parts}
        case Other(raw):
            return raw


def _given(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"input": value}


def _time(timestamp: Any) -> str | None:
    """AgentScope's time, which is local, with its zone; None for any other text."""
    try:
        return datetime.fromisoformat(timestamp).astimezone().isoformat()
    except (TypeError, ValueError):
        return None


def _last_id(session: Session) -> str:
    return session.messages[-1].id if session.messages else ""


def _listed(memories: Any) -> list[Any]:
    if memories is None:
        return []
    return [msg for msg in memories if msg is not None] if isinstance(memories, list | tuple) else [memories]


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else getattr(value, name, None)
