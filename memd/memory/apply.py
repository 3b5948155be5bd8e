"""Apply: turns an update into the next document. A pure function: same input, same output, byte for byte.

In order: facts are confirmed, added (a replacement is stored before what it replaces retires) and retired; what a new
fact contradicts ends, and what an ended one tells besides stays; facts are reviewed and merged; summaries are
rewritten; messages are hidden; facts over the cap are evicted; the profile is filled; the ledger takes the messages in;
and what the user asks to forget leaves the result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType

from msgspec.structs import replace

from memd.config import ApplySettings
from memd.context import Message
from memd.extraction.protocol import Maintenance
from memd.extraction.short_ids import with_full_ids
from memd.extraction.update import ConfirmedFact, NewFact, RetiredFact, Update
from memd.memory import eviction, late, ledger, merging, profiles, profiling, removed, review
from memd.memory.document import SECTIONS, Document, Fact, archive_of
from memd.memory.doubtful import Why
from memd.memory.doubting import doubt, why_doubtful
from memd.memory.draft import Applied, Draft, Refusal
from memd.memory.duplicates import Contents, says_more
from memd.memory.evidence import UserMessages
from memd.memory.fact_ids import new_id
from memd.memory.facts import (
    Evidence,
    content_of,
    created_at,
    evidence_of,
    id_of,
    is_note,
    person_of,
    replaces,
    source_of,
    valid_until,
)
from memd.memory.former_uploads import drop_upload_events
from memd.memory.gates.refusal import fact_refusal, summary_refusal, without_orders_beside
from memd.memory.gates.sensitive import held_back
from memd.memory.gates.uploads import without_upload_events
from memd.memory.new_facts import EXPLICIT_CONFIDENCE, Origin, new_fact, on_the_day, said_at
from memd.memory.outdated import cut_outdated
from memd.memory.outright import Outright
from memd.memory.projects.outbox import OutboxEntry
from memd.memory.projects.shared import NO_PROJECTS, Projects
from memd.memory.refusing import keep_refused
from memd.memory.relations import end_relations
from memd.memory.remaining import keep_rest
from memd.memory.retiring import Ending
from memd.memory.sayings import Saying, earlier, of_fact, of_summary, said_in
from memd.memory.scoping import Scoping, known_besides, scopes_of
from memd.memory.subjects import person_named
from memd.memory.superseding import end_superseded
from memd.memory.supported import Supported
from memd.memory.text import aside, one_line
from memd.memory.unlearning import Wishes, fulfil
from memd.memory.untold import Untold
from memd.push.redaction import redact

__all__ = ["Applied", "Origin", "Refusal", "apply", "maintenance_due"]

HIDING = frozenset({"not_descriptive", "instruction", "markup", "secret", "removed"})
"""Reasons to refuse a fact for which the messages that it quotes are hidden."""

NOTHING_READ: Mapping[str, float] = MappingProxyType({})


def maintenance_due(document: Document, now: datetime, settings: ApplySettings) -> Maintenance:
    """The questions about the document itself that are due: reviews, merges, the profile."""
    profile = settings.profile and profiles.is_due(document, now)
    return Maintenance(review.offered(document, now, settings), merging.categories(document, settings), profile)


def apply(  # noqa: PLR0913  (what an update needs; callers name all but the first ones)
    document: Document,
    update: Update,
    sent: Sequence[Message],
    taken: Sequence[Message],
    origin: Origin,
    settings: ApplySettings,
    *,
    maintenance: Maintenance | None = None,
    recent_use: Mapping[str, float] = NOTHING_READ,
    projects: Projects = NO_PROJECTS,
) -> Applied:
    """The document after this update.

    `sent`: the messages that evidence numbers from 0; `taken`: the messages to enter in the ledger. Only messages that
    the ledger does not hold prove anything; with nothing new in either, the document is returned unchanged.
    `maintenance`: the questions about the document that the extractor was asked, if any.
    `recent_use`: see `eviction.trim`. `projects`: those of the messages' marks to which the user may add, as the
    extractor was shown them; what is for them stands in the document's outbox.
    """
    name = origin.ledger_name or origin.thread_id
    new = {message.identity for message in ledger.unknown(document, name, sent)}
    if not new and not ledger.unknown(document, name, taken):
        return Applied(document, (), (), (), ())
    draft = Draft(document, origin, settings)
    wishes = Wishes(origin, sent, UserMessages(origin.thread_id, sent, new), update.forgotten_facts)
    heard = wishes.without_them(sent)
    messages = UserMessages(origin.thread_id, heard, new)
    update = with_full_ids(update, draft.known | known_besides(draft.old, scopes_of(origin.session, sent), projects))
    scoping = Scoping(draft, update, sent, taken, messages, projects)
    entries: list[OutboxEntry] = []
    if new:
        maintenance = maintenance or Maintenance()
        supported = Supported(draft, heard, projects)
        steps_of = partial(
            _Steps, messages=messages, wishes=wishes, outright=Outright(heard, messages), supported=supported
        )
        steps = steps_of(draft)
        drop_upload_events(draft)
        steps.confirm(scoping.everywhere.confirmed)
        steps.add(scoping.everywhere.new)
        steps.retire(scoping.everywhere.retired)
        end_relations(draft)
        end_superseded(draft, steps.contents)
        if not wishes:  # what a fact tells besides may be what the user wants forgotten
            keep_rest(draft, sent)
        entries = scoping.apply(steps, steps_of)
        # What the user has just said comes first: a fact that they said again has not ended, whatever its date.
        review.review(draft, maintenance.review, update.reviewed_facts)
        review.expire(draft)
        merging.merge(draft, update.merged_facts, maintenance.merge)
        cut_outdated(draft)
        steps.rewrite(update.summaries)
        steps.hide(update.hide, sent)
        eviction.trim(draft, recent_use)
        profiling.fill(draft, update.profile, asked=maintenance.profile)
    applied = keep_refused(draft.finish([*taken, *sent]), draft, update.new_facts, messages, wishes)
    applied = scoping.finish(applied, entries)
    known = draft.known | scoping.visible
    applied = fulfil(applied, draft, update.forgotten_facts if new else (), wishes, known)
    settled = profiles.settled(applied.document)
    return applied if settled is applied.document else dataclasses.replace(applied, document=settled)


class _Steps:
    """The steps that need the user's words as proof."""

    def __init__(
        self, draft: Draft, messages: UserMessages, wishes: Wishes, outright: Outright, supported: Supported
    ) -> None:
        self._draft = draft
        self._messages = messages
        self._wishes = wishes
        self._outright = outright
        self._supported = supported
        self._settings = draft.settings
        self.contents = Contents(())
        """Those of the draft's facts, from the first new one on."""
        self._removed = removed.hashes(draft.old, said_anew=True)
        self._untold = Untold()

    def confirm(self, confirmed: Iterable[tuple[int, ConfirmedFact]]) -> None:
        """Count facts that the user stated again. Each item comes with its index in the update, here and below."""
        for index, item in confirmed:
            fact = self._draft.facts.get(item.id)
            if fact is None:
                self._draft.refuse("unknown_id", "confirmedFacts", index)
            elif not (evidence := self._messages.quote(item.quote, person_of(fact))):
                self._draft.refuse(self._messages.why_not([item.quote]), "confirmedFacts", index)
            else:
                self._draft.confirm(item.id, said_in(evidence))
                self._prove(item.id, evidence, 0.0)

    def add(self, proposed: Sequence[tuple[int, NewFact]]) -> None:
        """Add what passes the gates; only then is what it replaces retired."""
        if not proposed:
            return
        self.contents = Contents(self._draft.facts.values(), self._settings.near_duplicate)
        for index, proposal in proposed:
            self._add(index, proposal)

    def retire(self, retired: Iterable[tuple[int, RetiredFact]]) -> None:
        """Archive facts that the user said are over."""
        for index, item in retired:
            fact = self._draft.facts.get(item.id)
            if fact is None or item.id in self._draft.added:
                self._draft.refuse("unknown_id", "retiredFacts", index)
            elif not (evidence := self._messages.quote(item.quote, person_of(fact))):
                self._draft.refuse(self._messages.why_not([item.quote]), "retiredFacts", index)
            elif earlier(said_in(evidence), of_fact(fact)):
                self._draft.refuse("said_earlier", "retiredFacts", index)
            else:
                note = redact(aside(item.reason))[0]
                proofs = self._messages.identities(evidence)
                wish = Ending(item.id, "retired", note, over=said_in(evidence), proofs=proofs)
                self._draft.retire(wish, "retiredFacts", index)

    def rewrite(self, summaries: Mapping[str, str]) -> None:
        """Rewrite the summaries that are named, unless newer words of the user are in them."""
        said = self._messages.last_own()
        for index, (name, text) in enumerate(summaries.items()):
            clean = self._wishes.cut(without_upload_events(one_line(text)))
            if name not in SECTIONS:
                reason: str | None = "unknown_summary"
            elif said is None:
                reason = "other_speaker"
            else:
                late = earlier(said, of_summary(self._draft.old, name))
                reason = "said_earlier" if late else summary_refusal(text, clean)
                if not reason and not (clean := self._untold.cut(clean, self._draft.facts.values())):
                    reason = "sensitive"
            if reason or said is None:
                self._draft.refuse(reason or "other_speaker", "summaries", index)
            else:
                self._draft.rewrite(name, clean, said)

    def hide(self, numbers: Iterable[int], sent: Sequence[Message]) -> None:
        """Hide messages; hiding needs no proof, for it takes nothing away that a fact says."""
        for index, number in enumerate(numbers):
            if number < len(sent):
                self._draft.hide(sent[number].identity)
            else:
                self._draft.refuse("unknown_message", "hide", index)

    def _add(self, index: int, proposal: NewFact) -> None:
        """Add one fact, or confirm the one that says the same."""
        proposal = without_orders_beside(proposal)
        content = one_line(proposal.content)
        person = person_named(proposal)
        if self._is_outright(proposal, person):
            proposal = replace(proposal, confidence=EXPLICIT_CONFIDENCE)
        evidence = self.proof(index, proposal, content, person)
        if not evidence:
            return
        confidence, old_ids = self._confidence(proposal, evidence), proposal.replaces
        same = self.contents.same(content, person)
        near = self.contents.near(content, person) if same is None else None
        if near in self._draft.known and (near in old_ids or says_more(content, content_of(self._draft.facts[near]))):
            old_ids = tuple(dict.fromkeys((*old_ids, near)))  # "Thea, not Freya": alike but for what was corrected
        elif near is not None:
            same = near
        said = said_in(evidence)
        if same is None:
            fact = self._made(index, proposal, content, confidence, evidence)
            if self._is_late(index, fact, said, old_ids):
                return
            self._draft.put(fact, index)
            self._draft.proved(id_of(fact), self._messages.identities(evidence))
            self.contents.put(fact)
            same = id_of(fact)
        elif same in self._draft.added:
            self._draft.refuse("repeated", "newFacts", index)
            return
        else:
            self._draft.confirm(same, said)
            self._prove(same, evidence, confidence)
        self._replace(same, old_ids, index, evidence)

    def _is_outright(self, proposal: NewFact, person: str) -> bool:
        """Whether the user asks to remember it, so that a lesser confidence is the model's error."""
        if not self._outright or proposal.confidence >= EXPLICIT_CONFIDENCE:
            return False
        return self._outright.holds(self._messages.evidence(proposal.evidence, person))

    def _is_late(self, index: int, fact: Fact, said: Saying, old_ids: Sequence[str]) -> bool:
        """Whether a new fact is over by what was said later or by its own date. It then goes to the archive at once."""
        draft = self._draft
        later = late.successor(draft, self.contents, fact, said, old_ids)
        if later is None and late.is_over(draft, fact, said):
            draft.refuse("said_earlier", "newFacts", index)  # the archive has it already
            return True
        ended = "" < valid_until(fact) < draft.now
        if later is None and not ended:
            return False
        draft.put(fact)
        draft.proved(id_of(fact), self._messages.identities(evidence_of(fact)))
        if later is None:
            draft.archive(id_of(fact), "expired")
            draft.refuse("expired", "newFacts", index)
            return True
        over = of_fact(draft.facts[later])
        draft.archive(id_of(fact), "replaced", replaced_by=later, over=over)
        draft.refuse("said_earlier", "newFacts", index)
        before = [old_id for old_id in old_ids if self._was_said_before(old_id, said)]
        self._replace(later, before, index, evidence_of(fact))
        return True

    def _was_said_before(self, fact_id: str, said: Saying) -> bool:
        fact = self._draft.facts.get(fact_id)
        return fact is not None and not earlier(said, of_fact(fact))

    def proof(self, index: int, proposal: NewFact, content: str, person: str) -> list[Evidence]:
        """The evidence of a fact that passes every gate; empty when it is refused."""
        held = held_back(proposal, content, self._settings)
        reason, evidence = ("sensitive", []) if held == "drop" else self._judged(proposal, content, person)
        if held:
            reason = reason or "sensitive"
            self._untold.note(proposal, content)
        if not reason:
            return evidence
        self._draft.refuse(reason, "newFacts", index)
        if held or reason in HIDING:
            self._hide_quoted(proposal, person if held else "")
        if why := why_doubtful(reason, proposal, content, held, self._settings):
            self._doubt(index, proposal, content, person, why)
        return []

    def _judged(self, proposal: NewFact, content: str, person: str) -> tuple[str, list[Evidence]]:
        """The first gate that stops a fact, "" when it passes, and its evidence."""
        if reason := fact_refusal(proposal, content, self._settings) or removed.refusal(self._removed, content, person):
            return reason, []
        evidence = self._messages.evidence(proposal.evidence, person)
        if not evidence:
            quotes = [item.quote for item in proposal.evidence]
            return self._wishes.why_not(quotes) if quotes else "no_evidence", []
        if self._wishes.refuses(content, evidence):
            return "asked_not_to", []
        if self._thread_is_full():
            return "rate", []
        return "support" if self._supported.doubts(content, evidence) else "", evidence

    def _doubt(self, index: int, proposal: NewFact, content: str, person: str, why: Why) -> None:
        """Keep a refused fact for a person to decide on, if the user's words prove it and nobody removed it."""
        evidence = self._messages.evidence(proposal.evidence, person)
        if not evidence or removed.refusal(self._removed, content, person) or self._wishes.refuses(content, evidence):
            return
        fact = self._made(index, proposal, content, self._confidence(proposal, evidence), evidence)
        named = [old_id for old_id in dict.fromkeys(proposal.replaces) if old_id in self._draft.known]
        doubt(self._draft, {**fact, **({"replaces": named} if named else {})}, why, self._messages.identities(evidence))

    def _hide_quoted(self, proposal: NewFact, person: str) -> None:
        """Hide the messages that prove what no memory may hold, so that they are not shown as said either."""
        for identity in self._messages.identities(self._messages.evidence(proposal.evidence, person)):
            self._draft.hide(identity)

    def _confidence(self, proposal: NewFact, evidence: Sequence[Evidence]) -> float:
        """The confidence of a new fact; a correction in so many words gets at least EXPLICIT_CONFIDENCE."""
        correction = proposal.category.strip().casefold() == "correction" or bool(proposal.source_error)
        if correction and self._messages.signalled(evidence, "correction"):
            return max(proposal.confidence, EXPLICIT_CONFIDENCE)
        return proposal.confidence

    def _prove(self, fact_id: str, evidence: list[Evidence], confidence: float) -> None:
        """Note what proves a fact again; an agent's note that the user now says too becomes a proven fact."""
        draft = self._draft
        draft.proved(fact_id, self._messages.identities(evidence))
        self._wishes.prove(fact_id, evidence)
        if not is_note(draft.facts[fact_id]):
            return
        draft.change(
            fact_id,
            source=draft.origin.source,
            confidence=max(confidence, self._settings.confidence_threshold),
            evidence=evidence,
            saidAt=said_at(evidence) or None,
            saidOn=None,
            origin=draft.origin.fields,
        )

    def _made(self, index: int, proposal: NewFact, content: str, confidence: float, evidence: list[Evidence]) -> Fact:
        draft = self._draft
        fact_id = new_id(draft.old, draft.revision, content, index, draft.used)
        fact = new_fact(fact_id, proposal, content, confidence, evidence, draft.origin, self._settings)
        fact = on_the_day(fact, self._messages.day(evidence, draft.origin.zone))
        return fact | self._messages.sources(evidence)

    def _replace(self, fact_id: str, old_ids: Sequence[str], index: int, evidence: list[Evidence]) -> None:
        """Retire what the fact replaces and note it there; the fact stays even where an old one must stay too."""
        draft, gone = self._draft, []
        said, proofs = said_in(evidence), self._messages.identities(evidence)
        for old_id in dict.fromkeys(old_ids):
            if old_id == fact_id or draft.is_retired(old_id):
                continue
            if old_id not in draft.known or old_id not in draft.facts:
                draft.refuse("unknown_id", "newFacts", index)
            elif earlier(said, of_fact(draft.facts[old_id])):
                draft.refuse("said_earlier", "newFacts", index)
            elif draft.retire(
                Ending(old_id, "replaced", replaced_by=fact_id, over=said, proofs=proofs), "newFacts", index
            ):
                gone.append(old_id)
                self.contents.drop(old_id)
        if gone:
            draft.change(fact_id, replaces=[*replaces(draft.facts[fact_id]), *gone])

    def _thread_is_full(self) -> bool:
        """Whether the thread has added `max_new_per_thread_day` facts today (UTC)."""
        most, draft = self._settings.max_new_per_thread_day, self._draft
        if not most:
            return False
        source, today = draft.origin.source, draft.now[:10]
        lists = (draft.facts.values(), archive_of(draft.old), draft.archived)
        of_thread = (fact for facts in lists for fact in facts if source_of(fact) == source)
        return len({id_of(fact) for fact in of_thread if created_at(fact).startswith(today)}) >= most
