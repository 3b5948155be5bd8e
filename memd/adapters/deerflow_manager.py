"""DeerFlow: memd as the memory backend. `memory.manager_class: memd.adapters.deerflow_manager:DeerFlowMemory`.

DeerFlow hands over the messages of a thread after each run; memd's daemon waits for quiet, extracts, and keeps the
memory. The buttons and tools that write facts are an agent's word here, since DeerFlow does not say who presses them:
they write notes, by the gates and limits of notes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, TypeVar

from deerflow.agents.memory.manager import MemoryCorruptionError, MemoryManager, MemoryManagerError
from langchain_core.messages import AnyMessage
from pydantic import PrivateAttr

from memd.adapters.agent_memory import AgentMemory, with_note
from memd.adapters.agent_run import AgentRun
from memd.adapters.langchain.outbox import turn_of
from memd.adapters.langchain.runs import is_conversation
from memd.adapters.waiting_turns import WaitingTurns
from memd.client import Memd
from memd.config import load
from memd.context import DEFAULT_AGENT
from memd.errors import ConfigError, DocumentDamaged, FactUnknown, MemdError, Rejected
from memd.events import Event
from memd.identifiers import check_identifier
from memd.recall.search import MAX_LIMIT, MAX_QUERY_CHARS

_log = logging.getLogger("memd")

OPTIONS = ("config_file", "default_user", "max_tokens", "storage_path")
"""What `memory.backend_config` may have. `storage_path` is DeerFlow's own, which it always adds; memd has its own."""

R = TypeVar("R")


