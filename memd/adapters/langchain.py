"""LangChain and LangGraph: a middleware for `create_agent` that gives the agent its user's memory and remembers for it.

Before each model call, the `<memory>` block is added to the system message, which is not part of the state, so that the
block is never pushed. After the agent has run, its messages are pushed with their ids. Messages not pushed yet wait in
the thread's state: they survive an outage of memd, and a summary that discards messages (then they are due at once).
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
from memd.asynchronous import in_thread
from memd.client import Memd
from memd.context import DEFAULT_AGENT
from memd.errors import MemdError, Rejected
from memd.events import Event
from memd.identifiers import check_identifier
from memd.push.shapes import is_hidden
from memd.push.validation import check_name
from memd.recall.search import MAX_QUERY_CHARS

_log = logging.getLogger("memd")

StateUpdate = dict[str, Any]
Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class MemdState(AgentState[Any]):
    """The middleware's part of the thread's state: messages not pushed yet, and the id of the last one pushed."""

    memd_waiting: NotRequired[Annotated[list[AnyMessage], PrivateStateAttr]]
    memd_pushed: NotRequired[Annotated[str | None, PrivateStateAttr]]


class _Run(NamedTuple):
    """The user and the thread of a run, and what the user is called, if the run says so."""

    user_id: str
    thread_id: str
    user_name: str | None


class MemdMiddleware(AgentMiddleware[MemdState, Any, Any]):
    """Memory for a LangChain agent, sync and async.

    The run names its user and thread as `user_id` and `thread_id` in `context` (a mapping or an object) or in
    `config["configurable"]`. A run without them is refused with Rejected before the model is called. Where the run also
    has a `user_name`, messages are pushed with the `name` of their speaker; others than the user may speak then.

    `memd`: the client; None creates one from config.yaml and the environment. `user_id`: the only user that this agent
    serves; the run's `user_id` is then ignored. `max_tokens`: budget of the block; None: the setting. `resent`: the app
    sends the whole conversation with each run and has no checkpointer; messages are then identified by their content,
    because LangGraph gives them new ids each time. `relevant`: facts that match the user's last message come first, so
    a small budget holds them; the block then changes with each message, so a prompt cache cannot reuse it.

    An outage of memd does not stop the agent: it is logged, and the messages wait in the thread's state.
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

    def before_agent(self, state: MemdState, runtime: Runtime[Any]) -> StateUpdate | None:
        """Note the messages to push, above all the user's new one."""
        self._run(runtime)
        return self._note(state)

    def before_model(self, state: MemdState, runtime: Runtime[Any]) -> StateUpdate | None:
        """Push messages that a summary has discarded, due at once; note new ones."""
        if not self._has_lost(state):
            return self._note(state)
        return self._pushed(state, self._run(runtime), now=True)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        """Add the `<memory>` block to the system message of this call."""
        return handler(self._with_block(request, self._block(self._run(request.runtime), request)))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> ModelResponse[Any]:
        """`wrap_model_call`, async."""
        block = await asyncio.to_thread(self._block, self._run(request.runtime), request)
        return await handler(self._with_block(request, block))

    def after_agent(self, state: MemdState, runtime: Runtime[Any]) -> StateUpdate | None:
        """Push the messages of this run, and those that still wait from earlier runs."""
        return self._pushed(state, self._run(runtime), now=self._has_lost(state))

    @property
    def _sync(self) -> Self:
        return self

    abefore_agent = in_thread(before_agent)
    abefore_model = in_thread(before_model)
    aafter_agent = in_thread(after_agent)

    def _run(self, runtime: Runtime[Any]) -> _Run:
        """User and thread of this run. Raises Rejected."""
        user_id = self._user_id or _named(runtime, "user_id") or self._memd.settings.client.default_user
        return _Run(
            check_identifier("user_id", user_id),
            check_identifier("thread_id", _named(runtime, "thread_id")),
            check_name("user_name", _named(runtime, "user_name")),
        )

    def _block(self, run: _Run, request: ModelRequest[Any]) -> str:
        query = _last_user_text(request.messages) if self._relevant else None
        try:
            block = self._memd.inject(
                run.user_id,
                agent_name=self._agent_name,
                max_tokens=self._max_tokens,
                query=query,
                thread_id=run.thread_id,
            )
        except MemdError as error:  # the agent goes on without its memory
            _log.warning("%s %s", Event.INJECT_FAILED, error)
            return ""
        return with_note(block)

    @staticmethod
    def _with_block(request: ModelRequest[Any], block: str) -> ModelRequest[Any]:
        if not block:
            return request
        text = request.system_message.content if request.system_message else ""
        if isinstance(text, str):
            return request.override(system_message=SystemMessage(f"{text}\n\n{block}" if text else block))
        return request.override(system_message=SystemMessage([*text, {"type": "text", "text": block}]))

    def _note(self, state: MemdState) -> StateUpdate | None:
        waiting = self._waiting(state)
        return None if waiting == state.get("memd_waiting", []) else {"memd_waiting": waiting}

    def _waiting(self, state: MemdState) -> list[AnyMessage]:
        """The messages to push, in order: those that wait already, and those since the last push."""
        earlier = state.get("memd_waiting", [])
        known = {message.id for message in earlier}
        last = state.get("memd_pushed")
        return [
            *earlier,
            *(m for m in _messages_after(state["messages"], last) if m.id not in known and _is_conversation(m)),
        ]

    @staticmethod
    def _has_lost(state: MemdState) -> bool:
        """Whether a summary has discarded a message that waits."""
        present = {message.id for message in state["messages"]}
        return any(message.id not in present for message in state.get("memd_waiting", []))

    def _pushed(self, state: MemdState, run: _Run, *, now: bool) -> StateUpdate | None:
        waiting = self._waiting(state)
        if waiting and not self._push(waiting, run, now=now):
            return {"memd_waiting": waiting}
        if self._resent:  # without ids, a message's identity depends on the one before: keep all until the end
            return {"memd_waiting": waiting}
        messages = state["messages"]
        return {"memd_waiting": [], "memd_pushed": messages[-1].id if messages else None}

    def _push(self, waiting: Sequence[AnyMessage], run: _Run, *, now: bool) -> bool:
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

    def _push_batch(self, batch: list[dict[str, Any]], run: _Run, *, now: bool) -> None:
        try:
            self._memd.push(batch, **run._asdict(), agent_name=self._agent_name, now=now)
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


