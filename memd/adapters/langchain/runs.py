"""The run of an agent: whose it is, its part of the thread's state, and which of its messages anybody said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple, NotRequired, Protocol

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from memd.push.shapes import is_hidden

StateUpdate = dict[str, Any]


class MemdState(AgentState[Any]):
    """The middleware's part of the thread's state: messages not pushed yet, and the id of the last one pushed."""

    memd_waiting: NotRequired[Annotated[list[AnyMessage], PrivateStateAttr]]
    memd_pushed: NotRequired[Annotated[str | None, PrivateStateAttr]]


class AgentRun(NamedTuple):
    """The user and the thread of a run, and what the user is called, if the run says so."""

    user_id: str
    thread_id: str
    user_name: str | None


class TurnsOfRuns(Protocol):
    """What becomes of the messages of a run: pushed when it ends, or kept in a session."""

    def begin(self, state: MemdState) -> StateUpdate | None:
        """At the beginning of a run."""
        ...

    def before_model(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """Before each call of the model."""
        ...

    def shown(self, messages: list[AnyMessage], run: AgentRun) -> list[AnyMessage]:
        """The messages that the model gets."""
        ...

    def end(self, state: MemdState, run: AgentRun) -> StateUpdate | None:
        """At the end of a run."""
        ...


def named(runtime: Runtime[Any], name: str) -> Any:
    """A value from the run's context, else from its configuration; None when neither has it."""
    context = runtime.context
    value = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    return get_config().get("configurable", {}).get(name) if value is None else value


def is_nobodys(message: AnyMessage) -> bool:
    """Whether nobody said it: it is a summary, or hidden from people."""
    extra = message.additional_kwargs
    return is_hidden({"additional_kwargs": extra}) or extra.get("lc_source") == "summarization"


def is_conversation(message: AnyMessage) -> bool:
    """Whether a message is part of the conversation: said by somebody, and no call or result of a tool."""
    if is_nobodys(message):
        return False
    return isinstance(message, HumanMessage) or (isinstance(message, AIMessage) and not message.tool_calls)
