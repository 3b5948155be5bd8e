"""Consolidation: overlapping facts of one category become one that names its sources, which go to the archive."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from memd.config import ApplySettings
from memd.extraction.update import MergedFact
from memd.memory.document import Document, Fact, facts_of, revision_of
from memd.memory.draft import Draft
from memd.memory.duplicates import IS_CJK, changes_meaning, differ_in_sides, tokens
from memd.memory.evidence import MAX_EVIDENCE
from memd.memory.fact_ids import new_id
from memd.memory.facts import (
    UNKNOWN,
    category_of,
    confidence_of,
    confirmations_of,
    content_of,
    created_at,
    evidence_of,
    id_of,
    is_mergeable,
    last_confirmed_at,
    proven_by,
    quotes_of,
    said_at_of,
    source_of,
    with_proofs,
)
from memd.memory.gates.refusal import content_refusal
from memd.memory.new_facts import base_fact
from memd.memory.sayings import latest, of_fact
from memd.memory.text import one_line
from memd.memory.whom import whom_of

MAX_SOURCES = 8
"""Most facts that one merge may replace."""

FULL_SHARE = 0.7
"""Share of `max_facts` up to which nothing is merged: a merge always loses something, and there is room."""

MIN_KEPT_SHARE = 0.7
"""Least share of each source's words that a merged sentence has, in their order."""

MAX_NEW_SHARE = 0.3
"""Most new words in a merged sentence, as a share: enough for "and", "such as", a new order."""

STRIDE = 7
"""How many facts lie between those of two revisions: facts that stand together often come from one conversation."""

_DIGIT = re.compile(r"\d")


def categories(document: Document, settings: ApplySettings) -> tuple[str, ...]:
    """The category whose facts may be merged now: none while there is room, then by turns one that holds enough."""
    facts = facts_of(document)
    if not settings.consolidate_from or len(facts) <= FULL_SHARE * settings.max_facts:
        return ()
    counts = Counter(category_of(fact) for fact in facts if is_mergeable(fact))
    enough = sorted(name for name, count in counts.items() if count >= settings.consolidate_from)
    first = revision_of(document) % len(enough) if enough else 0
    return tuple(enough[first : first + 1])


def neighbours(document: Document, offered: Sequence[str]) -> list[str]:
    """The ids of one fact of these categories and of those most like it, up to MAX_SOURCES, for a request that does not
    show the whole memory. Each revision of the document takes another fact."""
    facts = [fact for fact in facts_of(document) if category_of(fact) in offered and is_mergeable(fact)]
    if not facts:
        return []
    first = facts[revision_of(document) * STRIDE % len(facts)]
    kind, words = (category_of(first), whom_of(first)), set(tokens(content_of(first)))
    alike = [fact for fact in facts if (category_of(fact), whom_of(fact)) == kind]
    alike.sort(key=lambda fact: -len(words.intersection(tokens(content_of(fact)))))
    return [id_of(first), *(id_of(fact) for fact in alike if fact is not first)][:MAX_SOURCES]


def merge(draft: Draft, proposed: Sequence[MergedFact], offered: Sequence[str]) -> None:
    """Do one merge at most: it archives facts beyond the retirement budget, so merges must stay few."""
    merged = False
    for index, proposal in enumerate(proposed):
        content = one_line(proposal.content)
        reason = "too_many_merged" if merged else _refusal(draft, proposal, content, offered)
        if reason:
            draft.refuse(reason, "mergedFacts", index)
        else:
            _merge(draft, content, list(dict.fromkeys(proposal.sources)), index)
            merged = True


def _merge(draft: Draft, content: str, sources: Sequence[str], index: int) -> None:
    facts = [draft.facts[source] for source in sources]
    fact_id = new_id(draft.old, draft.revision, content, index, draft.used)
    newest = max(facts, key=lambda fact: last_confirmed_at(fact) or created_at(fact))
    confidence = min(map(confidence_of, facts))  # no surer than its least sure source
    merged: Fact = {
        **base_fact(fact_id, content, category_of(facts[0]), confidence, draft.now, source_of(newest) or UNKNOWN),
        "evidence": [entry for fact in facts for entry in evidence_of(fact)][:MAX_EVIDENCE],
        "replaces": list(sources),
        "origin": draft.origin.fields,
        **{name: newest[name] for name in ("subject", "lastConfirmedAt") if name in newest},
    }
    if (last := latest(map(of_fact, facts))).order:
        merged |= {"saidAt": max(map(said_at_of, facts)), "lastSaid": last.fields}
    if count := sum(map(confirmations_of, facts)):
        merged["confirmations"] = count
    merged = with_proofs(merged, (name for fact in facts for name in proven_by(fact)))
    for source in sources:
        draft.archive(source, "merged", replaced_by=fact_id)
    draft.put(merged)


def _refusal(draft: Draft, proposal: MergedFact, content: str, offered: Sequence[str]) -> str | None:
    sources = [draft.facts.get(source) for source in dict.fromkeys(proposal.sources)]
    facts = [fact for fact in sources if fact is not None and id_of(fact) in draft.known]
    if len(facts) != len(sources):
        return "unknown_id"
    if not 2 <= len(facts) <= MAX_SOURCES:
        return "bad_merge"
    kinds = {(category_of(fact), whom_of(fact)) for fact in facts}
    if len(kinds) != 1 or category_of(facts[0]) not in offered or not all(map(is_mergeable, facts)):
        return "bad_merge"
    if reason := content_refusal(content, draft.settings, [quote for fact in facts for quote in quotes_of(fact)[:1]]):
        return reason
    if not _says_only(content, facts):
        return "not_in_sources"
    return None if all(_keeps(content, content_of(fact)) for fact in facts) else "bad_merge"


def _says_only(content: str, facts: Sequence[Fact]) -> bool:
    """Whether a merged sentence only says what its sources say: few new words, and no new number."""
    source_words = {word for fact in facts for word in _words(content_of(fact))}
    words = set(_words(content))
    new = words - source_words
    return len(new) <= MAX_NEW_SHARE * len(words) and not any(map(_DIGIT.search, new))


def _keeps(content: str, source: str) -> bool:
    """Whether a merged sentence has the words of a source that change a meaning, and most others in their order."""
    merged, words = _words(content), _words(source)
    if any(changes_meaning(word) and word not in merged for word in words) or differ_in_sides(content, source):
        return False
    return _in_order(words, merged) >= MIN_KEPT_SHARE * len(words)


def _words(content: str) -> list[str]:
    """The tokens, of CJK the characters: two facts joined by 和 have other pairs of them."""
    return [word for token in tokens(content) for word in (token if IS_CJK.match(token) else (token,))]


def _in_order(words: Sequence[str], merged: Sequence[str]) -> int:
    """How many of the words the other sequence has in the same order (the longest common subsequence)."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(merged):
        places.setdefault(word, []).append(place)
    ends: list[int] = []  # by length - 1: the least place at which a common subsequence of this length ends
    for word in words:
        for place in reversed(places.get(word, [])):
            at = bisect_left(ends, place)
            ends[at : at + 1] = [place]
    return len(ends)
