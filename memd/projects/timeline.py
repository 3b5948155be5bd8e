"""The timeline of a project: what was decided, with the reason, and what happened, by day. Pure."""

from __future__ import annotations

from typing import NamedTuple

from memd.memory.document import Document, Fact, archive_of, facts_of
from memd.memory.facts import archived_at, backstory_of, category_of, content_of, created_by, id_of, said_at_of

SHOWN = frozenset({"decision", "event", "goal"})
"""Categories that tell of a moment."""


class Moment(NamedTuple):
    """One line. `at`: when it was said (ISO 8601); `ended`: when it was over, "" while it holds."""

    at: str
    category: str
    content: str
    reason: str
    by: str
    fact_id: str
    ended: str = ""


def timeline(document: Document, *, since: str = "", until: str = "") -> list[Moment]:
    """Decisions, events and goals of a project, the oldest first. `since`, `until`: ISO 8601, the end excluded."""
    every = (*facts_of(document), *archive_of(document))
    moments = [_moment(fact) for fact in every if category_of(fact) in SHOWN]
    return sorted(one for one in moments if one.at >= since and (not until or one.at < until))


def key_decisions(document: Document) -> list[dict[str, str]]:
    """The decisions that hold, as a project's profile has them: `decision`, `reason`, `time`, the oldest first."""
    held = [_moment(fact) for fact in facts_of(document) if category_of(fact) == "decision"]
    return [{"decision": one.content, "reason": one.reason, "time": one.at} for one in sorted(held)]


def _moment(fact: Fact) -> Moment:
    reason = backstory_of(fact)
    return Moment(
        said_at_of(fact), category_of(fact), content_of(fact), reason, created_by(fact), id_of(fact), archived_at(fact)
    )
