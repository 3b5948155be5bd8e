"""The editing half of the clients: facts by hand, export and import. It needs the documents, not the server."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.identifiers import check_identifier
from memd.memory.document import Fact

if TYPE_CHECKING:
    from memd.memory.hand.editing import Editing
    from memd.memory.hand.transfer import Imported, Transfer
    from memd.memory.listing import ArchiveFilters, ListFilters


def bucket_of(user_id: str, agent_name: str) -> Bucket:
    """The bucket of unchecked ids. Raises Rejected."""
    return Bucket(
        check_identifier("user_id", user_id),
        check_identifier("agent_name", agent_name) if agent_name else DEFAULT_AGENT,
    )


class ByHand:
    """Edits memories. Each edit is one write, which a concurrent worker cannot lose.

    Every method raises Rejected (code, field, limit; nothing changed), StoreUnavailable, and DocumentDamaged with the
    place of the damage in the file.
    """

    settings: Settings

    @property
    def _editing(self) -> Editing:
        return self._transfer.editing

    @cached_property
    def _transfer(self) -> Transfer:
        from memd.memory.hand.transfer import Transfer  # noqa: PLC0415  (the gates' patterns are not for an app that only pushes)

        return Transfer(self.settings)

    def facts(self, user_id: str, agent_name: str = DEFAULT_AGENT, **filters: Unpack[ListFilters]) -> list[Fact]:
        """The facts of a memory, oldest first, and with `status` other than active the archived ones, latest last.

        Each with two fields that no document stores: `status` (active; superseded, by another fact; archived, for any
        other reason) and `lastUsedAt` (when a search last found it; None: never, as far as the notes know). Filters:
        `categories`, `scopes` (user, project, session), `status` (active, superseded, archived, all), `member` (who
        brought a project's fact in), `since` and `until` (its end excluded) with `by`: the time that counts, `learned`
        (added or last changed; the default) or `said`; `places`: only what holds everywhere or there; None: facts of
        every conversation and project, too. A list is no reading: it changes no `lastUsedAt`.
        """
        return self._editing.facts(bucket_of(user_id, agent_name), **filters)

    def archived(
        self,
        user_id: str,
        agent_name: str = DEFAULT_AGENT,
        *,
        reason: str | None = None,
        **filters: Unpack[ArchiveFilters],
    ) -> list[Fact]:
        """The archived facts, the latest last, each with `archivedAt`, `archiveReason` and maybe `archiveNote`.

        `reason`: only this archive reason. Fields and filters: as in `facts`, of which they are those not active.
        """
        return self._editing.archived(bucket_of(user_id, agent_name), reason, **filters)

    def withheld(self, user_id: str, agent_name: str = DEFAULT_AGENT) -> list[dict[str, Any]]:
        """What is held back from the model: `fact`, `wanted`, `why`, `at`, `source` and maybe `note`.

        `wanted` is `forgotten` for a suspended fact, whose `content` the entry has: `remove_fact` or `restore_fact`.
        """
        return self._editing.withheld(bucket_of(user_id, agent_name))

    def add_fact(
        self,
        user_id: str,
        content: str,
        *,
        category: str | None = None,
        agent_name: str = DEFAULT_AGENT,
        dry_run: bool = False,
    ) -> str:
        """Add a fact by hand and return its id; a fact that says the same becomes manual.

        A manual fact has source `manual` and confidence 1.0; the model can neither change nor evict it.
        """
        return self._editing.add(bucket_of(user_id, agent_name), content, category, dry_run=dry_run).fact_id

    def edit_fact(
        self,
        user_id: str,
        fact_id: str,
        *,
        content: str | None = None,
        category: str | None = None,
        agent_name: str = DEFAULT_AGENT,
        dry_run: bool = False,
    ) -> None:
        """Change a fact's words, its category, or both; the archive keeps the old version. Raises FactUnknown."""
        self._editing.edit(bucket_of(user_id, agent_name), fact_id, content, category, dry_run=dry_run)

    def remove_fact(
        self, user_id: str, fact_id: str, *, agent_name: str = DEFAULT_AGENT, dry_run: bool = False
    ) -> None:
        """Remove a fact for good: no conversation brings it back, only `add_fact` can. Raises FactUnknown."""
        self._editing.remove(bucket_of(user_id, agent_name), fact_id, dry_run=dry_run)

    def restore_fact(
        self, user_id: str, fact_id: str, *, agent_name: str = DEFAULT_AGENT, dry_run: bool = False
    ) -> None:
        """Take a suspended fact back, which the user may have asked to forget. Raises FactUnknown."""
        self._editing.restore(bucket_of(user_id, agent_name), fact_id, dry_run=dry_run)

    def doubtful(self, user_id: str, agent_name: str = DEFAULT_AGENT) -> list[Fact]:
        """The doubtful facts, oldest first, each with `doubtfulWhy` (authority, support, sensitive) and `doubtfulAt`.

        No prompt and no search has them. `replaces` names what such a fact would replace once it is approved.
        """
        return self._editing.doubtful(bucket_of(user_id, agent_name))

    def approve_fact(
        self,
        user_id: str,
        fact_id: str,
        *,
        agent_name: str = DEFAULT_AGENT,
        by: str = "person",
        anyway: bool = False,
        dry_run: bool = False,
    ) -> None:
        """Make a doubtful fact a fact of the memory, with its evidence and the time it was said. Raises FactUnknown.

        `by`: who approves it, its `approvedBy`. Rejected with E_SUPERSEDED when something else was said later or its
        time is over; `anyway` approves it all the same.
        """
        bucket = bucket_of(user_id, agent_name)
        self._editing.approve(bucket, fact_id, by=by, anyway=anyway, dry_run=dry_run)

    def drop_fact(self, user_id: str, fact_id: str, *, agent_name: str = DEFAULT_AGENT, dry_run: bool = False) -> None:
        """Take a doubtful fact out for good: no conversation brings it back. Raises FactUnknown."""
        self._editing.drop(bucket_of(user_id, agent_name), fact_id, dry_run=dry_run)

    def profile(self, user_id: str, *, agent_name: str = DEFAULT_AGENT) -> dict[str, dict[str, object]]:
        """The user's profile: by field `value`, `updatedAt`, `source` (manual or model) and `factIds`.

        Every prompt begins with it, in at most 300 tokens; docs/editing.md lists the fields.
        """
        return self._editing.profile(bucket_of(user_id, agent_name))

    def set_profile(self, user_id: str, field: str, value: object, *, agent_name: str = DEFAULT_AGENT) -> bool:
        """Set a field of the profile by hand: no model overwrites it. `value`: a text, or a list of texts for a list.

        Returns whether that changed anything.
        """
        return self._editing.set_profile(bucket_of(user_id, agent_name), field, value)

    def unset_profile(self, user_id: str, field: str, *, agent_name: str = DEFAULT_AGENT) -> bool:
        """Take a field out of the profile; a model may fill it again. Returns whether there was one."""
        return self._editing.unset_profile(bucket_of(user_id, agent_name), field)

    def export(self, user_id: str, *, agent_name: str | None = None) -> dict[str, Any]:
        """Everything kept about a user, as JSON values: every agent's memory, or only that of `agent_name`."""
        return self._transfer.export(*_names(user_id, agent_name))

    def import_memory(
        self,
        user_id: str,
        document: object,
        *,
        agent_name: str | None = None,
        format: str = "auto",
        best: bool = False,
        conversations: bool = True,
        dry_run: bool = False,
    ) -> Imported:
        """Merge an export of memd (`export`) or of another system (docs/moving.md lists them); importing twice is safe.

        A folder is `{"files": {path: its text or JSON}}`; `memd.memory.hand.formats.read_path` reads one. Conversations
        of ChatGPT and Claude are pushed, unless `conversations` is False; that needs the server.

        Existing facts do not change. `dry_run`: only report the import. One write for each memory. More facts than
        `apply.max_facts` leaves room for raise Rejected (E_IMPORT_FULL); with `best` the best of them come in.
        """
        user, agent = _names(user_id, agent_name)
        push = self._push_chat if conversations else None
        return self._transfer.import_(
            user, document, agent_name=agent, form=format, best=best, dry_run=dry_run, push=push
        )

    def _push_chat(self, bucket: Bucket, thread_id: str, messages: list[dict[str, Any]]) -> None:
        """Push messages of an imported conversation."""
        raise NotImplementedError


def _names(user_id: str, agent_name: str | None) -> tuple[str, str | None]:
    """The checked ids. `agent_name` None means every agent. Raises Rejected."""
    user = check_identifier("user_id", user_id)
    return user, check_identifier("agent_name", agent_name) if agent_name else agent_name
