"""Excerpts: what the user said and no fact rests on, and what was said around each fact. Pure.

Only sentences that passed the gates give excerpts, and only near another turn that proves a fact; hidden turns give
nothing at all, and what has changed since is found only by questions about the past.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from msgspec import Struct

from memd.context import identity_of_id
from memd.memory.document import Fact
from memd.memory.facts import content_of, evidence_of, proven_by
from memd.memory.said.excerpts import GATES_VERSION
from memd.memory.said.turns import Said, Turn
from memd.memory.text import normal_keys
from memd.recall.fields import Around

CONFIDENCE = 0.7
"""Confidence of an excerpt in the score: that of the least certain facts, as nothing has verified it."""

CATEGORY = "said"
"""What stands in place of a category."""

MAX_CHARS = 400
"""Characters of an excerpt at most: neighbouring sentences of a turn are one excerpt up to this length."""

WITNESS_TURNS = 8
"""A turn gives excerpts only if another one, at most so many turns away in its thread, proves a fact.

No list of patterns names every order that is dressed as a statement. So where the model found nothing to keep, nothing
else is shown either; and a turn is not its own witness, since whoever writes an order can put a fact beside it.
"""


class Excerpt(Struct, frozen=True, gc=False):
    """Sentences of one turn. `over`: what they say has changed since. `agent_name`: the agent that was told."""

    turn: Turn
    text: str
    over: bool
    agent_name: str

    @property
    def said_at(self) -> str:
        """When it was said, or arrived where that is all that is known (ISO 8601)."""
        return self.turn.said_at or self.turn.at

    def as_fact(self) -> Fact:
        """The excerpt as a fact, so that it can be ranked among facts."""
        return {
            "id": f"said_{self.turn.id}",
            "content": self.text,
            "category": CATEGORY,
            "confidence": CONFIDENCE,
            "createdAt": self.turn.at,
            "saidAt": self.said_at,
            "source": self.turn.thread,
        }


@dataclass(frozen=True)
class Layer:
    """The said layer of one document. `agent_name`: the agent whose memory it is ("": the user's own)."""

    said: Said
    agent_name: str


def excerpts_of(layers: Sequence[Layer], facts: Sequence[Fact], archived: Iterable[str] = ()) -> tuple[Excerpt, ...]:
    """The excerpts of these layers, oldest first within each; marks of any hide in all, and equal ones come once.

    `facts`: what rests on their turns; a sentence that says the same as a fact, or holds its quote, is no excerpt.
    A turn without another one near that proves one of these facts, or is among `archived`, gives none. `archived`: the
    identities of the turns that proved archived facts.
    """
    hidden = frozenset[str]().union(*(layer.said.hidden for layer in layers))
    over = frozenset[str]().union(*(layer.said.over for layer in layers))
    quotes: dict[str, list[str]] = {}
    for fact in facts:
        for entry in evidence_of(fact):
            for identity in _identities(entry):
                quotes.setdefault(identity, []).append(str(entry.get("quote", "")))
    known = set(normal_keys([content_of(fact) for fact in facts]))
    witnesses = {*quotes, *chain.from_iterable(map(proven_by, facts)), *archived}
    witnessed = frozenset[str]().union(*(layer.said.beside(witnesses, WITNESS_TURNS) for layer in layers))
    stated = [
        Excerpt(turn, text, turn.id in over, layer.agent_name)
        for layer in layers
        for turn in layer.said.turns
        if turn.excerpts and turn.gates == GATES_VERSION and turn.id in witnessed and turn.id not in hidden
        for text in _texts(turn, quotes.get(turn.id, ()))
    ]
    found: dict[str, Excerpt] = {}
    for excerpt, key in zip(stated, normal_keys([excerpt.text for excerpt in stated]), strict=True):
        if key not in known:
            found.setdefault(key, excerpt)
    return tuple(found.values())


def around_facts(layers: Sequence[Layer], facts: Sequence[Fact]) -> list[Around]:
    """What was said around each fact: around the last turn that proves it and is still kept."""
    hidden = frozenset[str]().union(*(layer.said.hidden for layer in layers))
    return [_around_fact(layers, fact, hidden) for fact in facts]


def around_excerpts(layers: Sequence[Layer], excerpts: Sequence[Excerpt]) -> list[Around]:
    """What was said around each excerpt; the rest of its own turn is in other excerpts."""
    hidden = frozenset[str]().union(*(layer.said.hidden for layer in layers))
    of_agent = {layer.agent_name: layer.said for layer in layers}
    return [_around(of_agent[excerpt.agent_name], excerpt.turn, hidden, "") for excerpt in excerpts]


def of_last_turns(layers: Sequence[Layer], thread: str, count: int) -> frozenset[str]:
    """The identities of the last turns of a thread, given by its name in the ledger."""
    return frozenset(turn.id for layer in layers for turn in layer.said.of_thread(thread)[-count:])


def _around_fact(layers: Sequence[Layer], fact: Fact, hidden: frozenset[str]) -> Around:
    for entry in reversed(evidence_of(fact)):
        for identity in _identities(entry):
            for layer in layers:
                turn = layer.said.by_id.get(identity)
                if turn is not None and identity not in hidden:
                    return _around(layer.said, turn, hidden, turn.text)
    return Around()


def _around(said: Said, turn: Turn, hidden: frozenset[str], message: str) -> Around:
    before, after = said.before(turn.id, 1), said.after(turn.id, 1)
    return Around(message, _shown(before, hidden), _shown(after, hidden), turn.name)


def _shown(turns: Sequence[Turn], hidden: frozenset[str]) -> str:
    return turns[0].text if turns and turns[0].id not in hidden else ""


def _identities(entry: dict[str, object]) -> Iterator[str]:
    """The identities that the message of an evidence may have: its evidence names it by its id or its identity."""
    thread, message = entry.get("thread"), entry.get("message")
    if isinstance(message, str):
        yield message
        if isinstance(thread, str):
            yield identity_of_id(thread, message)


def _texts(turn: Turn, quotes: Sequence[str]) -> Iterator[str]:
    """The excerpts of a turn, neighbours joined, without those that hold a quote of a fact or stand inside one."""
    joined = ""
    for start, end in turn.excerpts:
        text = turn.text[start:end]
        if any(quote and (quote in text or text in quote) for quote in quotes):
            text = ""
        if joined and (not text or len(joined) + len(text) >= MAX_CHARS):
            yield joined
            joined = ""
        joined = f"{joined} {text}".strip()
    if joined:
        yield joined
