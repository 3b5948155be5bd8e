"""The run of an agent: its part of the thread's state, and which of its messages anybody said."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NotRequired, Protocol

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from memd.adapters.agent_run import AgentRun
from memd.push.shapes import is_hidden

StateUpdate = dict[str, Any]


class MemdState(AgentState[Any]):
    """The middleware's part of the thread's state: messages not pushed yet, and the id of the last one pushed.

    `memd_left_out`: ids of the messages of runs without memory, which no later run pushes. `memd_projects`: the project
    of the run in which a message that waits was said, by its id.
    """

    memd_waiting: NotRequired[Annotated[list[AnyMessage], PrivateStateAttr]]
    memd_pushed: NotRequired[Annotated[str | None, PrivateStateAttr]]
    memd_left_out: NotRequired[Annotated[list[str], PrivateStateAttr]]
    memd_projects: NotRequired[Annotated[dict[str, str], PrivateStateAttr]]


class TurnsOfRuns(Protocol):
    """What becomes of the messages of a run: pushed when it ends, or kept in a session."""

    def begin(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """At the beginning of a run."""
        ...

    def before_model(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Before each call of the model."""
        ...

    def shown(self, messages: list[AnyMessage], run: AgentRun, left_out: Collection[str]) -> list[AnyMessage]:
        """The messages that the model gets. `left_out`: ids of those of runs without memory."""
        ...

    def end(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """At the end of a run."""
        ...


def named(runtime: Runtime[Any] | ToolRuntime[Any, Any], name: str) -> Any:
    """A value from the run's context, else from its configuration; None when neither has it."""
    context = runtime.context
    value = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    return get_config().get("configurable", {}).get(name) if value is None else value


def without_memory(state: MemdState) -> StateUpdate | None:
    """Note the messages of a run without memory: all since the last push, but those that wait for the next one."""
    waiting = {message.id for message in state.get("memd_waiting", [])}
    since = messages_after(state["messages"], state.get("memd_pushed"))
    new = [message.id for message in since if message.id and message.id not in waiting]
    before = state.get("memd_left_out", [])
    ids = list(dict.fromkeys([*still_there(before, state["messages"]), *new]))
    return None if ids == before else {"memd_left_out": ids}


def still_there(ids: Sequence[str], messages: Sequence[AnyMessage]) -> list[str]:
    """Those of these ids that messages have."""
    present = {message.id for message in messages}
    return [name for name in ids if name in present]


def messages_after(messages: Sequence[AnyMessage], last: str | None) -> Sequence[AnyMessage]:
    """The messages after the one with this id; all messages when it is gone, as a repeated push changes nothing."""
    for place in range(len(messages) - 1, -1, -1):
        if last is not None and messages[place].id == last:
            return messages[place + 1 :]
    return messages


def is_nobodys(message: AnyMessage) -> bool:
    """Whether nobody said it: it is a summary, or hidden from people."""
    extra = message.additional_kwargs
    return is_hidden({"additional_kwargs": extra}) or extra.get("lc_source") == "summarization"


def is_conversation(message: AnyMessage) -> bool:
    """Whether a message is part of the conversation: said by somebody, and no call or result of a tool."""
    if is_nobodys(message):
        return False
    return isinstance(message, HumanMessage) or (isinstance(message, AIMessage) and not message.tool_calls)
