"""The memory that a reader sees: one document, or an agent's and the user's own as one; what is over is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from memd.context import DEFAULT_AGENT
from memd.memory.document import (
    SECTIONS,
    Document,
    Fact,
    agent_of,
    facts_of,
    summary,
    summary_written_at,
    with_summary_entry,
)
from memd.memory.facts import content_of, id_of, replaces, valid_until
from memd.memory.packed import PackedFacts
from memd.memory.text import normal_key
from memd.push.times import moment

if TYPE_CHECKING:
    from memd.recall.layers import Excerpt
    from memd.recall.pending import Pending

FOCUS, FOCUS_TIME = "topOfMind", timedelta(days=60)
"""The summary of what is going on, and how long it is shown after it was written: nobody is busy with it longer."""

Kind = Literal["fact", "excerpt", "pending"]
"""What can be found: a fact, an excerpt of what was said, a message that is not extracted yet."""


class Findable:
    """All that can be found in a memory, as facts: the facts, then the excerpts, then the pending messages.

    The latter are made into facts when asked for: the garbage collector looks at each dict that is kept.
    """

    def __init__(self, facts: Sequence[Fact], others: tuple[Excerpt | Pending, ...]) -> None:
        self._facts = facts
        self._others = others

    def __len__(self) -> int:
        return len(self._facts) + len(self._others)

    def __iter__(self) -> Iterator[Fact]:
        yield from self._facts
        yield from (other.as_fact() for other in self._others)

    def __getitem__(self, place: int) -> Fact:
        facts = len(self._facts)
        return self._facts[place] if place < facts else self._others[place - facts].as_fact()


@dataclass(frozen=True, slots=True)
class Memory:
    """A document to read, without the facts whose time is over, and what can be found besides its facts.

    `agents`: for each fact of the document the agent whose memory has it ("": the user's own). `good_until`: when the
    next fact's or the focus's time is over; None when nothing has an end.
    """

    document: Document
    agents: tuple[str, ...]
    good_until: datetime | None = None
    excerpts: tuple[Excerpt, ...] = ()
    pending: tuple[Pending, ...] = ()
    found: Findable = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "found", Findable(self.facts, self.excerpts + self.pending))

    @property
    def facts(self) -> Sequence[Fact]:
        """The facts, in the order of `agents`."""
        return facts_of(self.document)

    def kind_of(self, place: int) -> Kind:
        """The kind of what is at this place of `found`."""
        if place < len(self.agents):
            return "fact"
        return "excerpt" if place < len(self.agents) + len(self.excerpts) else "pending"

    def agent_of(self, place: int) -> str:
        """The agent whose memory has what is at this place of `found`."""
        if place < len(self.agents):
            return self.agents[place]
        excerpts = place - len(self.agents)
        if excerpts < len(self.excerpts):
            return self.excerpts[excerpts].agent_name
        return self.pending[excerpts - len(self.excerpts)].bucket.agent_name

    def shown(self, place: int) -> int | Excerpt:
        """What is at this place of `found`, as `inject` takes it: a fact by its place, an excerpt itself."""
        return place if place < len(self.agents) else self.excerpts[place - len(self.agents)]

    def is_good_at(self, now: datetime) -> bool:
        """Whether nothing has ended since."""
        return self.good_until is None or now < self.good_until


def alone(document: Document, now: datetime) -> Memory:
    """The memory of one document, as it is at `now`."""
    current, good_until = _current(document, now)
    return Memory(current, (agent_of(document),) * len(facts_of(current)), good_until)


def merged(own: Document, of_agent: Document, now: datetime) -> Memory:
    """The user's own document and an agent's as one memory. Of two facts that say the same, the agent's is kept.

    A fact of the user's that the agent's memory replaced is left out. Each summary is both texts on one line, the
    user's first.
    """
    own, until_own = _current(own, now)
    of_agent, until_agent = _current(of_agent, now)
    theirs = facts_of(of_agent)
    known = {normal_key(content_of(fact)) for fact in theirs}
    gone = {fact_id for fact in theirs for fact_id in replaces(fact)}
    ours = [fact for fact in facts_of(own) if normal_key(content_of(fact)) not in known and id_of(fact) not in gone]
    facts = PackedFacts([*ours, *theirs])
    profile = {**_profile(own), **_profile(of_agent)}
    document: Document = {**of_agent, "user": {}, "history": {}, "facts": facts, "profile": profile}
    for name, section in SECTIONS.items():
        texts = dict.fromkeys(filter(None, (summary(own, name), summary(of_agent, name))))
        document[section][name] = {"summary": " ".join(texts)}
    agents = (DEFAULT_AGENT,) * len(ours) + (agent_of(of_agent),) * len(theirs)
    ends = [until for until in (until_own, until_agent) if until is not None]
    return Memory(document, agents, min(ends, default=None))


def _profile(document: Document) -> Document:
    held = document.get("profile")
    return held if isinstance(held, dict) else {}


def with_excerpts(memory: Memory, excerpts: Sequence[Excerpt]) -> Memory:
    """The memory with what was said and no fact rests on after its facts."""
    return replace(memory, excerpts=tuple(excerpts))


def with_pending(memory: Memory, messages: Sequence[Pending]) -> Memory:
    """The memory with pending messages after all else."""
    return replace(memory, pending=tuple(messages))


def _current(document: Document, now: datetime) -> tuple[Document, datetime | None]:
    """The document without what is over: facts past their time, a focus that nobody has rewritten for long.

    And when the next of these ends. The drain archives such facts later.
    """
    ends = {place: end for place, fact in enumerate(facts_of(document)) if (end := moment(valid_until(fact)))}
    over = {place for place, end in ends.items() if end <= now}
    left = [end for place, end in ends.items() if place not in over]
    if over:
        facts = PackedFacts(fact for place, fact in enumerate(facts_of(document)) if place not in over)
        document = {**document, "facts": facts}
    if (written := summary_written_at(document, FOCUS)) and summary(document, FOCUS):
        end = min(written, now) + FOCUS_TIME
        if end <= now:
            document = with_summary_entry(document, FOCUS, {})
        else:
            left.append(end)
    return document, min(left, default=None)