class DeerFlowMemory(MemoryManager):  # type: ignore[misc]  # DeerFlow is not installed where types are checked
    """DeerFlow's `MemoryManager` over memd.

    `backend_config`: `config_file` (memd's config.yaml; by default found as always), `default_user` (whose memory it is
    where DeerFlow names no user; without it such a run has no memory), `max_tokens` (of the block; the setting by
    default). An outage stops no agent: writes wait in this process and go with the thread's next ones, and the prompt
    has no block meanwhile. Reads of the gateway raise MemoryManagerError, damaged documents MemoryCorruptionError, and
    refused facts ValueError, which DeerFlow shows as a bad request.
    """

    supports_search: ClassVar[bool] = True
    requires_passive_writes_in_tool_mode: ClassVar[bool] = True  # memd extracts from conversations in every mode

    _memd: Memd = PrivateAttr()
    _turns: dict[str, WaitingTurns] = PrivateAttr(default_factory=dict)
    _user: str | None = PrivateAttr(default=None)
    _max_tokens: int | None = PrivateAttr(default=None)

    def model_post_init(self, context: Any, /) -> None:
        """Read the options. Raises ConfigError."""
        options = dict(self.backend_config)
        if unknown := sorted(options.keys() - set(OPTIONS)):
            raise ConfigError(f"memory.backend_config of memd has no {', '.join(unknown)}; it has {', '.join(OPTIONS)}")
        file = options.get("config_file")
        self._memd = Memd(load(file=Path(file)).settings) if file else Memd()
        self._user = options.get("default_user") or self._memd.settings.client.default_user
        self._max_tokens = options.get("max_tokens")

    @classmethod
    def from_config(
        cls,
        backend_config: dict[str, Any] | None = None,
        *,
        mode: Literal["middleware", "tool"] = "middleware",
        **_: Any,
    ) -> Self:
        """As DeerFlow's factory makes it; its hooks for a model of its own are not needed."""
        return cls(backend_config=backend_config or {}, mode=mode)

    # --- the conversation ---

    def add(
        self,
        thread_id: str,
        messages: list[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Push what user and agent said; what was pushed before counts once. Raises nothing."""
        self._push(thread_id, messages, agent_name, user_id, now=False)

    def add_nowait(
        self, thread_id: str, messages: list[Any], *, agent_name: str | None = None, user_id: str | None = None
    ) -> None:
        """The same, due at once: a summary is about to take these messages out of the thread."""
        self._push(thread_id, messages, agent_name, user_id, now=True)

    def get_context(self, user_id: str | None, *, agent_name: str | None = None, thread_id: str | None = None) -> str:
        """The lines of the user's block; DeerFlow puts its own tags around them. "" for nobody, and in an outage."""
        user = user_id or self._user
        if not user:
            return ""
        try:
            block = self._memd.inject(
                user, agent_name=_agent(agent_name), max_tokens=self._max_tokens, thread_id=thread_id
            )
        except MemdError as error:  # the agent goes on without its memory
            _log.warning("%s %s", Event.INJECT_FAILED, error)
            return ""
        return with_note(block).removeprefix("<memory>\n").removesuffix("\n</memory>")

    def search(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[dict[str, Any]]:
        """The facts that match, best first; `category`: only these."""
        found = self._reading(
            lambda: self._memd.search(
                self._named(user_id),
                query[:MAX_QUERY_CHARS],
                agent_name=_agent(agent_name),
                limit=MAX_LIMIT if category else min(top_k, MAX_LIMIT),
                include_said=False,
            )
        )
        facts = (dict(hit.fact) for hit in found if not hit.pending)
        return [fact for fact in facts if category in (None, fact.get("category"))][:top_k]

    # --- the whole memory ---

    def get_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """The memory document, in DeerFlow's own shape."""
        return self._reading(lambda: self._memd.document(self._named(user_id), agent_name=_agent(agent_name)))

    reload_memory = get_memory
    export_memory = get_memory

    def clear_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Forget the user, or with an agent only what that agent knows; what is under way cannot bring it back."""
        user = self._named(user_id)
        self._reading(lambda: self._memd.forget(user, agent_name=agent_name))
        return self.get_memory(user_id=user, agent_name=agent_name)

    def delete_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> None:
        """The same, without an answer."""
        self.clear_memory(user_id=user_id, agent_name=agent_name)

    def import_memory(
        self, memory_data: dict[str, Any], *, user_id: str | None = None, agent_name: str | None = None
    ) -> dict[str, Any]:
        """Merge a memory of DeerFlow's shape; existing facts do not change. Raises ValueError."""
        user = self._named(user_id)
        self._reading(lambda: self._memd.import_memory(user, memory_data, agent_name=agent_name))
        return self.get_memory(user_id=user, agent_name=agent_name)

    # --- one fact ---

    def create_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> tuple[dict[str, Any], str | None]:
        """Keep a note; its confidence is that of every note. Raises ValueError with the reason for a refusal."""
        user = self._named(user_id)
        fact_id = self._reading(lambda: self._notes(user, agent_name).save(content, category))
        return self.get_memory(user_id=user, agent_name=agent_name), fact_id

    def update_fact(
        self,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
    ) -> dict[str, Any]:
        """Reword a fact, or give it another category. Raises KeyError for an unknown id, ValueError for a refusal."""
        user = self._named(user_id)
        words = self._fact(user, agent_name, fact_id)["content"] if content is None else content
        self._reading(lambda: self._notes(user, agent_name).update(fact_id, words, category))
        return self.get_memory(user_id=user, agent_name=agent_name)

    def delete_fact(self, fact_id: str, *, agent_name: str | None = None, user_id: str | None = None) -> dict[str, Any]:
        """Move a fact to the archive. Raises KeyError for an unknown id, ValueError for a refusal."""
        user = self._named(user_id)
        self._reading(lambda: self._notes(user, agent_name).retire(fact_id, "deleted in DeerFlow"))
        return self.get_memory(user_id=user, agent_name=agent_name)

    # --- the end ---

    def shutdown_flush(self, timeout: float) -> bool:
        """Push what waits in this process; what the inbox has accepted is safe without a flush. Whether all went."""
        went = [waiting.push_all() for waiting in self._turns.values()]
        return all(went)

    def close(self) -> None:
        """Close the client."""
        self._memd.close()

    def _push(
        self, thread_id: str, messages: list[Any], agent_name: str | None, user_id: str | None, *, now: bool
    ) -> None:
        agent, user = _agent(agent_name), user_id or self._user
        turns = list(_turns(messages))
        if not user or not turns:
            return
        try:
            run = AgentRun(check_identifier("user_id", user), check_identifier("thread_id", thread_id))
        except Rejected as error:
            _log.error("%s %s", Event.PUSH_REFUSED, error)
            return
        waiting = self._turns.setdefault(agent, WaitingTurns(self._memd, agent))
        waiting.push(run, turns, now=now)

    def _named(self, user_id: str | None) -> str:
        user = user_id or self._user
        if not user:
            raise ValueError("no user: DeerFlow named none, and memory.backend_config has no default_user")
        return user

    def _notes(self, user: str, agent_name: str | None) -> AgentMemory:
        return AgentMemory(self._memd.settings, user, _agent(agent_name))

    def _fact(self, user: str, agent_name: str | None, fact_id: str) -> dict[str, Any]:
        facts = self.get_memory(user_id=user, agent_name=agent_name)["facts"]
        found = next((fact for fact in facts if fact.get("id") == fact_id), None)
        if found is None:
            raise KeyError(fact_id)
        return dict(found)

    def _reading(self, work: Callable[[], R]) -> R:
        """Do it, with memd's errors as DeerFlow's."""
        try:
            return work()
        except FactUnknown:
            raise KeyError("there is no fact with this id") from None
        except Rejected as error:
            raise ValueError(str(error)) from None
        except DocumentDamaged as error:
            raise MemoryCorruptionError(str(error)) from error
        except MemdError as error:
            raise MemoryManagerError(str(error)) from error


def _agent(agent_name: str | None) -> str:
    return agent_name or DEFAULT_AGENT


def _turns(messages: list[AnyMessage]) -> Iterator[dict[str, Any]]:
    return (turn_of(message, with_id=True, named=False) for message in messages if is_conversation(message))
