"""The archive: facts that went, with the reason, so that "what did we believe in March" has an answer."""

from __future__ import annotations

from typing import Literal

from memd.memory.document import Fact

Reason = Literal["replaced", "retired", "evicted", "expired", "stale", "merged", "edited"]


def entry(fact: Fact, reason: Reason, now: str, *, note: str = "", replaced_by: str = "") -> Fact:
    """A fact as the archive keeps it. `note`: the extractor's words; `replaced_by`: the id of what took its place."""
    archived = {**fact, "archivedAt": now, "archiveReason": reason}
    if note:
        archived["archiveNote"] = note
    if replaced_by:
        archived["replacedBy"] = replaced_by
    return archived


def extend(archive: list[Fact], entries: list[Fact], cap: int) -> list[Fact]:
    """A new archive with the entries at its end, the oldest gone when there are more than `cap`."""
    return [*archive, *entries][-cap:] if cap else []
