"""The middleware for `create_agent`.

Before each model call, the `<memory>` block is added to the system message, which is not part of the state, so that the
block is never pushed. The messages of a run go into the outbox, or with `session=True` into a session.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Self, cast

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import AnyMessage, HumanMessage, SystemMessage
from langgraph.runtime import Runtime

from memd.adapters.agent_memory import with_note
from memd.adapters.agent_run import AgentRun, Find, enables_memory, run_of
from memd.adapters.langchain.outbox import Outbox
from memd.adapters.langchain.runs import MemdState, StateUpdate, TurnsOfRuns, is_conversation, named, without_memory
from memd.adapters.langchain.window import SessionWindow
from memd.asynchronous import in_thread
from memd.client import Memd
from memd.context import DEFAULT_AGENT
from memd.errors import ConfigError, MemdError
from memd.events import Event
from memd.recall.search import MAX_QUERY_CHARS

_log = logging.getLogger("memd")

Handler = Callable[[ModelRequest[Any]], ModelResponse[Any]]
AsyncHandler = Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]


class MemdMiddleware(AgentMiddleware[MemdState, Any, Any]):
    """Memory for a LangChain agent, sync and async.

    The run names its user and thread as `user_id` and `thread_id` (or `session_id`) in `context` (a mapping or an
    object) or in `config["configurable"]`. A run without them is refused with Rejected before the model is called.
    Where the run also has a `user_name`, messages are pushed with the `name` of their speaker; others than the user may
    speak then. With a `project_id` the block has that project's facts, and the messages that it pushes are marked for
    it (a session's are not). A run with `enable_memory` False gets no block and pushes nothing; no later run pushes its
    messages.

    `memd`: the client; None creates one from config.yaml and the environment. `user_id`: the only user that this agent
    serves; the run's `user_id` is then ignored. `max_tokens`: budget of the block; None: the setting. `resent`: the app
    sends the whole conversation with each run and has no checkpointer; messages are then identified by their content,
    because LangGraph gives them new ids each time. `relevant`: facts that match the user's last message come first, so
    a small budget holds them; the block then changes with each message, so a prompt cache cannot reuse it. `session`:
    the model gets the window of a session of the thread, which a compaction keeps small, whatever the state holds; what
    it cuts is pushed. Raises ConfigError for a session with `resent`: its messages need ids that stay.

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
        session: bool = False,
    ) -> None:
        super().__init__()
        if session and resent:
            raise ConfigError("a session needs ids that stay: use a checkpointer, or send only new messages")
        self._memd = memd or Memd()
        self._user_id = user_id
        self._agent_name = agent_name
        self._max_tokens = max_tokens
        self._relevant = relevant
        self._turns: TurnsOfRuns = (
            SessionWindow(self._memd, agent_name) if session else Outbox(self._memd, agent_name, resent=resent)
        )

    def before_agent(self, state: MemdState, runtime: Runtime[Any]) -> StateUpdate | None:
        """Note the messages of the run, above all the user's new one."""
        if not enables_memory(_values(runtime)):
            return without_memory(state)
        return self._turns.begin(state, self._run(runtime))

    def before_model(self, state: MemdState, runtime: Runtime[Any]) -> StateUpdate | None:
        """Hand over what a summary has discarded."""
        if not enables_memory(_values(runtime)):
            return without_memory(state)
        return self._turns.before_model(state, self._run(runtime))

    def wrap_model_call(self, request: ModelRequest[Any], handler: Handler) -> ModelResponse[Any]:
        """Add the `<memory>` block to the system message of this call; with a session show its window."""
        return handler(self._request(request))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: AsyncHandler) -> ModelResponse[Any]:
        """`wrap_model_call`, async."""
        return await handler(await asyncio.to_thread(self._request, request))

    def after_agent(self, state: MemdState, runtime: Runtime[Any]) -> StateUpdate | None:
        """Push the messages of this run, and those that still wait from earlier runs."""
        if not enables_memory(_values(runtime)):
            return without_memory(state)
        return self._turns.end(state, self._run(runtime))

    @property
    def _sync(self) -> Self:
        return self

    abefore_agent = in_thread(before_agent)
    abefore_model = in_thread(before_model)
    aafter_agent = in_thread(after_agent)

    def _run(self, runtime: Runtime[Any]) -> AgentRun:
        """User and thread of this run. Raises Rejected."""
        return run_of(_values(runtime), self._user_id, self._memd.settings.client.default_user)

    def _request(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if not enables_memory(_values(request.runtime)):
            return request
        run = self._run(request.runtime)
        block = self._block(run, request)
        left_out: list[str] = cast("MemdState", request.state).get("memd_left_out", [])
        return self._with_block(request.override(messages=self._turns.shown(request.messages, run, left_out)), block)

    def _block(self, run: AgentRun, request: ModelRequest[Any]) -> str:
        query = _last_user_text(request.messages) if self._relevant else None
        try:
            block = self._memd.inject(
                run.user_id,
                agent_name=self._agent_name,
                max_tokens=self._max_tokens,
                query=query,
                thread_id=run.thread_id,
                project_id=run.project_id,
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


def _values(runtime: Runtime[Any]) -> Find:
    return partial(named, runtime)


def _last_user_text(messages: Sequence[AnyMessage]) -> str | None:
    """The user's last message, cut to what search accepts."""
    texts = (m.text for m in reversed(messages) if isinstance(m, HumanMessage) and is_conversation(m))
    return next(texts, "")[:MAX_QUERY_CHARS].strip() or None
