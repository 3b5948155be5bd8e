"""Replaced: which facts of a memory others have replaced. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from memd.memory.document import Fact
from memd.memory.facts import id_of, replaces

Replaced = Mapping[int, Set[int]]
"""The places of replaced facts, each with those of all facts that replaced it, directly or in several steps."""


def replaced_in(facts: Sequence[Fact]) -> Replaced:
    """The replaced facts. Those that replace each other in a circle, which only a hand-edited file has, are equals."""
    newer = _newer(facts)
    later = {old: _reachable(old, newer) for old in newer}
    successors = {old: {new for new in news if old not in later.get(new, ())} for old, news in later.items()}
    return {old: news for old, news in successors.items() if news}


def _reachable(start: int, newer: Mapping[int, list[int]]) -> set[int]:
    """The places reachable from `start`, in one or several steps."""
    reached: set[int] = set()
    queue = [start]
    while queue:
        for new in newer.get(queue.pop(), ()):
            if new not in reached:
                reached.add(new)
                queue.append(new)
    return reached


def _newer(facts: Sequence[Fact]) -> dict[int, list[int]]:
    """For each replaced fact, the places of the facts that replace it."""
    newer: dict[int, list[int]] = {}
    replacing = [(place, names) for place, fact in enumerate(facts) if (names := replaces(fact))]
    if not replacing:
        return newer
    places = {id_of(fact): place for place, fact in enumerate(facts)}
    for new, names in replacing:
        for name in names:
            if name in places:
                newer.setdefault(places[name], []).append(new)
    return newer
