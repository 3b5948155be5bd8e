"""Apply: what of an update comes true. A pure function: same input, same output, byte for byte; nothing is mutated.

In order: expired facts leave; facts are confirmed, added (a replacement before what it replaces goes), retired;
summaries rewritten; what is over the cap leaves; the ledger takes the messages in.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from memd.config import ApplySettings
from memd.context import Message
from memd.memory import archive, ledger, removed
from memd.memory.document import SECTIONS, Document, Fact, complete, iso, rank
from memd.memory.facts import Origin, aside, new_fact, new_id
from memd.memory.gates import refusal
from memd.memory.said import Said
from memd.memory.text import one_line, same_key
from memd.memory.update import ConfirmedFact, NewFact, RetiredFact, Update
from memd.memory.uploads import without_upload_events
from memd.redaction import holds_secret, redact

__all__ = ["Applied", "Origin", "Refusal", "apply"]

MAX_SUMMARY_CHARS = 1_500
"""Characters of one summary; the longest asked for has five themes."""

Part = Literal["newFacts", "confirmedFacts", "retiredFacts", "summaries"]


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


def apply(
    document: Document,
    update: Update,
    sent: Sequence[Message],
    taken: Sequence[Message],
    origin: Origin,
    settings: ApplySettings,
) -> Applied:
    """The document after this update.

    `sent`: the messages that evidence counts from 0; `taken`: the messages to enter in the ledger. Only messages that
    the ledger does not hold prove anything; with nothing new in either, the document comes back as it is.
    """
    new = {message.identity for message in ledger.unknown(document, origin.thread_id, sent)}
    if not new and not ledger.unknown(document, origin.thread_id, taken):
        return Applied(document, (), (), (), ())
    draft = _Draft(document, Said(origin.thread_id, sent, new), origin, settings)
    if new:
        draft.expire()
        draft.confirm(update.confirmed_facts)
        draft.add(update.new_facts)
        draft.retire(update.retired_facts)
        draft.rewrite(update.summaries)
        draft.trim()
    return draft.finish([*taken, *sent])


class _Draft:
    """The next document in the making. Its lists are its own; facts are shared with the old document until changed."""

    def __init__(self, document: Document, said: Said, origin: Origin, settings: ApplySettings) -> None:
        self._old = complete(document)
        self._said = said
        self._origin = origin
        self._settings = settings
        self._now = iso(origin.now)
        self._revision: int = self._old["revision"] + 1
        self._facts: dict[str, Fact] = {fact["id"]: fact for fact in self._old["facts"]}
        self._budget = _retirement_budget(len(self._facts), settings)
        self._sections: dict[str, dict[str, object]] = {}
        self._archived: list[Fact] = []
        self._removed = removed.hashes(self._old)
        self._ids_by_content: dict[str, str] = {}
        self._indexes: dict[str, int] = {}
        self._confirmed: dict[str, None] = {}
        self._retired: dict[str, None] = {}
        self._refusals: list[Refusal] = []

    def expire(self) -> None:
        """Archive the facts whose time is over."""
        for fact in list(self._facts.values()):
            until = fact.get("validUntil")
            if isinstance(until, str) and "" < until < self._now:
                self._archive(fact["id"], "expired")

    def confirm(self, wanted: Iterable[ConfirmedFact]) -> None:
        """Count facts that the user stated again."""
        for index, piece in enumerate(wanted):
            if piece.id not in self._facts:
                self._refuse("unknown_id", "confirmedFacts", index)
            elif not self._said.holds(piece.quote):
                self._refuse("quote_not_found", "confirmedFacts", index)
            else:
                self._confirm(piece.id)

    def add(self, wanted: Sequence[NewFact]) -> None:
        """Add what passes the gates; then, and only then, what it replaces goes."""
        if not wanted:
            return
        self._ids_by_content = {same_key(fact["content"]): fact["id"] for fact in self._facts.values()}
        known = set(self._facts)
        used = {*known, *(fact.get("id") for fact in self._old["archive"])}
        for index, piece in enumerate(wanted):
            fact_id = self._store(index, piece, used)
            if fact_id:
                used.add(fact_id)
                self._replace(fact_id, piece, index, known)

    def retire(self, wanted: Iterable[RetiredFact]) -> None:
        """Archive facts that the user said are over."""
        for index, piece in enumerate(wanted):
            if piece.id not in self._facts or piece.id in self._indexes:
                self._refuse("unknown_id", "retiredFacts", index)
            elif not self._said.holds(piece.quote):
                self._refuse("quote_not_found", "retiredFacts", index)
            elif self._budget <= 0:
                self._refuse("too_many_retired", "retiredFacts", index)
            else:
                self._retire(piece.id, "retired", note=redact(aside(piece.reason))[0])

    def rewrite(self, wanted: Mapping[str, str]) -> None:
        """Rewrite the summaries that are named."""
        for index, (name, text) in enumerate(wanted.items()):
            clean = without_upload_events(one_line(text))
            if name not in SECTIONS:
                self._refuse("unknown_summary", "summaries", index)
            elif not clean:
                self._refuse("empty", "summaries", index)
            elif len(clean) > MAX_SUMMARY_CHARS:
                self._refuse("too_long", "summaries", index)
            elif holds_secret(clean):
                self._refuse("secret", "summaries", index)
            else:
                section = self._sections.setdefault(SECTIONS[name], dict(self._old[SECTIONS[name]]))
                section[name] = {"summary": clean, "updatedAt": self._now}

    def trim(self) -> None:
        """Archive what is over the cap: least confidence first; among equals corrections stay, then the newer."""
        surplus = len(self._facts) - self._settings.max_facts
        if surplus <= 0:
            return
        # The sort is stable, and facts stand in the order they came: among full equals the older go.
        for fact_id in sorted(self._facts, key=self._worth)[:surplus]:
            self._archive(fact_id, "evicted")
            if fact_id in self._indexes:
                self._refuse("memory_full", "newFacts", self._indexes.pop(fact_id))

    def finish(self, messages: Iterable[Message]) -> Applied:
        """The new document with its ledger."""
        document = {
            **self._old,
            **self._sections,
            "revision": self._revision,
            "lastUpdated": self._now,
            "facts": list(self._facts.values()),
            "archive": archive.extend(self._old["archive"], self._archived, self._settings.archive_cap),
            "ledger": ledger.taken(
                self._old["ledger"],
                self._origin.thread_id,
                (message.identity for message in messages),
                self._settings.ledger_cap,
            ),
        }
        confirmed = tuple(fact_id for fact_id in self._confirmed if fact_id in self._facts)
        return Applied(document, tuple(self._indexes), confirmed, tuple(self._retired), tuple(self._refusals))

    def _store(self, index: int, piece: NewFact, used: Container[str]) -> str | None:
        """Add one fact, or confirm the one that says the same; its id, or None when it is refused."""
        content = one_line(piece.content)
        reason = refusal(piece, content, self._settings) or removed.refusal(self._removed, content)
        evidence = [] if reason else self._said.evidence(piece.evidence)
        if not evidence:
            self._refuse(reason or _unproven(piece), "newFacts", index)
            return None
        same = self._ids_by_content.get(same_key(content))
        if same is None:
            fact_id = new_id(self._old, self._revision, content, index, used)
            self._facts[fact_id] = new_fact(fact_id, piece, content, evidence, self._origin, self._settings)
            self._ids_by_content[same_key(content)] = fact_id
            self._indexes[fact_id] = index
            return fact_id
        if same in self._indexes or same not in self._facts:
            self._refuse("repeated", "newFacts", index)
            return None
        self._confirm(same)
        return same

    def _confirm(self, fact_id: str) -> None:
        if fact_id in self._confirmed:
            return
        self._confirmed[fact_id] = None
        fact = self._facts[fact_id]
        before = fact.get("confirmations")
        count = before + 1 if type(before) is int and before >= 0 else 1
        self._facts[fact_id] = {**fact, "confirmations": count, "lastConfirmedAt": self._now}

    def _replace(self, fact_id: str, piece: NewFact, index: int, known: Container[str]) -> None:
        """Retire what the fact replaces and note it there; the fact stays even where the old one may not go."""
        gone: list[str] = []
        for old_id in dict.fromkeys(piece.replaces):
            if old_id == fact_id or old_id in self._retired:
                continue
            if old_id not in known:
                self._refuse("unknown_id", "newFacts", index)
            elif self._budget <= 0:
                self._refuse("too_many_retired", "newFacts", index)
            else:
                gone.append(old_id)
                self._retire(old_id, "replaced", replaced_by=fact_id)
        if gone:
            fact = self._facts[fact_id]
            self._facts[fact_id] = {**fact, "replaces": [*fact.get("replaces", ()), *gone]}

    def _retire(self, fact_id: str, reason: archive.Reason, *, note: str = "", replaced_by: str = "") -> None:
        self._budget -= 1
        self._retired[fact_id] = None
        self._archive(fact_id, reason, note=note, replaced_by=replaced_by)

    def _archive(self, fact_id: str, reason: archive.Reason, *, note: str = "", replaced_by: str = "") -> None:
        fact = self._facts.pop(fact_id)
        self._archived.append(archive.entry(fact, reason, self._now, note=note, replaced_by=replaced_by))

    def _worth(self, fact_id: str) -> tuple[float, bool, str]:
        """A replacement is worth at least what it replaced, so that a full memory never loses both for a third."""
        fact = self._facts[fact_id]
        if fact_id not in self._indexes or "replaces" not in fact:
            return rank(fact)
        replaced = [rank(entry) for entry in self._archived if entry.get("replacedBy") == fact_id]
        return max([rank(fact), *replaced])

    def _refuse(self, reason: str, part: Part, index: int) -> None:
        self._refusals.append(Refusal(reason, part, index))


def _retirement_budget(facts: int, settings: ApplySettings) -> int:
    """How many facts one update may retire: the share, but at least one, and never more than the maximum."""
    return min(settings.max_retired_facts, max(1, int(settings.max_retired_share * facts)))


def _unproven(piece: NewFact) -> str:
    return "quote_not_found" if piece.evidence else "no_evidence"
