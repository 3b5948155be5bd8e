"""The next document in the making: the moves that every step of `apply` is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from memd.config import ApplySettings
from memd.context import Message
from memd.memory import archive, ledger, quarantine
from memd.memory.document import Document, Fact, complete, iso
from memd.memory.facts import Origin, is_manual

Part = Literal["newFacts", "confirmedFacts", "retiredFacts", "reviewedFacts", "mergedFacts", "summaries"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A piece of the update that did not come true: a reason, and its index in that part."""

    reason: str
    part: Part
    index: int


@dataclass(frozen=True, slots=True)
class Applied:
    """The new document, the ids of facts added, confirmed and retired (replaced ones too), and what was refused."""

    document: Document
    added: tuple[str, ...]
    confirmed: tuple[str, ...]
    retired: tuple[str, ...]
    refusals: tuple[Refusal, ...]


class Draft:
    """Facts and what became of them. Its lists are its own; facts are shared with the old document until changed."""

    def __init__(self, document: Document, origin: Origin, settings: ApplySettings) -> None:
        self.old = complete(document)
        self.origin = origin
        self.settings = settings
        self.now = iso(origin.now)
        self.revision: int = self.old["revision"] + 1
        self.facts: dict[str, Fact] = {fact["id"]: fact for fact in self.old["facts"]}
        self.known = frozenset(self.facts)
        """Ids of the facts that the update was asked about."""
        self.added: dict[str, int] = {}
        """Ids of the facts that are new, and the index of each in the update."""
        self.archived: list[Fact] = []
        self.sections: dict[str, dict[str, Any]] = {}
        self._used = {*self.facts, *(fact.get("id") for fact in self.old["archive"])}
        self._budget = _retirement_budget(len(self.facts), settings)
        self._confirmed: dict[str, None] = {}
        self._retired: dict[str, None] = {}
        self._quarantined: list[quarantine.Entry] = []
        self._refusals: list[Refusal] = []

    @property
    def used(self) -> set[str]:
        """Ids that no new fact may have."""
        return self._used

    def put(self, fact: Fact, index: int | None = None) -> None:
        """Add a fact. `index`: its place in the update's new facts."""
        self._used.add(fact["id"])
        self.facts[fact["id"]] = fact
        if index is not None:
            self.added[fact["id"]] = index

    def change(self, fact_id: str, **fields: Any) -> None:
        """Set fields of a fact; None takes one away."""
        fact = {**self.facts[fact_id], **fields}
        self.facts[fact_id] = {name: value for name, value in fact.items() if value is not None}

    def confirm(self, fact_id: str) -> None:
        """Count one confirmation, once an update."""
        if fact_id in self._confirmed:
            return
        self._confirmed[fact_id] = None
        before = self.facts[fact_id].get("confirmations")
        count = before + 1 if type(before) is int and before >= 0 else 1
        self.change(fact_id, confirmations=count, lastConfirmedAt=self.now)

    def retire(
        self, fact_id: str, reason: archive.Reason, part: Part, index: int, *, note: str = "", replaced_by: str = ""
    ) -> bool:
        """Take a fact out of use, within the update's budget; what may not go stays, and the wish is quarantined."""
        why = "manual" if is_manual(self.facts[fact_id]) else "too_many_retired" if self._budget <= 0 else ""
        if why:
            self.refuse(why, part, index)
            self._quarantined.append(quarantine.entry(fact_id, reason, why, self.now, self.origin.thread_id, note))
            return False
        self._budget -= 1
        self._retired[fact_id] = None
        self.archive(fact_id, reason, note=note, replaced_by=replaced_by)
        return True

    def is_retired(self, fact_id: str) -> bool:
        """Whether this update has retired the fact."""
        return fact_id in self._retired

    def archive(self, fact_id: str, reason: archive.Reason, *, note: str = "", replaced_by: str = "") -> None:
        """Move a fact to the archive, whatever the budget says."""
        self.archived.append(
            archive.entry(self.facts.pop(fact_id), reason, self.now, note=note, replaced_by=replaced_by)
        )

    def refuse(self, reason: str, part: Part, index: int) -> None:
        """Count what does not come true."""
        self._refusals.append(Refusal(reason, part, index))

    def finish(self, messages: Iterable[Message]) -> Applied:
        """The new document with its ledger, and the account of it."""
        document = {
            **self.old,
            **self.sections,
            "revision": self.revision,
            "lastUpdated": self.now,
            "facts": list(self.facts.values()),
            "archive": archive.extend(self.old["archive"], self.archived, self.settings.archive_cap),
            "ledger": ledger.taken(
                self.old["ledger"],
                self.origin.thread_id,
                (message.identity for message in messages),
                self.settings.ledger_cap,
            ),
        }
        quarantine.extend(document, self._quarantined)
        confirmed = tuple(fact_id for fact_id in self._confirmed if fact_id in self.facts)
        return Applied(document, tuple(self.added), confirmed, tuple(self._retired), tuple(self._refusals))


def _retirement_budget(facts: int, settings: ApplySettings) -> int:
    """How many facts one update may retire: the share, but at least one, and never more than the maximum."""
    return min(settings.max_retired_facts, max(1, int(settings.max_retired_share * facts)))
