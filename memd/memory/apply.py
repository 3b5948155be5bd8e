"""Apply: what of an update comes true. A pure function: same input, same output, byte for byte; nothing is mutated.

In order: facts that were reviewed; facts are confirmed, added (a replacement before what it replaces goes), retired,
merged; summaries rewritten; what is over the cap leaves; the ledger takes the messages in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from msgspec.structs import replace

from memd.config import ApplySettings
from memd.context import Message
from memd.extraction.protocol import Maintenance
from memd.extraction.short_ids import with_full_ids
from memd.extraction.update import ConfirmedFact, Evidence, NewFact, RetiredFact, Update
from memd.memory import eviction, ledger, merging, removed, review
from memd.memory.document import SECTIONS, Document
from memd.memory.draft import Applied, Draft, Refusal
from memd.memory.duplicates import Contents
from memd.memory.facts import EXPLICIT_CONFIDENCE, Origin, aside, is_note, new_fact, new_id
from memd.memory.gates.orders import refused_as
from memd.memory.gates.refusal import refusal
from memd.memory.gates.uploads import without_upload_events
from memd.memory.said import Said
from memd.memory.similar import says_more
from memd.memory.text import fold, one_line
from memd.push.redaction import holds_secret, redact

__all__ = ["Applied", "Origin", "Refusal", "apply", "maintenance_due"]

MAX_SUMMARY_CHARS = 1_500
"""Characters of one summary; the longest asked for has five themes."""

NO_HEAT: Mapping[str, float] = MappingProxyType({})


def maintenance_due(document: Document, now: datetime, settings: ApplySettings) -> Maintenance:
    """The questions about the document itself that are due."""
    return Maintenance(review.offered(document, now, settings), merging.categories(document, settings))


def apply(
    document: Document,
    update: Update,
    sent: Sequence[Message],
    taken: Sequence[Message],
    origin: Origin,
    settings: ApplySettings,
    *,
    maintenance: Maintenance | None = None,
    heat: Mapping[str, float] = NO_HEAT,
) -> Applied:
    """The document after this update.

    `sent`: the messages that evidence counts from 0; `taken`: the messages to enter in the ledger. Only messages that
    the ledger does not hold prove anything; with nothing new in either, the document comes back as it is.
    `maintenance`: the questions about the document that the extractor was asked, if any. `heat`: see `eviction.trim`.
    """
    new = {message.identity for message in ledger.unknown(document, origin.thread_id, sent)}
    if not new and not ledger.unknown(document, origin.thread_id, taken):
        return Applied(document, (), (), (), ())
    draft = Draft(document, origin, settings)
    if new:
        maintenance, update = maintenance or Maintenance(), with_full_ids(update, draft.known)
        changes = _Changes(draft, Said(origin.thread_id, sent, new))
        review.expire(draft)
        review.review(draft, maintenance.review, update.reviewed_facts)
        changes.confirm(update.confirmed_facts)
        changes.add(update.new_facts)
        changes.retire(update.retired_facts)
        merging.merge(draft, update.merged_facts, maintenance.merge)
        changes.rewrite(update.summaries)
        eviction.trim(draft, heat)
    return draft.finish([*taken, *sent])


class _Changes:
    """The steps that need the user's words."""

    def __init__(self, draft: Draft, said: Said) -> None:
        self._draft = draft
        self._said = said
        self._settings = draft.settings
        self._contents = Contents((), 1.0)
        self._removed = removed.hashes(draft.old)

    def confirm(self, wanted: Iterable[ConfirmedFact]) -> None:
        """Count facts that the user stated again."""
        for index, piece in enumerate(wanted):
            if piece.id not in self._draft.facts:
                self._draft.refuse("unknown_id", "confirmedFacts", index)
            elif not self._said.holds(piece.quote):
                self._draft.refuse("quote_not_found", "confirmedFacts", index)
            else:
                self._draft.confirm(piece.id)
                self._prove(piece.id, self._said.evidence([Evidence(-1, piece.quote)]), 0.0)

    def add(self, wanted: Sequence[NewFact]) -> None:
        """Add what passes the gates; then, and only then, what it replaces goes."""
        if not wanted:
            return
        self._contents = Contents(self._draft.facts.values(), self._settings.near_duplicate)
        for index, piece in enumerate(wanted):
            self._store(index, piece)

    def retire(self, wanted: Iterable[RetiredFact]) -> None:
        """Archive facts that the user said are over."""
        for index, piece in enumerate(wanted):
            if piece.id not in self._draft.facts or piece.id in self._draft.added:
                self._draft.refuse("unknown_id", "retiredFacts", index)
            elif not self._said.holds(piece.quote):
                self._draft.refuse("quote_not_found", "retiredFacts", index)
            else:
                note = redact(aside(piece.reason))[0]
                self._draft.retire(piece.id, "retired", "retiredFacts", index, note=note)

    def rewrite(self, wanted: Mapping[str, str]) -> None:
        """Rewrite the summaries that are named."""
        for index, (name, text) in enumerate(wanted.items()):
            clean = without_upload_events(one_line(text))
            if reason := _summary_refusal(name, clean) or refused_as(text):
                self._draft.refuse(reason, "summaries", index)
                continue
            section = SECTIONS[name]
            summaries = self._draft.sections.setdefault(section, dict(self._draft.old[section]))
            summaries[name] = {"summary": clean, "updatedAt": self._draft.now}

    def _store(self, index: int, piece: NewFact) -> None:
        """Add one fact, or confirm the one that says the same."""
        content = one_line(piece.content)
        reason = refusal(piece, content, self._settings) or removed.refusal(self._removed, content)
        evidence = [] if reason else self._said.evidence(piece.evidence)
        if not evidence:
            reason = reason or ("quote_not_found" if piece.evidence else "no_evidence")
        elif self._thread_is_full():
            reason = "rate"
        if reason:
            self._draft.refuse(reason, "newFacts", index)
            return
        if piece.category.strip().casefold() == "correction" and self._said.signalled(evidence, "correction"):
            piece = replace(piece, confidence=max(piece.confidence, EXPLICIT_CONFIDENCE))
        person = fold(aside(piece.subject.person)) if piece.subject else ""
        same = self._contents.same(content, person)
        near = self._contents.near(content, person) if same is None else None
        if near in self._draft.known and says_more(content, self._draft.facts[near]["content"]):
            piece = replace(piece, replaces=(*piece.replaces, near))
        elif near is not None:
            same = near
        if same is None:
            same = self._put(index, piece, content, evidence)
        elif same in self._draft.added:
            self._draft.refuse("repeated", "newFacts", index)
            return
        else:
            self._draft.confirm(same)
            self._prove(same, evidence, piece.confidence)
        self._replace(same, piece, index)

    def _prove(self, fact_id: str, evidence: list[dict[str, object]], confidence: float) -> None:
        """An agent's note that the user says as well rests on the user's words from then on."""
        draft = self._draft
        if not is_note(draft.facts[fact_id]):
            return
        draft.change(
            fact_id,
            source=draft.origin.source,
            confidence=max(confidence, self._settings.confidence_threshold),
            evidence=evidence,
            origin={"model": draft.origin.model, "promptVersion": draft.origin.prompt_version},
        )

    def _put(self, index: int, piece: NewFact, content: str, evidence: list[dict[str, object]]) -> str:
        draft = self._draft
        fact_id = new_id(draft.old, draft.revision, content, index, draft.used)
        draft.put(new_fact(fact_id, piece, content, evidence, draft.origin, self._settings), index)
        self._contents.put(draft.facts[fact_id])
        return fact_id

    def _replace(self, fact_id: str, piece: NewFact, index: int) -> None:
        """Retire what the fact replaces and note it there; the fact stays even where the old one may not go."""
        draft, gone = self._draft, []
        for old_id in dict.fromkeys(piece.replaces):
            if old_id == fact_id or draft.is_retired(old_id):
                continue
            if old_id not in draft.known or old_id not in draft.facts:
                draft.refuse("unknown_id", "newFacts", index)
            elif draft.retire(old_id, "replaced", "newFacts", index, replaced_by=fact_id):
                gone.append(old_id)
                self._contents.drop(old_id)
        if gone:
            draft.change(fact_id, replaces=[*draft.facts[fact_id].get("replaces", ()), *gone])

    def _thread_is_full(self) -> bool:
        """Whether the thread has added all that it may today (UTC)."""
        most, draft = self._settings.max_new_per_thread_day, self._draft
        if not most:
            return False
        facts = [*draft.facts.values(), *draft.old["archive"], *draft.archived]
        today = draft.now[:10]
        mine = {
            fact.get("id")
            for fact in facts
            if fact.get("source") == draft.origin.source and str(fact.get("createdAt", "")).startswith(today)
        }
        return len(mine) >= most


def _summary_refusal(name: str, clean: str) -> str | None:
    if name not in SECTIONS:
        return "unknown_summary"
    if not clean:
        return "empty"
    if len(clean) > MAX_SUMMARY_CHARS:
        return "too_long"
    return "secret" if holds_secret(clean) else None
