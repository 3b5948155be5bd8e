"""The reading half of the clients: inject, search, why, and the document itself."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.identifiers import check_identifier
from memd.memory.document import Document, Fact
from memd.memory.hand.by_hand import bucket_of
from memd.memory.scoped import Places

if TYPE_CHECKING:
    from datetime import datetime

    import redis

    from memd.memory.listing import SearchFilters
    from memd.recall.inject import Injection
    from memd.recall.past import Past
    from memd.recall.reader import Reader
    from memd.recall.search import Hits


def places_of(thread_id: str | None, project_id: str | None, app: str | None = None) -> Places:
    """What a read names, by unchecked ids. `app`: of the token that asks, if one does. Raises Rejected."""
    return Places(thread_id, check_identifier("project_id", project_id) if project_id else None, app)


class Reading:
    """Reads memories. The server is needed only for pending messages. Unknown users have an empty memory."""

    settings: Settings

    def _server(self) -> redis.Redis:
        raise NotImplementedError

    @cached_property
    def _reader(self) -> Reader:
        from memd.recall.reader import Reader  # noqa: PLC0415  (index and store are not for an app that only pushes)

        return Reader(self.settings, self._server)

    def inject(  # noqa: PLR0913  (what a read may name)
        self,
        user_id: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        max_tokens: int | None = None,
        query: str | None = None,
        thread_id: str | None = None,
        project_id: str | None = None,
        app: str | None = None,
        include_pending: bool = False,
        include_said: bool = True,
    ) -> str:
        """The `<memory>` block for the next prompt, within `max_tokens` (estimated); empty when nothing is known.

        `agent_name`: that agent's memory of the user, together with the user's own (`recall.with_user_memory`).
        `query`: facts that match it come first, among them excerpts of what was said, marked as not verified; an empty
        query is ignored. `include_said` False: no excerpts, and facts are found by their own words and quotes, not by
        the turns around them. `thread_id`: the conversation that asks, which sees its own facts too, and whose last
        turns give no excerpts; of an app with a list or token of its own `<app>/<thread_id>`, as in the `source` of
        facts. `project_id`: a project, whose facts are shown too where the user is a member;
        `app`: of the token that asks, if one does. `include_pending`: also
        show messages that are not extracted yet; this asks the server. The same memory gives the same bytes.
        Raises Rejected, StoreUnavailable, DocumentDamaged; with `include_pending` InboxUnavailable and NotReady.
        """
        return self.injection(
            user_id,
            agent_name=agent_name,
            max_tokens=max_tokens,
            query=query,
            thread_id=thread_id,
            project_id=project_id,
            app=app,
            include_pending=include_pending,
            include_said=include_said,
        ).text

    def injection(  # noqa: PLR0913  (as `inject`)
        self,
        user_id: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        max_tokens: int | None = None,
        query: str | None = None,
        thread_id: str | None = None,
        project_id: str | None = None,
        app: str | None = None,
        include_pending: bool = False,
        include_said: bool = True,
    ) -> Injection:
        """The block of `inject` with its version, which is equal exactly when the text is: an ETag."""
        bucket, places = bucket_of(user_id, agent_name), places_of(thread_id, project_id, app)
        return self._reader.injection(
            bucket, max_tokens, query, places, include_pending=include_pending, include_said=include_said
        )

    def injection_at_hand(
        self, bucket: Bucket, *, max_tokens: int | None = None, thread_id: str | None = None
    ) -> Injection | None:
        """The cached block if its memory has not changed, else None: for an event loop, which must not wait."""
        return self._reader.at_hand(bucket, max_tokens, places_of(thread_id, None))

    def search(  # noqa: PLR0913  (what a read may name)
        self,
        user_id: str,
        query: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        limit: int = 10,
        thread_id: str | None = None,
        project_id: str | None = None,
        app: str | None = None,
        include_pending: bool = False,
        include_said: bool = True,
        **filters: Unpack[SearchFilters],
    ) -> Hits:
        """The facts and excerpts (see `Found.kind`) that match a query, best first, at most `limit` (1 to 500).

        A list; its `words_only` says why a search with `vectors.url` went by words alone, if it did.

        Filters: `categories`, `scopes`, `member`, `since`, `until`, `by`, as in `facts`. Each fact found has `status`
        and `lastUsedAt` (before this search), too. `agent_name`, `thread_id`, `project_id`, `include_pending`,
        `include_said`: as in `inject`. Raises as `inject`.
        """
        bucket = bucket_of(user_id, agent_name)
        search = self._reader.check(query, limit, **filters)
        places = places_of(thread_id, project_id, app)
        return self._reader.search(bucket, search, places, include_pending=include_pending, include_said=include_said)

    def document(self, user_id: str, *, agent_name: str = DEFAULT_AGENT) -> Document:
        """The whole memory document of the user, or of one agent, as the store has it."""
        return self._reader.document(bucket_of(user_id, agent_name))

    def seen_document(
        self,
        user_id: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        thread_id: str | None = None,
        project_id: str | None = None,
    ) -> Document:
        """The document as a read of this conversation and project sees it: with their facts among the others, and
        without those of all others, archived or not."""
        return self._reader.seen_document(bucket_of(user_id, agent_name), places_of(thread_id, project_id))

    def past(
        self,
        user_id: str,
        at: datetime | str,
        *,
        agent_name: str = DEFAULT_AGENT,
        thread_id: str | None = None,
        project_id: str | None = None,
    ) -> Past:
        """The memory as it was believed at a moment: `document`, and in `missing` why it may be incomplete.

        `at`: a time, also as text in ISO 8601, in UTC where it names no zone; a day means its first moment. Raises
        Rejected when it is no time or in the future.
        """
        return self._reader.past(bucket_of(user_id, agent_name), at, places_of(thread_id, project_id))

    def inspect(self, user_id: str, agent_name: str = DEFAULT_AGENT) -> list[str]:
        """A sentence for each field of the wrong type (from an edit of the file), which is read as absent.

        Raises DocumentDamaged when the document cannot be read; unlike `document`, it leaves the damaged file in place.
        """
        return self._reader.inspect(bucket_of(user_id, agent_name))

    def why(
        self,
        user_id: str,
        fact_id: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        thread_id: str | None = None,
        project_id: str | None = None,
    ) -> dict[str, Any]:
        """The origin of a fact: quotes, times, model, replaced facts, and its state now. Raises FactUnknown.

        `thread_id`, `project_id`: of a fact that holds only there; without them it is unknown.
        """
        return self._reader.why(bucket_of(user_id, agent_name), fact_id, places_of(thread_id, project_id))

    def refused(self, user_id: str, *, agent_name: str = DEFAULT_AGENT) -> list[Fact]:
        """The last facts that were proposed and refused, the newest first, as many as `apply.keep_refused` says.

        Each has `content`, `refusedWhy` (docs/editing.md), `refusedAt`, `source` (its thread), and in `evidence` the
        quotes; one that stands in a message names it, any other is only the model's. For people, never for a prompt.
        """
        return self._reader.refused(bucket_of(user_id, agent_name))
