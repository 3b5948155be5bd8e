"""The next document in the making: the moves that every step of `apply` is made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from memd.config import ApplySettings
from memd.context import Message
from memd.memory import doubtful, ledger, profiles
from memd.memory.document import (
    Document,
    Fact,
    archive_of,
    complete,
    ledger_of,
    revised,
    revision_of,
    summary,
    with_summary,
)
from memd.memory.facts import (
    ArchiveReason,
    archive_with,
    archived,
    by_id,
    confirmations_of,
    id_of,
    ids_in_use,
    is_manual,
    last_confirmed_at,
    proven_by,
    valid_until,
    with_proofs,
)
from memd.memory.new_facts import Origin, renewed_end
from memd.memory.profiles import Value
from memd.memory.retiring import Ending, Retirements
from memd.memory.sayings import UNKNOWN, Saying, earlier, of_fact
from memd.push.times import iso

Part = Literal[
    "newFacts",
    "confirmedFacts",
    "retiredFacts",
    "forgottenFacts",
    "reviewedFacts",
    "mergedFacts",
    "summaries",
    "hide",
    "profile",
]


@dataclass(frozen=True, slots=True)
class Refusal:
    """An item of the update that was not applied: the reason, its part, and its index there."""

    reason: str
    part: Part
    index: int


@dataclass(frozen=True, slots=True)
class Applied:
    """The new document, the ids of facts added, confirmed and retired (replaced ones too), and what was refused.

    `hidden`: identities of messages of which nothing may be shown later as what the user said. `unkept`: those of
    messages that are not kept, for they ask to forget what the extractor names. `forgotten`: the facts
    that the user asked to forget, with all their versions; `suspended`: the ids of those that a person decides on, and
    `doubtful`: of the new facts that one decides on. `everything`: the user asked to forget all that is known of them.
    """

    document: Document
    added: tuple[str, ...]
    confirmed: tuple[str, ...]
    retired: tuple[str, ...]
    refusals: tuple[Refusal, ...]
    hidden: tuple[str, ...] = ()
    unkept: tuple[str, ...] = ()
    forgotten: tuple[Fact, ...] = ()
    suspended: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    everything: bool = False


class Draft:
    """The facts of the next document. Facts are shared with the old document, and copied when they change."""

    def __init__(self, document: Document, origin: Origin, settings: ApplySettings) -> None:
        self.old = complete(document)
        self.origin = origin
        self.settings = settings
        self.now = iso(origin.now)
        self.revision = revision_of(self.old) + 1
        self.facts = by_id(self.old)
        self.known = frozenset(self.facts)
        """Ids of the facts that the extractor was shown."""
        self.added: dict[str, int] = {}
        """Ids of the new facts, and the index of each in the update."""
        self.archived: list[Fact] = []
        self.doubtful = {id_of(fact): fact for fact in doubtful.facts_of(self.old)}
        """The doubtful facts by id, the one said last at the end."""
        self.used = ids_in_use(self.old)
        """Ids that no new fact may have."""
        self.profile: dict[str, tuple[Value, tuple[str, ...]]] = {}
        """The fields of the profile that this update fills, with the facts that they rest on."""
        self.profiled = False
        """Whether the extractor was asked for the profile."""
        self._summaries: dict[str, tuple[str, Saying]] = {}
        self._budget = Retirements(self.old, len(self.facts), settings)
        self._confirmed: dict[str, None] = {}
        self._retired: dict[str, None] = {}
        self._refusals: list[Refusal] = []
        self._hidden: dict[str, None] = {}

    def beside(self, facts: Sequence[Fact]) -> Draft:
        """A draft with these facts instead: what is refused, hidden or doubtful there counts here, and ids differ."""
        document = {**self.old, "facts": list(facts), "archive": [], "withheld": []}
        side = Draft(document, self.origin, self.settings)
        side.used, side.doubtful = self.used, self.doubtful
        side._refusals, side._hidden = self._refusals, self._hidden
        return side

    def put(self, fact: Fact, index: int | None = None) -> None:
        """Add a fact. `index`: its place in the update's new facts."""
        fact_id = id_of(fact)
        self.used.add(fact_id)
        self.facts[fact_id] = fact
        if index is not None:
            self.added[fact_id] = index

    def change(self, fact_id: str, **fields: Any) -> None:
        """Set fields of a fact; None removes one."""
        fact = {**self.facts[fact_id], **fields}
        self.facts[fact_id] = {name: value for name, value in fact.items() if value is not None}

    def proved(self, fact_id: str, identities: Iterable[str]) -> None:
        """Note the messages that prove or confirm a fact: they go with it when a person removes it."""
        fact = self.facts[fact_id]
        self.facts[fact_id] = with_proofs(fact, [*proven_by(fact), *identities])

    def confirm(self, fact_id: str, said: Saying) -> None:
        """Count one confirmation, once an update. `said`: when the user said it again. What had ended lasts anew."""
        if fact_id in self._confirmed:
            return
        self._confirmed[fact_id] = None
        fact = self.facts[fact_id]
        count, at = confirmations_of(fact) + 1, said.at or self.now
        self.change(fact_id, confirmations=count, lastConfirmedAt=max(at, last_confirmed_at(fact)))
        if "" < valid_until(fact) < self.now:
            self.change(fact_id, validUntil=renewed_end(fact, at))
        if said.at and not earlier(said, of_fact(fact)):
            self.change(fact_id, lastSaid=said.fields)

    def retire(self, wish: Ending, part: Part, index: int) -> bool:
        """Archive a fact, within the update's budget; one that must stay is refused, and the wish is withheld."""
        manual = is_manual(self.facts[wish.fact])
        if manual or not self._budget.grants(wish):
            why = "manual" if manual else "too_many_retired"
            self.refuse(why, part, index)
            self._budget.withhold(wish, why, self.now, self.origin.thread_id)
            return False
        self.end(wish)
        return True

    def end(self, wish: Ending) -> None:
        """Archive a fact as retired, whatever the budget."""
        self._retired[wish.fact] = None
        self.archive(wish.fact, wish.reason, note=wish.note, replaced_by=wish.replaced_by, over=wish.over)

    @property
    def confirmed(self) -> tuple[str, ...]:
        """Ids of the facts that the user has said again in this update."""
        return tuple(fact_id for fact_id in self._confirmed if fact_id in self.facts)

    @property
    def retired(self) -> tuple[str, ...]:
        """Ids of the facts that this update has retired."""
        return tuple(self._retired)

    def is_confirmed(self, fact_id: str) -> bool:
        """Whether the user has said the fact again in this update."""
        return fact_id in self._confirmed

    def is_retired(self, fact_id: str) -> bool:
        """Whether this update has retired the fact."""
        return fact_id in self._retired

    def archive(
        self, fact_id: str, reason: ArchiveReason, *, note: str = "", replaced_by: str = "", over: Saying = UNKNOWN
    ) -> None:
        """Move a fact to the archive, whatever the budget."""
        entry = archived(self.facts.pop(fact_id), reason, self.now, note=note, replaced_by=replaced_by)
        self.archived.append({**entry, "overSince": over.fields} if over.at else entry)

    def rewrite(self, name: str, text: str, said: Saying) -> None:
        """Give one of the six summaries this text. `said`: when the newest of the words behind it were said."""
        self._summaries[name] = text, said

    def summary(self, name: str) -> str:
        """The text of one of the six summaries, as this update has left it so far."""
        return self._summaries[name][0] if name in self._summaries else summary(self.old, name)

    def hide(self, identity: str) -> None:
        """Note that nothing of this message may be shown later as what the user said."""
        self._hidden[identity] = None

    def refuse(self, reason: str, part: Part, index: int) -> None:
        """Count an item of the update that is not applied."""
        self._refusals.append(Refusal(reason, part, index))

    def finish(self, messages: Iterable[Message]) -> Applied:
        """The new document with its ledger, and what was done."""
        document = self.old
        for name, (text, said) in self._summaries.items():
            document = with_summary(document, name, text, self.now, said.fields if said.at else None)
        for field, (value, ids) in self.profile.items():
            document = profiles.with_field(document, field, value, self.now, source=profiles.MODEL, fact_ids=ids)
        if self.profiled:
            document = {**document, "profiledAt": self.now}
        identities = (message.identity for message in messages)
        name = self.origin.ledger_name or self.origin.thread_id
        document = revised(
            document,
            self.now,
            facts=list(self.facts.values()),
            archive=archive_with(archive_of(self.old), self.archived, self.settings.archive_cap),
            ledger=ledger.taken(ledger_of(self.old), name, identities, self.settings.ledger_cap),
            ledgerFormer=ledger.former_marks(self.old, "ledgerFormer"),
            ledgerFormerRules=ledger.former_marks(self.old, "ledgerFormerRules"),
            **self._budget.fields(self.facts.keys(), self._confirmed.keys()),
        )
        known = doubtful.facts_of(self.old)
        kept = doubtful.latest(self.doubtful.values(), self.origin.now)
        return Applied(
            doubtful.with_facts(document, kept),
            tuple(self.added),
            self.confirmed,
            self.retired,
            tuple(self._refusals),
            hidden=tuple(self._hidden),
            doubtful=tuple(id_of(fact) for fact in kept if fact not in known),
        )
