"""Eviction: picks the facts to archive when a memory is full, by confidence, or by confidence, freshness and use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from memd.memory.document import Fact
from memd.memory.draft import Draft
from memd.memory.facts import (
    created_at,
    id_of,
    is_correction,
    is_manual,
    last_confirmed_at,
    rank,
    replaced_by,
    replaces,
)

CONFIDENCE_SHARE, FRESHNESS_SHARE, USE_SHARE = 0.65, 0.25, 0.10
FRESHNESS_HALF_LIFE_DAYS = 90.0
CORRECTION_SHARE = 0.10
"""Share of `max_facts`: this many corrections stay when the mix would evict them."""

Worth = tuple[float, bool, str]


def trim(draft: Draft, recent_use: Mapping[str, float]) -> None:
    """Archive the facts over the cap, those of the lowest worth first, with their worth. Manual facts stay.

    `recent_use`: how much each fact was read lately, from 0 to 1, by id.
    """
    surplus = len(draft.facts) - draft.settings.max_facts
    if surplus <= 0:
        return
    worth = _worth(draft, recent_use)
    # The sort is stable, and facts are kept in the order they came: of equals the older go.
    order = sorted((name for name, fact in draft.facts.items() if not is_manual(fact)), key=worth.__getitem__)
    reserved = _reserved(draft, order)
    for fact_id in [name for name in order if name not in reserved][:surplus]:
        draft.archive(fact_id, "evicted", note=f"{draft.settings.eviction} {worth[fact_id][0]:.2f}")
        if fact_id in draft.added:
            draft.refuse("memory_full", "newFacts", draft.added.pop(fact_id))


def _reserved(draft: Draft, order: list[str]) -> set[str]:
    """The corrections that the mix must not evict."""
    if draft.settings.eviction != "hybrid":
        return set()
    corrections = [fact_id for fact_id in order if is_correction(draft.facts[fact_id])]
    return set(corrections[-max(1, int(CORRECTION_SHARE * draft.settings.max_facts)) :])


def _worth(draft: Draft, recent_use: Mapping[str, float]) -> dict[str, Worth]:
    """The worth of each fact.

    A replacement is worth at least as much as what it replaced, so that a full memory never loses both for a third.
    """

    def mixed(fact: Fact) -> Worth:
        confidence, correction, created = rank(fact)
        freshness, use = _freshness(fact, draft.origin.now), min(1.0, max(0.0, recent_use.get(id_of(fact), 0.0)))
        mix = CONFIDENCE_SHARE * confidence + FRESHNESS_SHARE * freshness + USE_SHARE * use
        return mix, correction, created

    own = rank if draft.settings.eviction == "confidence" else mixed
    worth = {fact_id: own(fact) for fact_id, fact in draft.facts.items()}
    for entry in draft.archived:
        successor = replaced_by(entry)
        if successor in draft.added and successor in worth and replaces(draft.facts[successor]):
            worth[successor] = max(worth[successor], own(entry))
    return worth


def _freshness(fact: Fact, now: datetime) -> float:
    """1 for a fact confirmed just now, halved for each half-life since; 0 when its time is not known."""
    try:
        time = datetime.fromisoformat(last_confirmed_at(fact) or created_at(fact))
    except ValueError:  # not a time
        return 0.0
    if time.tzinfo is None:
        return 0.0
    days = max(0.0, (now - time).total_seconds() / 86_400)
    return float(0.5 ** (days / FRESHNESS_HALF_LIFE_DAYS))
