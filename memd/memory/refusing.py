"""Refusing: how an update keeps the facts that it refuses, as far as `apply.keep_refused` wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from memd.extraction.update import NewFact
from memd.memory import doubtful, refused, removed, suspended
from memd.memory.categories import category_or_default
from memd.memory.document import Fact, facts_of
from memd.memory.draft import Applied, Draft
from memd.memory.duplicates import key_of
from memd.memory.evidence import UserMessages
from memd.memory.fact_ids import new_id
from memd.memory.facts import has_confidence, id_of, person_of
from memd.memory.gates.sensitive import held_back
from memd.memory.quotes import MAX_QUOTE_CHARS
from memd.memory.said import off_record
from memd.memory.subjects import subject_fields
from memd.memory.text import one_line
from memd.memory.unlearning import Wishes
from memd.push.redaction import holds_secret

MAX_CHARS = 500
"""Characters that are kept of a refused sentence."""

MAX_QUOTES = 3
"""Quotes that are kept with it. At most 200 such facts stay below 3 MB in any script."""


def keep_refused(
    applied: Applied, draft: Draft, proposed: Sequence[NewFact], messages: UserMessages, wishes: Wishes
) -> Applied:
    """The result with the last `apply.keep_refused` refused facts in its document, each sentence once.

    A sentence that the memory has, or that waits for a person to decide, is none of them.
    """
    most, document = draft.settings.keep_refused, applied.document
    kept = {key_of(fact): fact for fact in refused.facts_of(document)} if most else {}
    if most and not _is_off_the_record(draft, wishes):
        for fact in _refused(applied, draft, proposed, messages):
            kept.pop(key_of(fact), None)
            kept[key_of(fact)] = fact
    if not kept and refused.FIELD not in document:
        return applied
    known = (facts_of(document), doubtful.facts_of(document), suspended.facts_of(document))
    keys = {key_of(fact) for facts in known for fact in facts}
    left = [fact for key, fact in kept.items() if key not in keys]
    return replace(applied, document=refused.with_facts(document, left[-most:]))


def _is_off_the_record(draft: Draft, wishes: Wishes) -> bool:
    """Whether the thread or any of its messages is off the record: nobody knows what a fact was made of."""
    origin = draft.origin
    return bool(wishes) or off_record.is_off(draft.old, origin.ledger_name or origin.thread_id)


def _refused(applied: Applied, draft: Draft, proposed: Sequence[NewFact], messages: UserMessages) -> Iterator[Fact]:
    tombstones = removed.hashes(draft.old, said_anew=True)
    for refusal in applied.refusals:
        if refusal.part != "newFacts" or refusal.reason not in refused.REASONS:
            continue
        proposal = proposed[refusal.index]
        content = one_line(proposal.content)
        fact = _fact(refusal.index, proposal, content, draft, messages)
        was_removed = removed.refusal(tombstones, content, person_of(fact))
        if not content or was_removed or _is_private(proposal, content, draft):
            continue
        draft.used.add(id_of(fact))
        yield {**fact, "refusedAt": draft.now, "refusedWhy": refusal.reason}


def _is_private(proposal: NewFact, content: str, draft: Draft) -> bool:
    """Whether it holds a secret, or what `apply.sensitive` holds back."""
    subject = (proposal.subject.person, proposal.subject.relationship) if proposal.subject else ()
    texts = (proposal.content, content, *subject, *(item.quote for item in proposal.evidence))
    return bool(held_back(proposal, content, draft.settings)) or any(map(holds_secret, texts))


def _fact(index: int, proposal: NewFact, content: str, draft: Draft, messages: UserMessages) -> Fact:
    """A refused fact: what a person needs to judge it, no more."""
    fact: Fact = {
        "id": new_id(draft.old, draft.revision, content, index, draft.used),
        "content": content if len(content) <= MAX_CHARS else content[: MAX_CHARS - 1] + "…",
        "category": category_or_default(proposal.category, draft.settings.categories, content),
        "confidence": proposal.confidence,
        "source": draft.origin.source,
    }
    if subject := subject_fields(proposal):
        fact["subject"] = subject
    if not has_confidence(fact):
        del fact["confidence"]
    found = messages.evidence(proposal.evidence, person_of(fact))
    quotes = found or [{"quote": one_line(item.quote)[:MAX_QUOTE_CHARS]} for item in proposal.evidence if item.quote]
    return {**fact, "evidence": quotes[:MAX_QUOTES]} if quotes else fact
