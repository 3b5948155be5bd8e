"""Handles: what facts are called in a request, as Git abbreviates: enough of an id to tell it from the others.

A whole id is 13 characters that say nothing; a hundred of them cost what ten more facts do.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable

from msgspec.structs import replace

from memd.extraction.update import Update

LEAST = 4
"""Hexadecimal digits of a handle: two of a hundred facts share them once in fourteen memories, and get more."""

_PREFIX = "fact_"
_OURS = re.compile(r"fact_[0-9a-f]{8,}")
_HANDLE = re.compile(rf"[0-9a-f]{{{LEAST},}}")


def handles(ids: Collection[str]) -> dict[str, str]:
    """For each id the handle that stands for it among these; an id that a hand made stands for itself."""
    found = {fact_id: fact_id for fact_id in ids}
    waiting = {fact_id: fact_id[len(_PREFIX) :] for fact_id in ids if _OURS.fullmatch(fact_id)}
    size = LEAST
    while waiting:
        alike = Counter([digits[:size] for digits in waiting.values()])
        for fact_id, digits in list(waiting.items()):
            if size > len(digits):
                del waiting[fact_id]
            elif alike[digits[:size]] == 1 and digits[:size] not in found:
                found[fact_id] = waiting.pop(fact_id)[:size]
        size += 1
    return found


def resolved(update: Update, ids: Collection[str]) -> Update:
    """The update with ids in place of handles; what is neither, or is one of two, stays for `apply` to refuse."""

    def resolve(name: str) -> str:
        if name in ids or not _HANDLE.fullmatch(name):
            return name
        meant = [fact_id for fact_id in ids if fact_id.startswith(_PREFIX + name)]
        return meant[0] if len(meant) == 1 else name

    def each(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(resolve, names))

    return replace(
        update,
        new_facts=tuple(replace(fact, replaces=each(fact.replaces)) for fact in update.new_facts),
        confirmed_facts=tuple(replace(fact, id=resolve(fact.id)) for fact in update.confirmed_facts),
        retired_facts=tuple(replace(fact, id=resolve(fact.id)) for fact in update.retired_facts),
        reviewed_facts=tuple(replace(fact, id=resolve(fact.id)) for fact in update.reviewed_facts),
        merged_facts=tuple(replace(fact, sources=each(fact.sources)) for fact in update.merged_facts),
    )
