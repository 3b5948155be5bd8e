"""Opening a session for a client: its store, and the summaries of the model that the settings name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

from memd.config import Settings
from memd.context import Key
from memd.identifiers import check_identifier
from memd.memory.hand.by_hand import bucket_of
from memd.memory.store.json_store import open_store
from memd.memory.store.sessions import Sessions
from memd.push.validation import check_name
from memd.session.compacting import Compactor, ModelOutage
from memd.session.conversation import Pushing, Session

__all__ = ["ModelOutage", "Opening", "bucket_of", "key_of", "opened", "stored"]


class Opening(Pushing, Protocol):
    """What opening a session needs of a client."""

    @property
    def outage(self) -> ModelOutage:
        """What its sessions know of an outage of the model."""
        ...

    @property
    def inject(self) -> Callable[..., str]:
        """The `<memory>` block of a user."""
        ...


def opened(client: Opening, key: Key, user_name: str | None) -> Session:
    """The session of a key, loaded. Raises StoreUnavailable, DocumentDamaged, DocumentTooNew, Rejected."""
    remembered = partial(client.inject, key.user_id, agent_name=key.agent_name, thread_id=key.thread_id)
    settings = client.settings
    compactor = Compactor(settings.session, settings.extraction, remembered, client.outage)
    session = Session(client, stored(settings), key, compactor, check_name("user_name", user_name))
    session.load_if_exists()
    return session


def stored(settings: Settings) -> Sessions:
    """The sessions of the store that the settings name."""
    return open_store(settings).sessions


def key_of(thread_id: str, user_id: str, agent_name: str) -> Key:
    """The key of unchecked ids. Raises Rejected."""
    bucket = bucket_of(user_id, agent_name)
    return Key(check_identifier("thread_id", thread_id), bucket.user_id, bucket.agent_name)
