"""Exports everything kept about a user; imports the memories of other systems, one write for each memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import Rejected
from memd.identifiers import check_identifier
from memd.memory import ledger
from memd.memory.document import Document, revised, revision_of
from memd.memory.facts import content_of, id_of
from memd.memory.hand import session_transfer
from memd.memory.hand.chat_pushes import PushChat, chat_pushes
from memd.memory.hand.editing import Editing, has_changed
from memd.memory.hand.formats import Format, Parcel, envelope, read
from memd.memory.hand.imports import MergedDocument, merge
from memd.memory.hand.said_transfer import exported, imported
from memd.memory.said.turns import Said
from memd.memory.scoped import all_facts
from memd.memory.store.said_reader import keeps_said
from memd.push.times import iso
from memd.tasks import task_transfer
from memd.tasks.task_transfer import AgentTasks, ImportedTasks


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
    turns: int = 0
    """Messages of what was said."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import, or of its dry run: the detected format, and the result for each memory.

    `tasks`: the result for each agent whose todo lists or tasks the import holds. `sessions`: how many were added.
    `threads`: conversations that were pushed, with how many `messages` and about how many `tokens`; the model extracts
    what is worth remembering from them. `notes`: what to know, such as that a page is missing.
    """

    format: Format
    memories: tuple[ImportedMemory, ...]
    tasks: tuple[ImportedTasks, ...] = ()
    sessions: int = 0
    threads: int = 0
    messages: int = 0
    tokens: int = 0
    notes: tuple[str, ...] = ()


class Transfer:
    """Export and import. Raises as `Editing`."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.editing = Editing(settings)

    def export(self, user_id: str, agent_name: str | None = None) -> dict[str, Any]:
        """The documents of a user, of every agent or of one, with their todo lists, tasks and sessions.

        Memories that were never written are left out.
        """
        names = [DEFAULT_AGENT, *self.editing.agents(user_id)] if agent_name is None else [agent_name]
        loaded = [self.editing.load(Bucket(user_id, name)) for name in names]
        documents: list[Document] = [
            exported(*self._whole(Bucket(user_id, name), memory.document))
            for name, memory in zip(names, loaded, strict=True)
            if memory.content_hash is not None
        ]
        tasks = task_transfer.exported(self._settings.data_dir, user_id, agent_name)
        sessions = [
            {"agentName": name, "sessions": found}
            for name in names
            if (found := session_transfer.exported(self.editing.sessions, Bucket(user_id, name)))
        ]
        return envelope(user_id, documents, iso(datetime.now(UTC)), tasks=tasks, sessions=sessions)

    def _whole(self, bucket: Bucket, document: Document) -> tuple[Document, Said]:
        """A document with the ledger, which a store may keep elsewhere, and its turns."""
        whole = {**document, "ledger": self.editing.ledger(bucket, document)}
        return whole, self.editing.said(bucket, document)

    def import_(
        self,
        user_id: str,
        value: object,
        *,
        agent_name: str | None = None,
        form: str = "auto",
        best: bool = False,
        dry_run: bool = False,
        push: PushChat | None,
    ) -> Imported:
        """Merge an export into a user's memories, or into that of one agent; its conversations are pushed.

        `push`: None leaves the conversations out.
        """
        contents = read(value, form, user_id)
        parcels = list(contents.parcels)
        tasks = task_transfer.parcels_of(value) if contents.format == "memd" else []
        if agent_name is not None:
            parcels, tasks = _for_agent(parcels, tasks, agent_name)
        sessions = _session_groups(value, user_id)
        chats = Bucket(user_id, agent_name or DEFAULT_AGENT)
        threads = contents.threads if push else ()
        pushes = chat_pushes(threads, chats, self._settings.client)

        def bring(*, dry_run: bool) -> Imported:
            memories = [
                self._merged(_bucket(user_id, agent_name, parcel), parcel, best=best, dry_run=dry_run)
                for parcel in parcels
            ]
            data_dir = self._settings.data_dir
            added = [task_transfer.imported(data_dir, user_id, one, dry_run=dry_run) for one in tasks]
            groups = self._sessions(sessions, user_id, agent_name, dry_run)
            return Imported(contents.format, tuple(memories), tuple(added), groups)

        if not dry_run and len(parcels) + len(tasks) + len(sessions) + len(pushes) > 1:
            bring(dry_run=True)  # several writes: what would be refused is refused before the first one
        if push and not dry_run:  # before the memories are written: the server may be out of reach
            for thread_id, messages in pushes:
                push(chats, thread_id, messages)
        found = bring(dry_run=dry_run)
        return replace(
            found,
            threads=len(threads),
            messages=sum(len(one.messages) for one in pushes),
            tokens=sum(one.tokens for one in pushes),
            notes=contents.notes,
        )

    def _sessions(self, groups: list[Any], user_id: str, agent_name: str | None, dry_run: bool) -> int:
        """Add the sessions of an export; returns how many."""
        added = 0
        for group in groups:
            name = group.get("agentName") if isinstance(group, dict) else None
            if isinstance(name, str) and agent_name in (None, name):
                bucket = Bucket(user_id, check_identifier("agentName", name) if name else DEFAULT_AGENT)
                is_forgotten = self.editing.forgotten(bucket)
                found = group.get("sessions")
                added += session_transfer.imported(found, self.editing.sessions, bucket, is_forgotten, dry_run=dry_run)
        return added

    def _merged(self, bucket: Bucket, parcel: Parcel, *, best: bool, dry_run: bool) -> ImportedMemory:
        def step(document: Document, now: datetime) -> MergedDocument:
            entries = ledger.renamed(parcel.ledger, bucket.user_id, shared=self._settings.store.shared)
            whole = replace(parcel, ledger=entries)
            merged = merge(document, whole, bucket.user_id, now, self._settings.apply, best=best)
            return self._with_said(merged, bucket, parcel, document, now)

        before, merged = self.editing.change(bucket, step, dry_run=dry_run)
        facts = {id_of(fact): fact for fact in all_facts(merged.document)}
        return ImportedMemory(
            bucket.agent_name,
            merged.added,
            tuple(content_of(facts[fact_id]) for fact_id in merged.added),
            merged.known,
            merged.summaries,
            merged.archived,
            merged.refused,
            has_changed(before, merged),
            merged.turns,
        )

    def _with_said(
        self, merged: MergedDocument, bucket: Bucket, parcel: Parcel, document: Document, now: datetime
    ) -> MergedDocument:
        """The result with the turns of an export of this same memory."""
        own = (parcel.user_id, parcel.agent_name) == (bucket.user_id, bucket.agent_name)
        if parcel.said is None or not own or not keeps_said(self._settings):
            return merged
        said = self.editing.said(bucket, document)
        found = imported(parcel.said, merged.document, said, self._settings.said, now, self.editing.forgotten(bucket))
        refused = dict(Counter(merged.refused) + found.refused)
        if found.change is None:
            return replace(merged, refused=refused)
        changed = revision_of(merged.document) != revision_of(document)
        new = merged.document if changed else revised(merged.document, iso(now))
        return replace(merged, document=new, refused=refused, said=found.change, turns=found.turns)


def _session_groups(value: object, user_id: str) -> list[Any]:
    """The sessions of an export of this same user, agent by agent."""
    groups = value.get("sessions") if isinstance(value, dict) and value.get("userId") == user_id else None
    return groups if isinstance(groups, list) else []


def _bucket(user_id: str, agent_name: str | None, parcel: Parcel) -> Bucket:
    return Bucket(user_id, parcel.agent_name if agent_name is None else agent_name)


def _for_agent(
    parcels: list[Parcel], tasks: list[AgentTasks], agent_name: str
) -> tuple[list[Parcel], list[AgentTasks]]:
    """The parcel of this agent, with its lists and tasks; the only parcel belongs to any agent."""
    own = [parcel for parcel in parcels if parcel.agent_name == agent_name or len(parcels) == 1]
    source = own[0].agent_name if own else agent_name
    own_tasks = [task_transfer.moved(one, agent_name) for one in tasks if one.agent_name == source]
    if own or own_tasks:
        return own, own_tasks
    raise Rejected(
        "E_IMPORT_AGENT", f"the import holds {len(parcels)} memories, but no memory of this agent", "agent_name"
    )
