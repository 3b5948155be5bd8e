"""Checkpoints: what an agent needs to go on after a page refresh, a crash, or an approval by a person."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from memd.context import Key
from memd.errors import Rejected
from memd.memory.store.sessions import CheckpointEntry, Sessions, StoredSession
from memd.push.times import iso
from memd.session import states
from memd.session.chat import ChatTurn
from memd.session.states import Held

LATEST = "latest"


class Checkpoint(NamedTuple):
    """A checkpoint as it was made. The app knows what its three values mean."""

    id: str
    at: str
    agent_state: Any
    tool_states: Any
    pending_tool_calls: Any


class Checkpointing:
    """The checkpoints of a session. Methods raise StoreUnavailable."""

    key: Key
    _sessions: Sessions
    _loaded: StoredSession

    def save(self) -> None:
        """Save the session."""
        raise NotImplementedError

    def _content(self) -> Held:
        raise NotImplementedError

    def _take_back(self, turns: Iterable[ChatTurn], business_state: str) -> None:
        raise NotImplementedError

    def checkpoint(
        self, *, agent_state: object = None, tool_states: object = None, pending_tool_calls: object = None
    ) -> str:
        """Save the session, and this moment of it; returns the id of the checkpoint. The values: of JSON.

        `pending_tool_calls`: those that wait for a person. Raises Rejected, and what `save` raises.
        """
        self.save()
        checkpoint_id = f"cp_{time.time_ns() // 1_000_000:013d}_{secrets.token_hex(4)}"
        values = {"agentState": agent_state, "toolStates": tool_states, "pendingToolCalls": pending_tool_calls}
        state = states.state_of(self.key, self._content(), {})
        self._sessions.put_checkpoint(self.key, self._loaded, checkpoint_id, {**state, **values})
        return checkpoint_id

    def restore(self, id: str = LATEST) -> Checkpoint:
        """Put the turns of a checkpoint in the place of the window; its values. The next save stores the window.

        Raises Rejected for an unknown id, DocumentDamaged.
        """
        if id == LATEST:
            id = next((entry.id for entry in reversed(self.checkpoints())), "none")
        state = self._sessions.checkpoint(self.key, id)
        if state is None:
            raise Rejected("E_CHECKPOINT", "there is no checkpoint with this id", "id")
        content = states.content_of(state)
        self._take_back(content.turns, content.business_state)
        values = (state.get(name) for name in ("agentState", "toolStates", "pendingToolCalls"))
        return Checkpoint(id, str(state.get("timestamp", "")), *values)

    def checkpoints(self) -> list[CheckpointEntry]:
        """The checkpoints, oldest first."""
        return self._sessions.checkpoints(self.key)

    def prune(self, keep: int = 1, older_than: timedelta | None = None) -> int:
        """Move checkpoints to the archive, which `session.keep_days` empties; returns how many.

        `keep`: the newest that stay. `older_than`: only those that are older.
        """
        entries = self.checkpoints()
        before = None if older_than is None else iso(datetime.now(UTC) - older_than)
        old = [entry.id for entry in entries[: max(0, len(entries) - keep)] if before is None or entry.at < before]
        return self._sessions.archive(self.key, old)
