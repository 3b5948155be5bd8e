"""The thread's session as the messages that a model gets: its window, in the place of everything the state holds.

Each step opens the session, adds the messages that it does not have, and saves it: saving compacts and pushes. The
session names the last message that it took, so it knows the new ones also when older ones have left the window.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from msgspec.structs import replace

from memd.adapters.agent_run import AgentRun
from memd.adapters.langchain.runs import MemdState, StateUpdate, is_nobodys, still_there
from memd.client import Memd
from memd.errors import MemdError, SessionChanged, SessionForgotten
from memd.events import Event
from memd.session.chat import ChatTurn, Other, Text, ToolResult
from memd.session.conversation import Session
from memd.session.reading_chats import read
from memd.session.window import window
from memd.session.writing_chats import OPENING

_log = logging.getLogger("memd")

ATTEMPTS = 3
"""Of a step, when another run of the same thread saves its session meanwhile."""


class Taken:
    """The session's component that knows the last message it took."""

    def __init__(self) -> None:
        self.last = ""

    def save_state(self) -> dict[str, Any]:
        """Its id."""
        return {"last": self.last}

    def load_state(self, state: dict[str, Any]) -> None:
        """Take it back."""
        self.last = str(state.get("last", ""))


class SessionWindow:
    """The sessions of an agent's threads (see `TurnsOfRuns`)."""

    def __init__(self, memd: Memd, agent_name: str) -> None:
        self._memd = memd
        self._agent_name = agent_name

    def begin(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Nothing: the call of the model takes the messages."""
        return None

    def before_model(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Nothing, for the same reason."""
        return None

    def shown(self, messages: list[AnyMessage], run: AgentRun, left_out: Collection[str]) -> list[AnyMessage]:
        """The window of the session, new messages included; all messages while it cannot be read or written."""
        session = self._saved(messages, run, left_out)
        if session is None:
            return messages
        return list(_written(window(session.messages, self._memd.settings.session), messages))

    def end(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Take the last messages of the run; the state notes how far it came."""
        messages, left_out = state["messages"], state.get("memd_left_out", [])
        if self._saved(messages, run, left_out) is None or not messages:
            return None
        taken: StateUpdate = {"memd_pushed": messages[-1].id}
        return {**taken, "memd_left_out": still_there(left_out, messages)} if left_out else taken

    def _saved(self, messages: Sequence[AnyMessage], run: AgentRun, left_out: Collection[str]) -> Session | None:
        """The session with all messages; None where that fails: the next step of this agent tries again."""
        try:
            for _ in range(ATTEMPTS - 1):
                try:
                    return self._taken(messages, run, left_out)
                except (SessionChanged, SessionForgotten):  # opened again, it has what the others wrote
                    continue
            return self._taken(messages, run, left_out)
        except MemdError as error:
            _log.warning("%s %s", Event.SESSION_FAILED, error)
            return None

    def _taken(self, messages: Sequence[AnyMessage], run: AgentRun, left_out: Collection[str]) -> Session:
        session = self._memd.session(
            run.thread_id, user_id=run.user_id, user_name=run.user_name, agent_name=self._agent_name
        )
        taken = Taken()
        session.add_component(taken, "langchain")
        _leave_branch(session, messages)
        known = {turn.id for turn in session.messages}
        new = [
            turn
            for message in _after(messages, taken.last)
            if message.id not in known
            for turn in _turns(message, run, kept_back=message.id in left_out)
        ]
        for turn in new:
            session.add(turn)
        taken.last = (messages[-1].id or "") if messages else ""
        if new:
            session.save()
        return session


def _after(messages: Sequence[AnyMessage], last: str) -> Sequence[AnyMessage]:
    """The messages behind the one with this id; all where it is not among them."""
    for place in range(len(messages) - 1, -1, -1):
        if messages[place].id == last:
            return messages[place + 1 :]
    return messages


def _leave_branch(session: Session, messages: Sequence[AnyMessage]) -> None:
    """Take the turns out of the window that the state went back from: a person edited a message, or asked again."""
    present = {message.id for message in messages}
    places = [place for place, turn in enumerate(session.messages) if turn.id in present]
    for place in reversed(range(places[-1] + 1 if places else len(session.messages), len(session.messages))):
        session.delete(place)


def _turns(message: AnyMessage, run: AgentRun, *, kept_back: bool) -> Iterator[ChatTurn]:
    """The turns of a message. Where nobody said it, or in a run without memory, it is in the window, never pushed."""
    kind = "summary" if kept_back or is_nobodys(message) else "said"
    for turn in read(message):
        name = None if run.user_name is None else turn.name
        yield replace(turn, id=message.id or turn.id, name=name, kind=kind)


def _written(turns: Sequence[ChatTurn], messages: Sequence[AnyMessage]) -> Iterator[AnyMessage]:
    """The turns as messages: those that the window shows whole are the messages of the state itself."""
    own = {message.id: message for message in messages}
    first = next((turn for turn in turns if turn.role != "system"), None)
    if first is None or first.role != "user":
        yield HumanMessage(OPENING)
    for turn in turns:
        message = own.get(turn.id)
        if message is not None and turn.blocks == tuple(block for whole in read(message) for block in whole.blocks):
            yield message
        else:
            yield from _message(turn)


def _message(turn: ChatTurn) -> Iterator[AnyMessage]:
    words = [_part(block) for block in turn.blocks if isinstance(block, Text | Other)]
    content: Any = turn.text if all(part["type"] == "text" for part in words) else words
    if turn.role == "tool":
        yield from map(_result, turn.results)
    elif turn.role == "assistant":
        calls = [{"name": use.name, "args": _given(use.input), "id": use.id} for use in turn.calls]
        yield AIMessage(content, tool_calls=calls, id=turn.id or None)
    elif turn.role == "system":
        yield SystemMessage(content, id=turn.id or None)
    else:
        yield HumanMessage(content, id=turn.id or None, name=turn.name)


def _result(result: ToolResult) -> ToolMessage:
    parts = [_part(block) for block in result.output]
    content: Any = result.text if all(part["type"] == "text" for part in parts) else parts
    return ToolMessage(content, tool_call_id=result.tool_use_id, status="error" if result.is_error else "success")


def _part(block: Text | Other) -> dict[str, Any]:
    return {"type": "text", "text": block.text} if isinstance(block, Text) else block.raw


def _given(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {"input": value}