def _named(runtime: Runtime[Any], name: str) -> Any:
    """A value from the run's context, else from its configuration; None when neither has it."""
    context = runtime.context
    value = context.get(name) if isinstance(context, Mapping) else getattr(context, name, None)
    return get_config().get("configurable", {}).get(name) if value is None else value


def _messages_after(messages: Sequence[AnyMessage], last: str | None) -> Sequence[AnyMessage]:
    """The messages after the one with this id; all messages when it is gone, as a repeated push changes nothing."""
    for place in range(len(messages) - 1, -1, -1):
        if last is not None and messages[place].id == last:
            return messages[place + 1 :]
    return messages


def _is_conversation(message: AnyMessage) -> bool:
    """Whether a message is part of the conversation: not a tool's, not a summary, not hidden from people."""
    extra = message.additional_kwargs
    if is_hidden({"additional_kwargs": extra}) or extra.get("lc_source") == "summarization":
        return False
    return isinstance(message, HumanMessage) or (isinstance(message, AIMessage) and not message.tool_calls)


def _last_user_text(messages: Sequence[AnyMessage]) -> str | None:
    """The user's last message, cut to what search accepts."""
    texts = (m.text for m in reversed(messages) if isinstance(m, HumanMessage) and _is_conversation(m))
    return next(texts, "")[:MAX_QUERY_CHARS].strip() or None


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
