"""Aging: for how long a fact is likely to be true without being said again, by its category and its words.

One age for all reported 107 of 190 facts of a store, one in nine rightly: who somebody is, and what they like or must
not eat, rarely changes; goals, plans and current tasks end.
"""

from __future__ import annotations

from datetime import timedelta

from memd.config import ApplySettings
from memd.memory.document import Fact
from memd.memory.facts import category_of, content_of, is_correction
from memd.memory.telling import telling

AGELESS = frozenset(("identity", "correction"))
"""Categories that do not age by themselves; nor does a correction of any other category."""

AGES = {"goal": 1, "preference": 6, "constraint": 6}
AGE = 3
"""How many times `apply.stale_after_days` a fact of the category may be unconfirmed; AGE: of any other one."""


def lifetime(fact: Fact, settings: ApplySettings) -> timedelta | None:
    """For how long the fact counts as current; None: for good. A plan or a current task has the shortest time."""
    category, days = category_of(fact), settings.stale_after_days
    if not days:
        return None
    if telling().passing.search(content_of(fact)):
        return timedelta(days=days)
    return None if category in AGELESS or is_correction(fact) else timedelta(days=days * AGES.get(category, AGE))
