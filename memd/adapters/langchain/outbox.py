"""Pushes the messages of a run when it ends. Those that could not be pushed wait in the thread's state."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
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

    def begin(self, state: MemdState) -> StateUpdate | None:
        """Note the messages to push, above all the user's new one."""
        return self._note(state)

    def before_model(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Push messages that a summary has discarded, due at once; note new ones."""
        if not self._has_lost(state):
            return self._note(state)
        return self._pushed(state, run, now=True)

    def shown(self, messages: list[AnyMessage], run: AgentRun, left_out: Collection[str]) -> list[AnyMessage]:
        """All messages, as the agent has them."""
        return messages

    def end(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Push the messages of this run, and those that still wait from earlier runs."""
        return self._pushed(state, run, now=self._has_lost(state))

    def _note(self, state: MemdState) -> StateUpdate | None:
        waiting = self._waiting(state)
        return None if waiting == state.get("memd_waiting", []) else {"memd_waiting": waiting}

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
        if waiting and not self._push(waiting, run, now=now):
            return {"memd_waiting": waiting}
        if self._resent:  # without ids, a message's identity depends on the one before: keep all until the end
            return {"memd_waiting": waiting}
        messages = state["messages"]
        done: StateUpdate = {"memd_waiting": [], "memd_pushed": messages[-1].id if messages else None}
        left_out = state.get("memd_left_out", [])
        return {**done, "memd_left_out": still_there(left_out, messages)} if left_out else done

    def _push(self, waiting: Sequence[AnyMessage], run: AgentRun, *, now: bool) -> bool:
        """Push the messages. Returns False when they could not be pushed and have to wait."""
        named = run.user_name is not None
        turns = [_turn(message, with_id=not self._resent, named=named) for message in waiting]
        try:
            for batch in self._batches(turns):
                self._push_batch(batch, run, now=now)
        except MemdError as error:  # the next step of this agent tries again
            _log.warning("%s %s", Event.PUSH_DELAYED, error)
            return False
        return True

    def _push_batch(self, batch: list[dict[str, Any]], run: AgentRun, *, now: bool) -> None:
        try:
            self._memd.push(batch, **run.push_fields, agent_name=self._agent_name, now=now)
        except Rejected as error:
            if len(batch) == 1:  # memd will never accept it: logged, then dropped
                _log.error("%s %s", Event.PUSH_REFUSED, error)
                return
            for turn in batch:  # one bad message must not hold back the others
                self._push_batch([turn], run, now=now)

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


def _turn(message: AnyMessage, *, with_id: bool, named: bool) -> dict[str, Any]:
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
