"""LangChain and LangGraph: a middleware for `create_agent` that gives the agent its user's memory and remembers for it.

Before each model call the `<memory>` block joins the system message, which is in no state, so it is never pushed back.
After the agent what was said is pushed, with message ids. What is not pushed yet waits in the thread's own state: it
survives a summary that throws messages away (then it is pushed to be due at once), and an outage of memd.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, NotRequired, Self

from langchain.agents.middleware.types import (
    AgentMiddleware,
    AgentState,
    ModelRequest,
    ModelResponse,
    PrivateStateAttr,
)
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage
from langgraph.config import get_config
from langgraph.runtime import Runtime

from memd.adapters.agent_memory import with_note
from memd.client import Memd, in_thread
from memd.context import DEFAULT_AGENT
from memd.errors import MemdError, Rejected
from memd.events import Event
from memd.push.validation import check_identifier
from memd.recall.search import MAX_QUERY_CHARS

_log = logging.getLogger("memd")

Update = dict[str, Any]
Call = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncCall = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class MemdState(AgentState[Any]):
    """What the middleware keeps with the thread: messages not pushed yet, and the id of the last one that was seen."""

    memd_waiting: NotRequired[Annotated[list[AnyMessage], PrivateStateAttr]]
    memd_pushed: NotRequired[Annotated[str | None, PrivateStateAttr]]


class _Asked(NamedTuple):
    """Whose request this is; taken while it is alive."""

    user_id: str
    thread_id: str


class MemdMiddleware(AgentMiddleware[MemdState, Any, Any]):
    """Memory for an agent of LangChain; sync and async.

    User and thread come from the run: `context` (a mapping or an object) or `config["configurable"]`, by the names
    `user_id` and `thread_id`. A run that names none is refused with Rejected before the model is asked.

    `memd`: the client; None makes one from config.yaml and the environment. `user_id`: the only user this agent serves;
    then what the run says is not looked at. `resent`: the app sends the whole conversation with each run and no
    checkpointer keeps it; messages are then known by what they say, since LangGraph gives them new ids each time.
    `relevant`: the facts that answer the user's last message come first, so that a small budget holds these; the block
    is then another one for each message, which a prompt cache cannot hold.

    An outage of memd does not stop the agent: it is logged, and what was to be pushed waits in the thread's state.
    """

    state_schema = MemdState

    def __init__(
        self,
        memd: Memd | None = None,
        *,
        user_id: str | None = None,
        agent_name: str = DEFAULT_AGENT,
        max_tokens: int | None = None,
        resent: bool = False,
        relevant: bool = False,
    ) -> None:
        super().__init__()
        self._memd = memd or Memd()
        self._user_id = user_id
        self._agent_name = agent_name
        self._max_tokens = max_tokens
        self._resent = resent
        self._relevant = relevant

    def before_agent(self, state: MemdState, runtime: Runtime[Any]) -> Update | None:
        """Note what this run has to push: the user's new message above all."""
        self._asked(runtime)
        return self._noted(state)

    def before_model(self, state: MemdState, runtime: Runtime[Any]) -> Update | None:
        """Push at once what a summary has thrown away; note what is new."""
        if not self._lost(state):
            return self._noted(state)
        return self._pushed(state, self._asked(runtime), now=True)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Call) -> ModelResponse[Any]:
        """Add the memory to the system message of this call."""
        return handler(self._remembering(request, self._block(self._asked(request.runtime), request)))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncCall) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        block = await asyncio.to_thread(self._block, self._asked(request.runtime), request)
        return await handler(self._remembering(request, block))

    def after_agent(self, state: MemdState, runtime: Runtime[Any]) -> Update | None:
        """Push what was said in this run, and what still waits from earlier ones."""
        return self._pushed(state, self._asked(runtime), now=self._lost(state))

    @property
    def _sync(self) -> Self:
        return self

    abefore_agent = in_thread(before_agent)
    abefore_model = in_thread(before_model)
    aafter_agent = in_thread(after_agent)

    def _asked(self, runtime: Runtime[Any]) -> _Asked:
        """User and thread of this run. Raises Rejected."""
        user_id = self._user_id or _named(runtime, "user_id") or self._memd.settings.client.default_user
        return _Asked(
            check_identifier("user_id", user_id),
            check_identifier("thread_id", _named(runtime, "thread_id")),
        )

    def _block(self, asked: _Asked, request: ModelRequest[Any]) -> str:
        query = _last_said(request.messages) if self._relevant else None
        try:
            block = self._memd.inject(
                asked.user_id, agent_name=self._agent_name, max_tokens=self._max_tokens, query=query
            )
        except MemdError as error:  # the agent answers without its memory, which stays where it is
            _log.warning("%s %s", Event.INJECT_FAILED, error)
            return ""
        return with_note(block)

    @staticmethod
    def _remembering(request: ModelRequest[Any], block: str) -> ModelRequest[Any]:
        if not block:
            return request
        told = request.system_message.content if request.system_message else ""
        if isinstance(told, str):
            return request.override(system_message=SystemMessage(f"{told}\n\n{block}" if told else block))
        return request.override(system_message=SystemMessage([*told, {"type": "text", "text": block}]))

    def _noted(self, state: MemdState) -> Update | None:
        waiting = self._waiting(state)
        return None if waiting == state.get("memd_waiting", []) else {"memd_waiting": waiting}

    def _waiting(self, state: MemdState) -> list[AnyMessage]:
        """What is to be pushed, in order: what waits already, and what came since the last push."""
        earlier = state.get("memd_waiting", [])
        known = {message.id for message in earlier}
        last = state.get("memd_pushed")
        return [*earlier, *(m for m in _after(state["messages"], last) if m.id not in known and _is_said(m))]

    @staticmethod
    def _lost(state: MemdState) -> bool:
        """Whether a message that waits is no longer part of the conversation."""
        present = {message.id for message in state["messages"]}
        return any(message.id not in present for message in state.get("memd_waiting", []))

    def _pushed(self, state: MemdState, asked: _Asked, *, now: bool) -> Update | None:
        waiting = self._waiting(state)
        if waiting and not self._push(waiting, asked, now=now):
            return {"memd_waiting": waiting}
        if self._resent:  # a message without id is known by the one before it: the row stays whole until the run ends
            return {"memd_waiting": waiting}
        messages = state["messages"]
        return {"memd_waiting": [], "memd_pushed": messages[-1].id if messages else None}

    def _push(self, waiting: Sequence[AnyMessage], asked: _Asked, *, now: bool) -> bool:
        """Whether the messages are memd's now, or never will be; else they go on waiting."""
        turns = [_turn(message, with_id=not self._resent) for message in waiting]
        try:
            for batch in self._batches(turns):
                self._push_batch(batch, asked, now=now)
        except MemdError as error:  # they wait in the thread's state for the next step of this agent
            _log.warning("%s %s", Event.PUSH_DELAYED, error)
            return False
        return True

    def _push_batch(self, batch: list[dict[str, Any]], asked: _Asked, *, now: bool) -> None:
        try:
            self._memd.push(batch, **asked._asdict(), agent_name=self._agent_name, now=now)
        except Rejected as error:
            if len(batch) == 1:  # it will never be accepted: said once, and let go
                _log.error("%s %s", Event.PUSH_REFUSED, error)
                return
            for turn in batch:  # one bad message does not take the others along
                self._push_batch([turn], asked, now=now)

    def _batches(self, turns: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        """The turns in pushes of at most the count that one may have, and half the bytes, as JSON needs some."""
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


def _named(runtime: Runtime[Any], name: str) -> Any:
    """A value of the run's context, else of its configuration; None when neither has it."""
    context = runtime.context
    value = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    return get_config().get("configurable", {}).get(name) if value is None else value


def _after(messages: Sequence[AnyMessage], last: str | None) -> Sequence[AnyMessage]:
    """The messages behind the one with this id; all of them when it is gone, as pushing again changes nothing."""
    for place in range(len(messages) - 1, -1, -1):
        if last is not None and messages[place].id == last:
            return messages[place + 1 :]
    return messages


def _is_said(message: AnyMessage) -> bool:
    """Whether a message is part of the talk: not a tool's, not a summary's, not one that people never see."""
    extra = message.additional_kwargs
    if extra.get("hide_from_ui") or extra.get("lc_source") == "summarization":
        return False
    return isinstance(message, HumanMessage) or (isinstance(message, AIMessage) and not message.tool_calls)


def _last_said(messages: Sequence[AnyMessage]) -> str | None:
    """What the user said last, as far as it can be searched for."""
    said = (m.text for m in reversed(messages) if isinstance(m, HumanMessage) and _is_said(m))
    return next(said, "")[:MAX_QUERY_CHARS].strip() or None


def _turn(message: AnyMessage, *, with_id: bool) -> dict[str, Any]:
    """A message as memd takes it: of a picture or a file only that there was one."""
    content = [message.content] if isinstance(message.content, str) else message.content
    turn: dict[str, Any] = {
        "role": "user" if isinstance(message, HumanMessage) else "assistant",
        "content": [_part(part) for part in content],
    }
    return {**turn, "id": message.id} if with_id and message.id else turn


def _part(part: str | dict[Any, Any]) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type", "text")
    return {"type": kind, "text": part.get("text", "")} if kind == "text" else {"type": kind}
