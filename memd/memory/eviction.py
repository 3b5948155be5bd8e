"""Eviction: which facts go when a memory is full. By confidence, as established, or by a mix that also asks for use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from memd.memory.document import Fact, rank
from memd.memory.draft import Draft
from memd.memory.facts import is_manual

CONFIDENCE_SHARE, FRESHNESS_SHARE, HEAT_SHARE = 0.65, 0.25, 0.10
FRESHNESS_HALF_LIFE_DAYS = 90.0
CORRECTION_SHARE = 0.10
"""Of max_facts: so many corrections stay when the mix would let them go."""

Worth = tuple[float, bool, str]


def trim(draft: Draft, heat: Mapping[str, float]) -> None:
    """Archive what is over the cap, the least worth first, with what it was worth. Manual facts stay.

    `heat`: by fact id, from 0 to 1, how much a fact has been read lately.
    """
    surplus = len(draft.facts) - draft.settings.max_facts
    if surplus <= 0:
        return
    worth = _worth(draft, heat)
    # The sort is stable, and facts stand in the order they came: among full equals the older go.
    order = sorted((one for one in draft.facts if not is_manual(draft.facts[one])), key=worth.__getitem__)
    reserved = _reserved(draft, order)
    for fact_id in [one for one in order if one not in reserved][:surplus]:
        draft.archive(fact_id, "evicted", note=f"{draft.settings.eviction} {worth[fact_id][0]:.2f}")
        if fact_id in draft.added:
            draft.refuse("memory_full", "newFacts", draft.added.pop(fact_id))


def _reserved(draft: Draft, order: list[str]) -> set[str]:
    if draft.settings.eviction != "hybrid":
        return set()
    corrections = [one for one in order if draft.facts[one].get("category") == "correction"]
    return set(corrections[-max(1, int(CORRECTION_SHARE * draft.settings.max_facts)) :])


def _worth(draft: Draft, heat: Mapping[str, float]) -> dict[str, Worth]:
    """A replacement is worth at least what it replaced, so that a full memory never loses both for a third."""

    def mixed(fact: Fact) -> Worth:
        confidence, correction, created = rank(fact)
        freshness, warmth = _freshness(fact, draft.origin.now), min(1.0, max(0.0, heat.get(fact["id"], 0.0)))
        mix = CONFIDENCE_SHARE * confidence + FRESHNESS_SHARE * freshness + HEAT_SHARE * warmth
        return mix, correction, created

    own = rank if draft.settings.eviction == "confidence" else mixed
    worth = {fact_id: own(fact) for fact_id, fact in draft.facts.items()}
    for entry in draft.archived:
        successor = entry.get("replacedBy")
        if successor in draft.added and successor in worth and "replaces" in draft.facts[successor]:
            worth[successor] = max(worth[successor], own(entry))
    return worth


def _freshness(fact: Fact, now: datetime) -> float:
    """1 for what was said just now, half of it for each half-life since; 0 where no time is known."""
    said = fact.get("lastConfirmedAt") or fact.get("createdAt")
    try:
        moment = datetime.fromisoformat(said) if isinstance(said, str) else None
    except ValueError:
        return 0.0
    if moment is None or moment.tzinfo is None:
        return 0.0
    days = max(0.0, (now - moment).total_seconds() / 86_400)
    return float(0.5 ** (days / FRESHNESS_HALF_LIFE_DAYS))
