"""What a reader sees: one memory, or an agent's and the user's own as one."""

from __future__ import annotations

from dataclasses import dataclass

from memd.context import DEFAULT_AGENT
from memd.memory.document import SECTIONS, Document, Fact, summary
from memd.memory.text import normal_key


@dataclass(frozen=True, slots=True)
class Memory:
    """A document to read, and for each of its facts the agent whose memory it stands in ("": the user's own)."""

    document: Document
    agents: tuple[str, ...]

    @property
    def facts(self) -> list[Fact]:
        """The facts, in the order of `agents`."""
        found: list[Fact] = self.document["facts"]
        return found


def alone(document: Document) -> Memory:
    """One document as it is."""
    agent = str(document.get("agentName") or DEFAULT_AGENT)
    return Memory(document, (agent,) * len(document["facts"]))


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
    return Memory(document, (DEFAULT_AGENT,) * len(ours) + (str(agents["agentName"]),) * len(theirs))


def replaced(fact: Fact) -> list[str]:
    """The ids of what a fact replaces."""
    names = fact.get("replaces")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
