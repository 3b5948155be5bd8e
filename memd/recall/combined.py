"""What a reader sees: one memory, or an agent's and the user's own as one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memd.context import DEFAULT_AGENT
from memd.memory.document import SECTIONS, Document, Fact, summary
from memd.memory.text import normal_key

if TYPE_CHECKING:
    from memd.recall.pending import Pending


@dataclass(frozen=True, slots=True)
class Memory:
    """A document to read, and for each of its facts the agent whose memory it stands in ("": the user's own).

    `pending`: the facts from this place on are messages that were only said.
    """

    document: Document
    agents: tuple[str, ...]
    pending: int

    @property
    def facts(self) -> list[Fact]:
        """The facts, in the order of `agents`."""
        found: list[Fact] = self.document["facts"]
        return found


def alone(document: Document) -> Memory:
    """One document as it is."""
    agent = str(document.get("agentName") or DEFAULT_AGENT)
    return Memory(document, (agent,) * len(document["facts"]), len(document["facts"]))


def merged(own: Document, agents: Document) -> Memory:
    """The user's own memory and what an agent knows besides: its facts win over own ones that say the same.

    What a fact of the agent replaces is left out of the user's. Of each summary both texts stand in one line, the
    user's first.
    """
    theirs: list[Fact] = agents["facts"]
    said = {normal_key(fact["content"]) for fact in theirs}
    gone = {name for fact in theirs for name in replaced(fact)}
    ours = [fact for fact in own["facts"] if normal_key(fact["content"]) not in said and fact.get("id") not in gone]
    document: Document = {**agents, "user": {}, "history": {}, "facts": [*ours, *theirs]}
    for name, section in SECTIONS.items():
        texts = dict.fromkeys(filter(None, (summary(own, name), summary(agents, name))))
        document[section][name] = {"summary": " ".join(texts)}
    names = (DEFAULT_AGENT,) * len(ours) + (str(agents["agentName"]),) * len(theirs)
    return Memory(document, names, len(names))


def with_pending(memory: Memory, said: Sequence[Pending]) -> Memory:
    """The memory with messages that were only said, after its facts."""
    facts = [*memory.facts, *(pending.as_fact() for pending in said)]
    agents = (*memory.agents, *(pending.bucket.agent_name for pending in said))
    return Memory({**memory.document, "facts": facts}, agents, memory.pending)


def replaced(fact: Fact) -> list[str]:
    """The ids of what a fact replaces."""
    names = fact.get("replaces")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
