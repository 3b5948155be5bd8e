"""The session half of the clients: open a session, list and remove those of a user."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, cast

from memd.config import Settings
from memd.context import DEFAULT_AGENT

if TYPE_CHECKING:
    from memd.memory.store.sessions import SessionEntry
    from memd.session.compacting import ModelOutage
    from memd.session.conversation import Session
    from memd.session.opening import Opening


class OpensSessions:
    """Opens sessions. Every method raises Rejected and StoreUnavailable."""

    settings: Settings

    @cached_property
    def outage(self) -> ModelOutage:
        """What its sessions know of an outage of the model."""
        from memd.session import opening  # noqa: PLC0415  (an app without sessions starts without their code)

        return opening.ModelOutage()

    def session(
        self, thread_id: str, *, user_id: str, agent_name: str = DEFAULT_AGENT, user_name: str | None = None
    ) -> Session:
        """The session of this thread, as it was saved last, or a new one. What waited to be pushed is pushed.

        It is the only pusher of its thread. `user_name`: what the user is called, as in a push.
        Raises DocumentDamaged, DocumentTooNew.
        """
        from memd.session import opening  # noqa: PLC0415  (an app without sessions starts without their code)

        return opening.opened(cast("Opening", self), opening.key_of(thread_id, user_id, agent_name), user_name)

    def sessions(self, user_id: str, *, agent_name: str = DEFAULT_AGENT) -> list[SessionEntry]:
        """The stored sessions of a user with an agent, the one saved last first."""
        from memd.session import opening  # noqa: PLC0415  (an app without sessions starts without their code)

        return opening.stored(self.settings).entries(opening.bucket_of(user_id, agent_name))

    def remove_session(self, thread_id: str, *, user_id: str, agent_name: str = DEFAULT_AGENT) -> bool:
        """Remove a stored session with its checkpoints; whether there was one. The long-term memory stays as it is."""
        from memd.session import opening  # noqa: PLC0415  (an app without sessions starts without their code)

        return opening.stored(self.settings).remove(opening.key_of(thread_id, user_id, agent_name))
