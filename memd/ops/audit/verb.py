"""The verb: the rules over the memories of one user, or of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import DocumentDamaged
from memd.memory.document import facts_of
from memd.memory.hand.editing import Editing
from memd.ops.audit.rules import Finding, audit

UNREADABLE = "unreadable"
"""The rule of a finding that stands for a whole document."""


@dataclass(frozen=True, slots=True)
class Audited:
    """A finding, and whose memory it is in."""

    user_id: str
    agent_name: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in how many memories with how many facts."""

    memories: int
    facts: int
    found: tuple[Audited, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Findings by rule, the most frequent first."""
        return dict(Counter(one.finding.rule for one in self.found).most_common())


def inspect(settings: Settings, users: Iterable[str] | None, agent_name: str | None = None) -> Report:
    """Audit the memories of some users (None: of all), of one agent or of every one (None).

    Of several users one damaged document is a finding and the rest goes on; of a single one it is the error.
    Raises StoreUnavailable, DocumentDamaged.
    """
    editing = Editing(settings)
    named = None if users is None else list(users)
    found: list[Audited] = []
    memories = facts = 0
    for bucket in _buckets(editing, named, agent_name):
        try:
            loaded = editing.load(bucket)
        except DocumentDamaged as error:  # the file is left as it is; whoever broke it learns the place
            if named is not None and len(named) == 1:
                raise
            found.append(Audited(*bucket, Finding(UNREADABLE, error.place, "", str(error), "")))
            memories += 1
            continue
        if loaded.content_hash is None:
            continue
        memories += 1
        facts += len(facts_of(loaded.document))
        found += [Audited(*bucket, one) for one in audit(loaded.document, datetime.now(UTC), settings.apply)]
    return Report(memories, facts, tuple(found))


def _buckets(editing: Editing, users: list[str] | None, agent_name: str | None) -> Iterator[Bucket]:
    for user in sorted(editing.users()) if users is None else users:
        agents = [DEFAULT_AGENT, *editing.agents(user)] if agent_name is None else [agent_name]
        yield from (Bucket(user, agent) for agent in agents)
