"""Delivery: what a member's outbox has for a project becomes the project's next document. Pure.

The member's role is asked here, under the project's lock, whatever it was when the model was asked. What a member has
no right to create stays private. A fact that rests on somebody else's words is never replaced or ended by a model,
whatever the role: the new one stands beside it and says which it disputes, until somebody in charge decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from memd.config import ApplySettings
from memd.memory import ledger, removed
from memd.memory.document import Document, Fact, archive_of, facts_of, ledger_of, project_of, revised, revision_of
from memd.memory.duplicates import Contents, says_more
from memd.memory.fact_ids import new_id
from memd.memory.facts import (
    ArchiveReason,
    archive_with,
    archived,
    by_id,
    confirmations_of,
    content_of,
    created_by,
    evidence_of,
    id_of,
    ids_in_use,
    is_manual,
    rank,
    valid_until,
)
from memd.memory.projects.members import standing_of
from memd.memory.projects.outbox import Item, OutboxEntry
from memd.memory.projects.proofs import digest_of, is_of_alone, place_of, shared
from memd.memory.projects.rights import Standing, may
from memd.push.times import iso

MAX_EVIDENCE = 10
"""Quotes kept for one fact of a project; the first ones stay, so that every member who proved it early is named."""

SOURCE = "project"
"""The `source` of a project's facts: the thread that a fact comes from is the member's own."""

_PRIVATE = frozenset({"evidence", "provenBy", "scope", "scopeId", "visibility", "order", "lastSaid"})
"""Fields of a member's fact that the project does not take over as they are."""


@dataclass(frozen=True, slots=True)
class Delivered:
    """The project's next document (the same object when nothing changed), and what became of the items.

    `facts`: ids of those added or confirmed. `private`: what the member has no right to create. `refused`: by reason.
    """

    document: Document
    facts: tuple[str, ...] = ()
    private: tuple[Item, ...] = ()
    refused: dict[str, int] = field(default_factory=dict)


def deliver(
    document: Document,
    entry: OutboxEntry,
    user_id: str,
    settings: ApplySettings,
    now: datetime,
    known: AbstractSet[str],
) -> Delivered:
    """The project after this entry of a user's outbox. Delivering it again changes nothing.

    `known`: those of `proofs_of` the entry that the project has taken in.
    """
    standing = standing_of(document, user_id)
    if not came_by(document, entry.thread_id) or not may(standing, "create"):
        return Delivered(document, private=tuple(item for item in entry.items if item.get("do") == "add"))
    new = [item for item in entry.items if not known >= set(_digests(item, user_id))]
    if not new:
        return Delivered(document)
    desk = _Desk(document, user_id, standing, settings, iso(now))
    for item in new:
        desk.take(item)
    return desk.finish(place_of(user_id, entry.thread_id), (name for item in new for name in _digests(item, user_id)))


def proofs_of(entry: OutboxEntry, user_id: str) -> dict[str, list[str]]:
    """The messages that an entry quotes, as the project's ledger names them."""
    return {place_of(user_id, entry.thread_id): [name for item in entry.items for name in _digests(item, user_id)]}


def published(document: Document, fact: Fact, user_id: str, settings: ApplySettings, now: datetime) -> Delivered:
    """The project with a fact that its member kept to themselves so far. Who may publish is asked before."""
    desk = _Desk(document, user_id, standing_of(document, user_id), settings, iso(now))
    desk.take({"do": "add", "fact": fact})
    return desk.finish(place_of(user_id, ""), ())


def came_by(document: Document, thread_id: str) -> bool:
    """Whether a conversation came by the app that the project belongs to; by any if it belongs to none."""
    app = document.get("app")
    return not app or thread_id.startswith(f"{app}/")


def _digests(item: Item, user_id: str) -> list[str]:
    proofs = item.get("proofs")
    return [digest_of(user_id, name) for name in proofs if isinstance(name, str)] if isinstance(proofs, list) else []


