"""Pushes the messages of a run when it ends. Those that could not be pushed wait in the thread's state."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from langchain_core.messages import AnyMessage, HumanMessage

from memd.adapters.agent_run import AgentRun
from memd.adapters.langchain.runs import MemdState, StateUpdate, is_conversation, messages_after, still_there
from memd.client import Memd
from memd.errors import MemdError, Rejected
from memd.events import Event

_log = logging.getLogger("memd")


class Outbox:
    """The messages not pushed yet, in the thread's state, and their pushes.

    `resent`: messages have new ids each time, so they are pushed without.
    """

    def __init__(self, memd: Memd, agent_name: str, *, resent: bool) -> None:
        self._memd = memd
        self._agent_name = agent_name
        self._resent = resent

    def begin(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Note the messages to push, above all the user's new one."""
        return self._note(state, run, _own(state))

    def before_model(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Push messages that a summary has discarded, due at once; note new ones."""
        if not self._has_lost(state):
            return self._note(state, run, None)
        return self._pushed(state, run, now=True)

    def shown(self, messages: list[AnyMessage], run: AgentRun, left_out: Collection[str]) -> list[AnyMessage]:
        """All messages, as the agent has them."""
        return messages

    def end(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Push the messages of this run, and those that still wait from earlier runs."""
        return self._pushed(state, run, now=self._has_lost(state))

    def _note(self, state: MemdState, run: AgentRun, own: Collection[str] | None) -> StateUpdate | None:
        """The messages that wait. `own`: ids of those of this run; None: all that are new."""
        waiting = self._waiting(state)
        if waiting == state.get("memd_waiting", []):
            return None
        return _update(state, {"memd_waiting": waiting}, _marks(state, run, waiting, own))

    def _waiting(self, state: MemdState) -> list[AnyMessage]:
        """The messages to push, in order: those that wait already, and those since the last push."""
        earlier = state.get("memd_waiting", [])
        known = {message.id for message in earlier} | set(state.get("memd_left_out", []))
        last = state.get("memd_pushed")
        return [
            *earlier,
            *(m for m in messages_after(state["messages"], last) if m.id not in known and is_conversation(m)),
        ]

    @staticmethod
    def _has_lost(state: MemdState) -> bool:
        """Whether a summary has discarded a message that waits."""
        present = {message.id for message in state["messages"]}
        return any(message.id not in present for message in state.get("memd_waiting", []))

    def _pushed(self, state: MemdState, run: AgentRun, *, now: bool) -> StateUpdate | None:
        waiting = self._waiting(state)
        marks = _marks(state, run, waiting, None)
        if waiting and not self._push(waiting, run, marks, now=now):
            return _update(state, {"memd_waiting": waiting}, marks)
        if self._resent:  # without ids, a message's identity depends on the one before: keep all until the end
            return _update(state, {"memd_waiting": waiting}, marks)
        messages = state["messages"]
        done: StateUpdate = {"memd_waiting": [], "memd_pushed": messages[-1].id if messages else None}
        if left_out := state.get("memd_left_out", []):
            done["memd_left_out"] = still_there(left_out, messages)
        return _update(state, done, {})

    def _push(self, waiting: Sequence[AnyMessage], run: AgentRun, marks: Mapping[str, str], *, now: bool) -> bool:
        """Push the messages, each marked for its project. Returns False when they have to wait."""
        named = run.user_name is not None
        try:
            for project_id, messages in groupby(waiting, lambda message: marks.get(message.id or "")):
                fields = {**run.push_fields, "project_id": project_id, "now": now}
                turns = [turn_of(message, with_id=not self._resent, named=named) for message in messages]
                for batch in self._batches(turns):
                    self._push_batch(batch, fields)
        except MemdError as error:  # the next step of this agent tries again
            _log.warning("%s %s", Event.PUSH_DELAYED, error)
            return False
        return True

    def _push_batch(self, batch: list[dict[str, Any]], fields: Mapping[str, Any]) -> None:
        try:
            self._memd.push(batch, agent_name=self._agent_name, **fields)
        except Rejected as error:
            if len(batch) == 1:  # memd will never accept it: logged, then dropped
                _log.error("%s %s", Event.PUSH_REFUSED, error)
                return
            for turn in batch:  # one bad message must not hold back the others
                self._push_batch([turn], fields)

    def _batches(self, turns: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        """The turns in batches within a push's limits: its messages, and half its bytes, since JSON adds some."""
        limits = self._memd.settings.client
        batch: list[dict[str, Any]] = []
        size = 0
        for turn in turns:
            more = sum(len(str(part.get("text", "")).encode(errors="replace")) for part in turn["content"])
            if batch and (len(batch) == limits.max_messages or size + more > limits.max_push_bytes // 2):
                yield batch
                batch, size = [], 0
            batch.append(turn)
            size += more
        if batch:
            yield batch


def _own(state: MemdState) -> Collection[str]:
    """The ids of the messages that a run begins with, as far as that is certain: a project gets no others.

    After a run that ended well they are all that follow it; else those from the user's last message on.
    """
    messages = state["messages"]
    new = messages_after(messages, state.get("memd_pushed"))
    if len(new) == len(messages) or state.get("memd_waiting"):
        said = [place for place, message in enumerate(new) if isinstance(message, HumanMessage)]
        new = new[said[-1] :] if said else ()
    return {message.id for message in new if message.id}


def _marks(
    state: MemdState, run: AgentRun, waiting: Sequence[AnyMessage], own: Collection[str] | None
) -> dict[str, str]:
    """The project of each message that waits: that of the run in which it was said."""
    before = state.get("memd_projects", {})
    earlier = {message.id for message in state.get("memd_waiting", [])}
    marks: dict[str, str] = {}
    for message in waiting:
        name = message.id or ""
        if message.id in earlier:
            project_id = before.get(name)
        else:
            project_id = run.project_id if own is None or name in own else None
        if project_id:
            marks[name] = project_id
    return marks


def _update(state: MemdState, update: StateUpdate, marks: dict[str, str]) -> StateUpdate:
    """The update with the marks of what waits, if there are or were any."""
    return {**update, "memd_projects": marks} if marks or state.get("memd_projects") else update


def turn_of(message: AnyMessage, *, with_id: bool, named: bool) -> dict[str, Any]:
    """Convert a message for `Memd.push`. Pictures and files are reduced to their type."""
    content = [message.content] if isinstance(message.content, str) else message.content
    turn: dict[str, Any] = {
        "role": "user" if isinstance(message, HumanMessage) else "assistant",
        "content": [_part(part) for part in content],
    }
    if named and message.name:
        turn["name"] = message.name
    return {**turn, "id": message.id} if with_id and message.id else turn


def _part(part: str | dict[Any, Any]) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type", "text")
    return {"type": kind, "text": part.get("text", "")} if kind == "text" else {"type": kind}
