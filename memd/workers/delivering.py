"""Delivering: what users' documents have for projects goes into the projects' own, each under its own lock.

A user's commit and a delivery never hold both locks. Killed between any two steps, the entry is still in the outbox:
the next drain of the bucket delivers it again, which changes nothing where the project knows it already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from memd.config import Settings
from memd.context import Bucket, Message, of_project
from memd.errors import ClaimLost, Conflict, DocumentDamaged, StoreUnavailable
from memd.memory import scoped
from memd.memory.document import revised
from memd.memory.facts import readable_facts
from memd.memory.projects.delivery import came_by, deliver, proofs_of
from memd.memory.projects.members import standing_of
from memd.memory.projects.outbox import Item, OutboxEntry, outbox_of, without_entries
from memd.memory.projects.rights import may
from memd.memory.projects.shared import NO_PROJECTS, Projects, SharedProject
from memd.memory.store.protocol import Loaded, Speaker, Store
from memd.push.times import iso

ROUNDS = 50
"""How often a project is loaded again because another member's delivery was faster; each time that one got through."""

MOST_MARKS = 8
"""Projects of one claim whose facts a request shows; messages of further ones stay private."""


@dataclass(frozen=True, slots=True)
class Deliveries:
    """What became of an outbox. `delivered`: ids of the entries that their projects know now.

    `facts`: how many facts they added or confirmed. `refused`: items that were not taken, by reason. `private`: how
    many stay the user's own. `error`: why an entry still waits; None when none does.
    """

    delivered: frozenset[str] = frozenset()
    facts: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    private: int = 0
    error: StoreUnavailable | DocumentDamaged | None = None

    @property
    def told(self) -> dict[str, object]:
        """The fields of a receipt; empty where there was nothing to deliver."""
        if not (self.delivered or self.error):
            return {}
        if self.error:
            return {"waiting": True}
        counts = {"private": self.private, "refused": dict(self.refused)}
        return {"facts": self.facts} | {name: count for name, count in counts.items() if count}


NOTHING_DELIVERED = Deliveries()


class Delivering:
    """Reads and writes the documents of projects for one worker. Every method blocks."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def projects_of(self, user_id: str, thread_id: str, messages: Iterable[Message]) -> Projects:
        """The projects of the messages' marks to which the user may add. One that cannot be read shows no facts.

        Unknown ones, those of another app, and those of which the user is no member are treated alike: left out.
        """
        marks = list(dict.fromkeys(message.project for message in messages if message.project))[:MOST_MARKS]
        if not marks:
            return NO_PROJECTS
        found: dict[str, SharedProject] = {}
        for project_id in marks:
            try:
                document = self._store.load(of_project(project_id)).document
            except (StoreUnavailable, DocumentDamaged):  # rights are asked again when its outbox is delivered
                found[project_id] = SharedProject()
                continue
            if came_by(document, thread_id) and may(standing_of(document, user_id), "create"):
                found[project_id] = SharedProject(readable_facts(document))
        return found

    def deliver(self, bucket: Bucket, loaded: Loaded, now: datetime) -> Deliveries:
        """Deliver the outbox of a document as it was loaded. What cannot be delivered now waits, and stops nobody."""
        entries = outbox_of(loaded.document)
        if not entries:
            return NOTHING_DELIVERED
        delivered: set[str] = set()
        facts, private, refused = 0, 0, Counter[str]()
        error: StoreUnavailable | DocumentDamaged | None = None
        for entry in entries:
            try:
                done, kept, reasons = self._deliver(Speaker(bucket.user_id, loaded.generation), entry, now)
                if kept:
                    self._keep_private(bucket, entry, kept, now)
            except ClaimLost:  # the user is being forgotten: their document goes, and its outbox with it
                continue
            except (StoreUnavailable, DocumentDamaged, Conflict) as failure:
                error = StoreUnavailable(str(failure)) if isinstance(failure, Conflict) else failure
                continue
            delivered.add(entry.id)
            facts, private = facts + done, private + len(kept)
            refused.update(reasons)
        return Deliveries(frozenset(delivered), facts, dict(refused), private, error)

    def _deliver(
        self, speaker: Speaker, entry: OutboxEntry, now: datetime
    ) -> tuple[int, Sequence[Item], Mapping[str, int]]:
        """One entry: how many facts it added or confirmed, what stays private, and what was refused.

        Raises StoreUnavailable, DocumentDamaged, Conflict; ClaimLost when the user has something forgotten meanwhile.
        """
        place, asked = of_project(entry.project_id), proofs_of(entry, speaker.user_id)
        for _ in range(ROUNDS):
            loaded = self._store.load(place, asked)
            result = deliver(loaded.document, entry, speaker.user_id, self._settings.apply, now, loaded.known)
            if result.document is loaded.document:
                return 0, result.private, result.refused
            try:
                self._store.commit(place, loaded, result.document, lambda: True, asked, speaker=speaker)
            except Conflict:  # another member's delivery was faster
                continue
            return len(result.facts), result.private, result.refused
        raise Conflict("other members' deliveries were faster every time; the entry waits")

    def _keep_private(self, bucket: Bucket, entry: OutboxEntry, items: Sequence[Item], now: datetime) -> None:
        """Move what the user has no right to share from the outbox to their own facts of the project."""
        for _ in range(ROUNDS):
            loaded = self._store.load(bucket)
            if all(waiting.id != entry.id for waiting in outbox_of(loaded.document)):
                return
            private = (item["fact"] for item in items)
            document, _ = scoped.with_private(loaded.document, entry.project_id, private)
            document = without_entries(document, {entry.id})
            try:
                self._store.commit(bucket, loaded, revised(document, iso(now)), lambda: True)
            except Conflict:
                continue
            return
        raise Conflict("other writers were faster every time; the entry waits")
