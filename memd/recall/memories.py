"""The memory that a reader sees: one document, or an agent's and the user's own as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memd.context import DEFAULT_AGENT
from memd.memory.document import SECTIONS, Document, Fact, agent_of, facts_of, summary
from memd.memory.facts import content_of, id_of, replaces
from memd.memory.text import normal_key

if TYPE_CHECKING:
    from memd.recall.pending import Pending


@dataclass(frozen=True, slots=True)
class Memory:
    """A document to read, and for each of its facts the agent whose memory has it ("": the user's own).

    `pending`: the facts from this place on are pending messages.
    """

    document: Document
    agents: tuple[str, ...]
    pending: int

    @property
    def facts(self) -> list[Fact]:
        """The facts, in the order of `agents`."""
        return facts_of(self.document)


def alone(document: Document) -> Memory:
    """The memory of one document."""
    count = len(facts_of(document))
    return Memory(document, (agent_of(document),) * count, count)


def merged(own: Document, of_agent: Document) -> Memory:
    """The user's own document and an agent's as one memory. Of two facts that say the same, the agent's is kept.

    A fact of the user's that the agent's memory replaced is left out. Each summary is both texts on one line, the
    user's first.
    """
    theirs = facts_of(of_agent)
    known = {normal_key(content_of(fact)) for fact in theirs}
    gone = {fact_id for fact in theirs for fact_id in replaces(fact)}
    ours = [fact for fact in facts_of(own) if normal_key(content_of(fact)) not in known and id_of(fact) not in gone]
    document: Document = {**of_agent, "user": {}, "history": {}, "facts": [*ours, *theirs]}
    for name, section in SECTIONS.items():
        texts = dict.fromkeys(filter(None, (summary(own, name), summary(of_agent, name))))
        document[section][name] = {"summary": " ".join(texts)}
    agents = (DEFAULT_AGENT,) * len(ours) + (agent_of(of_agent),) * len(theirs)
    return Memory(document, agents, len(agents))


def with_pending(memory: Memory, messages: Sequence[Pending]) -> Memory:
    """The memory with pending messages after its facts."""
    facts = [*memory.facts, *(pending.as_fact() for pending in messages)]
    agents = (*memory.agents, *(pending.bucket.agent_name for pending in messages))
    return Memory({**memory.document, "facts": facts}, agents, memory.pending)
