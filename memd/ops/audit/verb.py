"""Audits the memories of one user, or of all, by the rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from memd.config import Settings
from memd.context import DEFAULT_AGENT, Bucket
from memd.errors import DocumentDamaged
from memd.memory.document import Document, facts_of
from memd.memory.hand.editing import Editing
from memd.ops.audit.rules import Finding, audit, audit_said

UNREADABLE = "unreadable"
"""The rule of the finding for a document that cannot be read."""


@dataclass(frozen=True, slots=True)
class Audited:
    """A finding, and the memory it is in."""

    user_id: str
    agent_name: str
    finding: Finding


@dataclass(frozen=True, slots=True)
class Report:
    """The findings, and how many memories and facts were audited."""

    memories: int
    facts: int
    findings: tuple[Audited, ...]

    @property
    def counts(self) -> dict[str, int]:
        """Findings by rule, the most frequent first."""
        return dict(Counter(audited.finding.rule for audited in self.findings).most_common())


def inspect(
    settings: Settings,
    users: Iterable[str] | None,
    agent_name: str | None = None,
    progress: Callable[[], None] = lambda: None,
) -> Report:
    """Audit the memories of some users (None: of all), of one agent or of every one (None).

    `progress` is called before each memory. With several users, a damaged document is a finding and the audit goes on;
    with a single user, it is raised.
    Raises StoreUnavailable, DocumentDamaged.
    """
    editing = Editing(settings)
    named = None if users is None else list(users)
    findings: list[Audited] = []
    memories = facts = 0
    for bucket in _buckets(editing, named, agent_name):
        found = partial(Audited, bucket.user_id, bucket.agent_name)
        progress()
        try:
            loaded = editing.load(bucket)
        except DocumentDamaged as error:  # the file is left as it is; the finding names the place
            if named is not None and len(named) == 1:
                raise
            findings.append(found(Finding(UNREADABLE, error.place, "", str(error), "")))
            memories += 1
            continue
        if loaded.content_hash is None:
            continue
        memories += 1
        facts += len(facts_of(loaded.document))
        findings += map(found, audit(loaded.document, datetime.now(UTC), settings.apply))
        findings += map(found, audit_said(editing.said(bucket, loaded.document)))
    return Report(memories, facts, tuple(findings))


def of_project_document(settings: Settings, document: Document) -> list[Finding]:
    """The findings in a project's document."""
    return list(audit(document, datetime.now(UTC), settings.apply))


def _buckets(editing: Editing, users: list[str] | None, agent_name: str | None) -> Iterator[Bucket]:
    for user in sorted(editing.users()) if users is None else users:
        agents = [DEFAULT_AGENT, *editing.agents(user)] if agent_name is None else [agent_name]
        yield from (Bucket(user, agent) for agent in agents)