class _Desk:
    """The project's facts while one entry is delivered."""

    def __init__(self, document: Document, user_id: str, standing: Standing, settings: ApplySettings, now: str) -> None:
        self._old = document
        self._user = user_id
        self._standing = standing
        self._settings = settings
        self._now = now
        self._facts = by_id(document)
        self._archived: list[Fact] = []
        self._contents = Contents(facts_of(document), settings.near_duplicate)
        self._used = ids_in_use(document)
        self._removed = removed.hashes(document)
        self._touched: dict[str, None] = {}
        self._refused: Counter[str] = Counter()
        for fact in list(self._facts.values()):
            if "" < valid_until(fact) < now:
                self._archive(fact, "expired")

    def take(self, item: Item) -> None:
        """Take one item in, as far as the member may."""
        match item:
            case {"do": "add", "fact": dict(fact)} if isinstance(fact.get("content"), str):
                self._add(fact, [one for one in item.get("replaces", ()) if isinstance(one, str)])
            case {"do": "confirm", "id": str(fact_id), "evidence": list(evidence)} if fact_id in self._facts:
                self._confirm(fact_id, evidence)
            case {"do": "retire", "id": str(fact_id)} if fact_id in self._facts:
                self._retire(self._facts[fact_id], str(item.get("note") or ""))
            case _:
                self._refused["unknown_id"] += 1

    def finish(self, place: str, digests: Iterable[str]) -> Delivered:
        """The next document, with the quoted messages in its ledger."""
        self._trim()
        document = revised(
            self._old,
            self._now,
            facts=list(self._facts.values()),
            archive=archive_with(archive_of(self._old), self._archived, self._settings.archive_cap),
            ledger=ledger.taken(ledger_of(self._old), place, digests, self._settings.ledger_cap),
        )
        kept = tuple(fact_id for fact_id in self._touched if fact_id in self._facts)
        return Delivered(document, kept, refused=dict(self._refused))

    def _add(self, fact: Fact, replaced: Sequence[str]) -> None:
        content = content_of(fact)
        if removed.refusal(self._removed, content):
            self._refused["removed"] += 1
            return
        same = self._contents.same(content, "")
        near = self._contents.near(content, "") if same is None else None
        old = list(dict.fromkeys(one for one in replaced if one in self._facts))
        if near is not None and says_more(content, content_of(self._facts[near])) and self._may_end(self._facts[near]):
            old.append(near)
        elif same is None and near is not None and near not in old:
            same = near
        if same is not None:
            self._confirm(same, fact.get("evidence", []))
            old = [one for one in old if one != same]
        else:
            same = self._put(fact)
        self._replace(same, old)

    def _put(self, fact: Fact) -> str:
        content = content_of(fact)
        fact_id = new_id(self._old, revision_of(self._old) + 1, content, len(self._used), self._used)
        rest = {name: value for name, value in fact.items() if name not in _PRIVATE}
        new: Fact = {
            **rest,
            "id": fact_id,
            "source": SOURCE,
            "scope": "project",
            "scopeId": project_of(self._old),
            "visibility": "members",
            "createdBy": self._user,
            "evidence": shared(evidence_of(fact), self._user)[:MAX_EVIDENCE],
        }
        self._used.add(fact_id)
        self._facts[fact_id] = new
        self._contents.put(new)
        self._touched[fact_id] = None
        return fact_id

    def _confirm(self, fact_id: str, evidence: Sequence[Any]) -> None:
        fact = self._facts[fact_id]
        entries = shared((entry for entry in evidence if isinstance(entry, dict)), self._user)
        held = evidence_of(fact)
        more = [entry for entry in entries if entry not in held]
        self._facts[fact_id] = {
            **fact,
            "evidence": [*held, *more][:MAX_EVIDENCE],
            "confirmations": confirmations_of(fact) + 1,
            "lastConfirmedAt": self._now,
        }
        self._touched[fact_id] = None

    def _retire(self, fact: Fact, note: str) -> None:
        if self._may_end(fact):
            self._archive(fact, "retired", note=note)
        else:
            self._refused["not_yours"] += 1

    def _replace(self, fact_id: str, old: Sequence[str]) -> None:
        """End what the fact replaces where the member may; it disputes the others."""
        gone = [one for one in old if one != fact_id and self._may_end(self._facts[one])]
        disputed = [one for one in old if one != fact_id and one not in gone]
        for one in gone:
            self._archive(self._facts[one], "replaced", replaced_by=fact_id)
        fact = self._facts[fact_id]
        for name, ids in (("replaces", gone), ("disputes", disputed)):
            if ids:
                fact = {**fact, name: list(dict.fromkeys([*fact.get(name, ()), *ids]))}
        self._facts[fact_id] = fact

    def _may_end(self, fact: Fact) -> bool:
        """Whether the member's words may end a fact: they have the right, and it rests on nobody else's."""
        own = is_of_alone(fact, self._user) and not is_manual(fact)
        return own and may(self._standing, "edit", own=True)

    def _archive(self, fact: Fact, reason: ArchiveReason, *, note: str = "", replaced_by: str = "") -> None:
        del self._facts[id_of(fact)]
        self._contents.drop(id_of(fact))
        self._archived.append(archived(fact, reason, self._now, note=note, replaced_by=replaced_by))

    def _trim(self) -> None:
        """Keep to the most facts: each time the member with the most loses the least certain one."""
        while len(self._facts) > self._settings.max_facts:
            held = [fact for fact in self._facts.values() if not is_manual(fact)]
            if not held:
                return
            counts = Counter(map(created_by, held))
            most = max(counts, key=lambda user: (counts[user], user))
            self._archive(min((fact for fact in held if created_by(fact) == most), key=rank), "evicted")
