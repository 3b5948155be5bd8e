"""A conversation with an agent of LangChain whose model answers from a list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import redis
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import PrivateAttr

from memd.adapters.langchain import MemdMiddleware
from memd.client import Memd
from memd.context import Key
from support.inbox_view import look, messages


class Scripted(BaseChatModel):
    """A chat model that answers from a list ("Noted." when it is used up), and keeps what it was asked."""

    answers: list[AIMessage] = []  # noqa: RUF012  (pydantic copies it for each instance)
    _asked: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def asked(self) -> list[list[BaseMessage]]:
        return self._asked

    @property
    def system(self) -> str:
        """The system message of the last call."""
        return "\n".join(message.text for message in self._asked[-1] if isinstance(message, SystemMessage))

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, AIMessage]:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self._asked.append(messages)
        answer = self.answers[len(self._asked) - 1] if len(self._asked) <= len(self.answers) else AIMessage("Noted.")
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy())])


@tool
def weather(city: str) -> str:
    """The weather."""
    return f"Rain in {city}."


def calls_weather() -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Porto"}, "id": "call-1"}])


@dataclass
class Chat:
    """A conversation with an agent that has a checkpointer: one thread of one user."""

    memd: Memd
    client: redis.Redis
    model: Scripted
    around: Sequence[AgentMiddleware[Any, Any, Any]] = ()
    thread: str = "t"
    user: str = "ana"
    fails: int = 0

    def __post_init__(self) -> None:
        self.agent = create_agent(
            self.model,
            tools=[weather],
            system_prompt="Be kind.",
            middleware=list(self.around) or [MemdMiddleware(self.memd)],
            checkpointer=InMemorySaver(),
        )

    def say(self, message: str | AnyMessage) -> list[AnyMessage]:
        """One run; the thread's messages after it."""
        config: Any = {"configurable": {"thread_id": self.thread, "user_id": self.user}}
        told = HumanMessage(message) if isinstance(message, str) else message
        state = self.agent.invoke({"messages": [told]}, config)
        found: list[AnyMessage] = state["messages"]
        return found

    @property
    def pending(self) -> list[tuple[str, str]]:
        """What waits in the inbox: roles and texts in order."""
        fields = look(self.client).pending.get(Key(self.thread, self.user).hash, {})
        return [(message.role, message.content) for message in messages(fields)]

    @property
    def is_due(self) -> bool:
        """Whether it waits for nothing any more."""
        seconds, micros = self.client.time()
        return look(self.client).due(Key(self.thread, self.user).hash) <= 1_000 * seconds + micros / 1_000
