"""Eviction: picks the facts to archive when a memory is full.

What is past its time goes first, then events, goals and decisions, then the rest; who somebody is, what they must not,
and what they corrected goes last. Within these the facts go that were said or read longest ago; of those, first the
ones that resemble another fact. The model's confidence decides only between equals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from enum import IntEnum
from itertools import chain

from memd.memory.document import Fact
from memd.memory.draft import Draft
from memd.memory.duplicates import tokens
from memd.memory.facts import (
    category_of,
    content_of,
    created_at,
    id_of,
    is_correction,
    is_manual,
    last_confirmed_at,
    person_of,
    rank,
    replaced_by,
    updated_at,
    valid_until,
)
from memd.push.times import moment

FRESHNESS_SHARE, UNIQUENESS_SHARE = 0.75, 0.25
FRESHNESS_HALF_LIFE_DAYS = 90.0

POOL = 20
"""So many more facts than must go are compared with all others: comparing all with all takes quadratic time."""


class Tier(IntEnum):
    """The order in which facts go."""

    ENDED, PASSING, OTHER, LASTING = range(4)


_TIERS = {
    **dict.fromkeys(("event", "goal", "decision"), Tier.PASSING),
    **dict.fromkeys(("identity", "constraint", "correction"), Tier.LASTING),
}

Worth = tuple[Tier, float, tuple[float, bool, str]]


def trim(draft: Draft, recent_use: Mapping[str, float]) -> None:
    """Archive the facts over the cap, those of the lowest worth first, with their worth. Manual facts stay.

    `recent_use`: how much each fact was read lately, from 0 to 1, by id.
    """
    surplus = len(draft.facts) - draft.settings.max_facts
    if surplus <= 0:
        return
    # The sort is stable, and facts are kept in the order they came: of equals the older go.
    worth = _worth(draft, recent_use)
    order = sorted((name for name, fact in draft.facts.items() if not is_manual(fact)), key=worth.__getitem__)
    pool = order[: surplus + POOL]
    unique = _uniqueness(draft, pool)
    worth |= {name: _with_uniqueness(worth[name], unique[name]) for name in pool}
    for fact_id in sorted(pool, key=worth.__getitem__)[:surplus]:
        tier, value, _ = worth[fact_id]
        note = "past its time" if tier is Tier.ENDED else f"{category_of(draft.facts[fact_id])}, worth {value:.2f}"
        draft.archive(fact_id, "evicted", note=note)
        if fact_id in draft.added:
            draft.refuse("memory_full", "newFacts", draft.added.pop(fact_id))


def _worth(draft: Draft, recent_use: Mapping[str, float]) -> dict[str, Worth]:
    """The worth of each fact, as unique as any.

    A replacement is worth at least as much as what it replaced, so that a full memory never loses both for a third.
    """

    def own(fact: Fact) -> Worth:
        use = min(1.0, max(0.0, recent_use.get(id_of(fact), 0.0)))
        return _tier(draft, fact), round(FRESHNESS_SHARE * max(use, _freshness(draft, fact)), 2), rank(fact)

    worth = {fact_id: own(fact) for fact_id, fact in draft.facts.items()}
    for entry in draft.archived:
        successor = replaced_by(entry)
        if successor in draft.added and successor in worth:
            worth[successor] = max(worth[successor], own(entry))
    return worth


def _tier(draft: Draft, fact: Fact) -> Tier:
    """The tier of a fact. What this update adds is never the first to go, or a full memory would learn nothing new."""
    if "" < valid_until(fact) < draft.now:
        return Tier.ENDED
    if is_correction(fact):
        return Tier.LASTING
    tier = _TIERS.get(category_of(fact), Tier.OTHER)
    return max(tier, Tier.OTHER) if id_of(fact) in draft.added else tier


def _freshness(draft: Draft, fact: Fact) -> float:
    """1 for a fact said just now, halved for each half-life since; 0 when its time is not known."""
    time = moment(max(last_confirmed_at(fact), updated_at(fact), created_at(fact)))
    if time is None:
        return 0.0
    days = max(0.0, (draft.origin.now - time).total_seconds() / 86_400)
    return float(0.5 ** (days / FRESHNESS_HALF_LIFE_DAYS))


def _uniqueness(draft: Draft, pool: Sequence[str]) -> dict[str, float]:
    """1 minus the likeness of the nearest other fact about the same person, as the share of common words."""
    words = {name: (person_of(fact), frozenset(tokens(content_of(fact)))) for name, fact in draft.facts.items()}
    holding: dict[tuple[str, str], list[str]] = {}
    for name, (person, tells) in words.items():
        for word in tells:
            holding.setdefault((person, word), []).append(name)

    def nearest(name: str) -> float:
        person, one = words[name]
        shared = Counter(chain.from_iterable(holding[person, word] for word in one))
        del shared[name]
        return max((many / (len(one) + len(words[other][1]) - many) for other, many in shared.items()), default=0.0)

    return {name: 1 - nearest(name) for name in pool}


def _with_uniqueness(worth: Worth, unique: float) -> Worth:
    tier, fresh, ranked = worth
    return tier, round(fresh + UNIQUENESS_SHARE * unique, 2), ranked
