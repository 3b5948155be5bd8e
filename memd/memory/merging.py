"""Consolidation: facts of one category that overlap become one that names its sources; the archive keeps them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from memd.config import ApplySettings
from memd.extraction.update import MergedFact
from memd.memory.document import Document, Fact, confidence_of
from memd.memory.draft import Draft
from memd.memory.facts import is_manual, is_note, new_id, person_of
from memd.memory.gates.refusal import content_refusal
from memd.memory.said import MAX_EVIDENCE
from memd.memory.similar import tokens
from memd.memory.text import one_line

MAX_SOURCES = 8
"""Facts that one merge may take up."""

MAX_NEW_SHARE = 0.3
"""Share of a merged sentence's words that stand in none of its sources: enough for "and", "such as", a new order."""

_DIGIT = re.compile(r"\d")


def categories(document: Document, settings: ApplySettings) -> tuple[str, ...]:
    """The categories that hold enough facts for a merge, by name."""
    if not settings.consolidate_from:
        return ()
    counts = Counter(fact.get("category") for fact in document.get("facts", ()) if _may_merge(fact))
    return tuple(sorted(name for name, count in counts.items() if count >= settings.consolidate_from and name))


def merge(draft: Draft, wanted: Sequence[MergedFact], offered: Sequence[str]) -> None:
    """Do one merge at most: facts that go by merging are beyond the budget of retirements, so they must stay few."""
    merged = False
    for index, piece in enumerate(wanted):
        content = one_line(piece.content)
        reason = "too_many_merged" if merged else _refusal(draft, piece, content, offered)
        if reason:
            draft.refuse(reason, "mergedFacts", index)
        else:
            _merge(draft, content, list(dict.fromkeys(piece.sources)), index)
            merged = True


def _merge(draft: Draft, content: str, sources: Sequence[str], index: int) -> None:
    facts = [draft.facts[source] for source in sources]
    fact_id = new_id(draft.old, draft.revision, content, index, draft.used)
    newest = max(facts, key=lambda fact: str(fact.get("lastConfirmedAt") or fact.get("createdAt") or ""))
    evidence = [piece for fact in facts for piece in fact.get("evidence") or () if isinstance(piece, dict)]
    merged: Fact = {
        "id": fact_id,
        "content": content,
        "category": facts[0].get("category"),
        "confidence": min(map(confidence_of, facts)),  # as sure as the least sure of what it says
        "createdAt": draft.now,
        "source": newest.get("source", "unknown"),
        "evidence": evidence[:MAX_EVIDENCE],
        "replaces": list(sources),
        "origin": {"model": draft.origin.model, "promptVersion": draft.origin.prompt_version},
    }
    for name in ("subject", "lastConfirmedAt"):
        if name in newest:
            merged[name] = newest[name]
    counts = [fact["confirmations"] for fact in facts if type(fact.get("confirmations")) is int]
    if counts:
        merged["confirmations"] = sum(counts)
    for source in sources:
        draft.archive(source, "merged", replaced_by=fact_id)
    draft.put(merged)


def _refusal(draft: Draft, piece: MergedFact, content: str, offered: Sequence[str]) -> str | None:
    sources = [draft.facts.get(source) for source in dict.fromkeys(piece.sources)]
    facts = [fact for fact in sources if fact is not None and fact["id"] in draft.known]
    if len(facts) != len(sources):
        return "unknown_id"
    if not 2 <= len(facts) <= MAX_SOURCES:
        return "bad_merge"
    kinds = {(fact.get("category"), person_of(fact)) for fact in facts}
    if len(kinds) != 1 or facts[0].get("category") not in offered or not all(map(_may_merge, facts)):
        return "bad_merge"
    if reason := content_refusal(content, draft.settings):
        return reason
    return None if _says_only(content, facts) else "not_in_sources"


def _says_only(content: str, facts: Sequence[Fact]) -> bool:
    """Whether a merged sentence says what its sources say: hardly a word, and no number, that is in none of them."""
    said = {token for fact in facts for token in tokens(fact["content"])}
    words = set(tokens(content))
    new = words - said
    return len(new) <= MAX_NEW_SHARE * len(words) and not any(map(_DIGIT.search, new))


def _may_merge(fact: Fact) -> bool:
    if fact.get("category") == "correction" or "validUntil" in fact or is_manual(fact):
        return False
    return not is_note(fact)  # merged with what is proven it would borrow its evidence
