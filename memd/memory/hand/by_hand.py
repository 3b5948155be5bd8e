"""Editing memories by hand: one half of the clients. It needs the documents, not the server."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.memory.document import Fact
from memd.push.validation import check_identifier

if TYPE_CHECKING:
    from memd.memory.hand.editing import Editing
    from memd.memory.hand.transfer import Imported, Transfer


def bucket_of(user_id: str, agent_name: str) -> Bucket:
    """The bucket of ids that come from outside. Raises Rejected."""
    return Bucket(
        check_identifier("user_id", user_id),
        check_identifier("agent_name", agent_name) if agent_name else DEFAULT_AGENT,
    )


class ByHand:
    """Editing. Each edit is one write, and is not lost whatever a worker does at the same time.

    Every method raises Rejected (code, field, limit; nothing changed), StoreUnavailable, and DocumentDamaged with the
    place for a document that somebody broke.
    """

    settings: Settings

    @cached_property
    def _editing(self) -> Editing:
        from memd.memory.hand.editing import Editing  # noqa: PLC0415  (the gates' patterns are not for an app that only pushes)

        return Editing(self.settings)

    @cached_property
    def _transfer(self) -> Transfer:
        from memd.memory.hand.transfer import Transfer  # noqa: PLC0415  (as above)

        return Transfer(self.settings, self._editing)

    def inspect(self, user_id: str, agent_name: str = DEFAULT_AGENT) -> list[str]:
        """A sentence for each field of a document that a hand broke so that it is read as absent.

        Raises DocumentDamaged where nothing can be read; the file is left as it is, unlike by `document`, which sets
        it aside and goes on with the version before it.
        """
        from memd.memory.parsing import broken_fields  # noqa: PLC0415  (as above)

        return list(broken_fields(self._editing.load(bucket_of(user_id, agent_name)).document))

    def why(self, user_id: str, fact_id: str, *, agent_name: str = DEFAULT_AGENT) -> dict[str, Any]:
        """Where a fact comes from: quotes, times, model, what it replaced, what became of it. Raises FactUnknown."""
        from memd.recall.why import why  # noqa: PLC0415  (as above)

        return why(self._editing.load(bucket_of(user_id, agent_name)).document, fact_id)

    def facts(self, user_id: str, agent_name: str = DEFAULT_AGENT) -> list[Fact]:
        """The facts of a memory, in the order they came."""
        return self._editing.facts(bucket_of(user_id, agent_name))

    def archived(self, user_id: str, agent_name: str = DEFAULT_AGENT, *, reason: str | None = None) -> list[Fact]:
        """The facts that went, the latest last, each with `archivedAt`, `archiveReason` and maybe `archiveNote`."""
        return self._editing.archived(bucket_of(user_id, agent_name), reason)

    def withheld(self, user_id: str, agent_name: str = DEFAULT_AGENT) -> list[dict[str, Any]]:
        """What the model wanted gone and may not have: `fact`, `wanted`, `why`, `at`, `source` and maybe `note`."""
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
        """Add a fact by hand and answer its id; a fact that says the same becomes a person's word.

        It has source `manual` and confidence 1.0, and the model can neither change nor evict it.
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
        """Change a fact's words, its category, or both; the archive keeps what it was. Raises FactUnknown."""
        self._editing.edit(bucket_of(user_id, agent_name), fact_id, content, category, dry_run=dry_run)

    def remove_fact(
        self, user_id: str, fact_id: str, *, agent_name: str = DEFAULT_AGENT, dry_run: bool = False
    ) -> None:
        """Remove a fact for good: no conversation brings it back, only `add_fact` does. Raises FactUnknown."""
        self._editing.remove(bucket_of(user_id, agent_name), fact_id, dry_run=dry_run)

    def export(self, user_id: str, *, agent_name: str | None = None) -> dict[str, Any]:
        """All that is kept of a user as JSON values: every agent's memory too, or only that of `agent_name`."""
        return self._transfer.export(*_names(user_id, agent_name))

    def import_memory(
        self,
        user_id: str,
        document: object,
        *,
        agent_name: str | None = None,
        format: str = "auto",
        dry_run: bool = False,
    ) -> Imported:
        """Merge what memd (`export`), DeerFlow (memory.json) or mem0 (`get_all()`) kept; twice is once.

        Nothing that is there changes. `dry_run`: only say what would come in. One write for each memory.
        """
        user, agent = _names(user_id, agent_name)
        return self._transfer.import_(user, document, agent_name=agent, form=format, dry_run=dry_run)


def _names(user_id: str, agent_name: str | None) -> tuple[str, str | None]:
    """Ids that come from outside, where None stands for every agent. Raises Rejected."""
    user = check_identifier("user_id", user_id)
    return user, check_identifier("agent_name", agent_name) if agent_name else agent_name
