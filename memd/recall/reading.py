"""Reading memories: the other half of the clients. Inject, search, and the document itself."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.memory.document import Document
from memd.memory.hand.by_hand import bucket_of

if TYPE_CHECKING:
    import redis

    from memd.recall.inject import Injection
    from memd.recall.reader import Reader
    from memd.recall.search import Found

Time = datetime | str | None
"""A moment, or ISO 8601 text; without a zone it is UTC."""


class Reading:
    """What `Memd` reads with. Needs no server but for what is pending. Unknown users have an empty memory."""

    settings: Settings

    def _server(self) -> redis.Redis:
        raise NotImplementedError

    @cached_property
    def _reader(self) -> Reader:
        from memd.recall.reader import Reader  # noqa: PLC0415  (not for an app that only pushes)

        return Reader(self.settings, self._server)

    def inject(
        self,
        user_id: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        max_tokens: int | None = None,
        query: str | None = None,
        include_pending: bool = False,
    ) -> str:
        """The `<memory>` block for the next prompt, within `max_tokens` (estimated); empty when nothing is known.

        `agent_name`: that agent's memory of the user, together with the user's own (`recall.with_user_memory`).
        `query`: the facts that answer it best come first; an empty one is none. `include_pending`: also what the user
        has said and nothing was extracted from yet; this asks the server. The same memory gives the same bytes.
        Raises Rejected, StoreUnavailable, DocumentDamaged; with `include_pending` InboxUnavailable and NotReady.
        """
        return self.injection(
            user_id, agent_name=agent_name, max_tokens=max_tokens, query=query, include_pending=include_pending
        ).text

    def injection(
        self,
        user_id: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        max_tokens: int | None = None,
        query: str | None = None,
        include_pending: bool = False,
    ) -> Injection:
        """The block of `inject` with its version, which is equal exactly when the text is: an ETag."""
        from memd.recall.search import everything  # noqa: PLC0415  (as above)

        bucket = bucket_of(user_id, agent_name)
        wanted = everything(query) if query else None
        return self._reader.injection(bucket, max_tokens, wanted, include_pending=include_pending)

    def injection_at_hand(self, bucket: Bucket, *, max_tokens: int | None = None) -> Injection | None:
        """The block if it was made before and its memory has not changed: for an event loop, which must not wait."""
        return self._reader.at_hand(bucket, max_tokens)

    def search(
        self,
        user_id: str,
        query: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        limit: int = 10,
        categories: Collection[str] = (),
        since: Time = None,
        until: Time = None,
        include_pending: bool = False,
    ) -> list[Found]:
        """The facts that answer a query, best first, at most `limit` (1 to 500); none when nothing does.

        `categories`: only these. `since`, `until`: learned or changed in this period, its end excluded.
        `agent_name`, `include_pending`: as in `inject`. Raises as `inject`.
        """
        from memd.recall.search import check  # noqa: PLC0415  (as above)

        wanted = check(query, limit, categories, since, until)
        return self._reader.search(bucket_of(user_id, agent_name), wanted, include_pending=include_pending)

    def document(self, user_id: str, *, agent_name: str = DEFAULT_AGENT) -> Document:
        """The whole memory document of the user, or of one agent, as it stands in the store."""
        return self._reader.document(bucket_of(user_id, agent_name))
