"""Exports everything kept about a user; imports the memories of other systems, one write for each memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import Rejected
from memd.memory import ledger
from memd.memory.document import Document
from memd.memory.facts import by_id, content_of
from memd.memory.hand.editing import Editing, has_changed
from memd.memory.hand.formats import Format, Parcel, envelope, read
from memd.memory.hand.imports import MergedDocument, merge
from memd.push.times import iso


@dataclass(frozen=True, slots=True)
class ImportedMemory:
    """The import into one memory. `added`: the ids of facts, `contents`: their sentences; `known`: facts it had.

    `summaries`, `archived`: the numbers imported; `refused`: the other items, counted by reason.
    """

    agent_name: str
    added: tuple[str, ...]
    contents: tuple[str, ...]
    known: int
    summaries: int
    archived: int
    refused: dict[str, int]
    changed: bool


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import, or of its dry run: the detected format, and the result for each memory."""

    format: Format
    memories: tuple[ImportedMemory, ...]


class Transfer:
    """Export and import. Raises as `Editing`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.editing = Editing(settings)

    def export(self, user_id: str, agent_name: str | None = None) -> dict[str, Any]:
        """The documents of a user, of every agent or of one; memories that were never written are left out."""
        names = [DEFAULT_AGENT, *self.editing.agents(user_id)] if agent_name is None else [agent_name]
        loaded = [self.editing.load(Bucket(user_id, name)) for name in names]
        documents: list[Document] = [memory.document for memory in loaded if memory.content_hash is not None]
        return envelope(user_id, documents, iso(datetime.now(UTC)))

    def import_(
        self, user_id: str, value: object, *, agent_name: str | None = None, form: str = "auto", dry_run: bool = False
    ) -> Imported:
        """Merge an export into a user's memories, or into that of one agent."""
        read_as, parcels = read(value, form, user_id)
        chosen = parcels if agent_name is None else [_for_agent(parcels, agent_name)]
        memories = [
            self._merged(Bucket(user_id, parcel.agent_name if agent_name is None else agent_name), parcel, dry_run)
            for parcel in chosen
        ]
        return Imported(read_as, tuple(memories))

    def _merged(self, bucket: Bucket, parcel: Parcel, dry_run: bool) -> ImportedMemory:
        def step(document: Document, now: datetime) -> MergedDocument:
            entries = ledger.renamed(parcel.ledger, bucket.user_id, shared=self._settings.store.shared)
            return merge(document, replace(parcel, ledger=entries), bucket.user_id, now, self._settings.apply)

        before, merged = self.editing.change(bucket, step, dry_run=dry_run)
        facts = by_id(merged.document)
        return ImportedMemory(
            bucket.agent_name,
            merged.added,
            tuple(content_of(facts[fact_id]) for fact_id in merged.added),
            merged.known,
            merged.summaries,
            merged.archived,
            merged.refused,
            has_changed(before, merged),
        )


def _for_agent(parcels: list[Parcel], agent_name: str) -> Parcel:
    """The parcel of this agent; the only parcel belongs to any agent."""
    for parcel in parcels:
        if parcel.agent_name == agent_name or len(parcels) == 1:
            return parcel
    raise Rejected(
        "E_IMPORT_AGENT", f"the import holds {len(parcels)} memories, but no memory of this agent", "agent_name"
    )
