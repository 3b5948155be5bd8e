"""Short ids: a request names each fact by the shortest unique prefix of its id, as Git abbreviates hashes.

A whole id is 13 characters without meaning; a hundred whole ids cost as many tokens as ten more facts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from memd.extraction.update import Update

MIN_DIGITS = 4
"""Least hexadecimal digits of a short id. One in fourteen memories of 100 facts has two ids that need more."""

_PREFIX = "fact_"
_GENERATED_ID = re.compile(r"fact_[0-9a-f]{8,}")
_ALL_GENERATED = re.compile(r"(?:fact_[0-9a-f]{8,}+\n)*+")
_SHORT_ID = re.compile(rf"[0-9a-f]{{{MIN_DIGITS},}}")


def short_ids(ids: Collection[str]) -> dict[str, str]:
    """The short id of each id, unique among these. An id that memd did not generate is not shortened."""
    if _ALL_GENERATED.fullmatch("".join([f"{fact_id}\n" for fact_id in ids])):
        heads = {fact_id: fact_id[len(_PREFIX) : len(_PREFIX) + MIN_DIGITS] for fact_id in ids}
        if len(set(heads.values())) == len(heads):  # so it is in most memories
            return heads
    short = {fact_id: fact_id for fact_id in ids}
    waiting = {fact_id: fact_id[len(_PREFIX) :] for fact_id in ids if _GENERATED_ID.fullmatch(fact_id)}
    size = MIN_DIGITS
    while waiting:
        alike = Counter([digits[:size] for digits in waiting.values()])
        for fact_id, digits in list(waiting.items()):
            if size > len(digits):
                del waiting[fact_id]
            elif alike[digits[:size]] == 1 and digits[:size] not in short:
                short[fact_id] = waiting.pop(fact_id)[:size]
        size += 1
    return short


def with_full_ids(update: Update, ids: Collection[str]) -> Update:
    """The update with full ids. Unknown and ambiguous names stay, and `apply` refuses them."""

    def full(name: str) -> str:
        if name in ids or not _SHORT_ID.fullmatch(name):
            return name
        matches = [fact_id for fact_id in ids if fact_id.startswith(_PREFIX + name)]
        return matches[0] if len(matches) == 1 else name

    def each(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(full, names))

    return replace(
        update,
        new_facts=tuple(replace(fact, replaces=each(fact.replaces)) for fact in update.new_facts),
        confirmed_facts=tuple(replace(fact, id=full(fact.id)) for fact in update.confirmed_facts),
        retired_facts=tuple(replace(fact, id=full(fact.id)) for fact in update.retired_facts),
        forgotten_facts=tuple(replace(fact, id=full(fact.id)) for fact in update.forgotten_facts),
        reviewed_facts=tuple(replace(fact, id=full(fact.id)) for fact in update.reviewed_facts),
        profile=tuple(replace(item, facts=each(item.facts)) for item in update.profile),
        merged_facts=tuple(replace(fact, sources=each(fact.sources)) for fact in update.merged_facts),
    )
