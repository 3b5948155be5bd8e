"""What a compaction does with the turns of a session, and what every strategy asks of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from memd.config import SessionSettings
from memd.session.chat import ChatTurn
from memd.session.pairs import cuts
from memd.session.shrinking import shrunk


class Offload(NamedTuple):
    """A text that leaves the window, and the id in the reference that stands in its place."""

    id: str
    text: str


class Plan(NamedTuple):
    """The turns that stay, with references to what is offloaded; the turns that the summary replaces; the texts.

    `must`: whether it cannot wait for a model that is away. `seen`: all turns as the model is to see them, where it
    changes nothing.
    """

    keep: tuple[ChatTurn, ...]
    summarise: tuple[ChatTurn, ...] = ()
    offload: tuple[Offload, ...] = ()
    must: bool = True
    seen: tuple[ChatTurn, ...] = ()

    @property
    def changes(self) -> bool:
        """Whether it does anything."""
        return bool(self.summarise or self.offload)


@dataclass(frozen=True)
class Window:
    """Paired turns with their costs as the model is to see them. `head`: how many system turns they begin with.

    System turns at the beginning are the app's instructions: they are never cut and count towards no limit.
    """

    turns: tuple[ChatTurn, ...]
    shrunk: tuple[ChatTurn, ...]
    head: int
    places: list[int]
    """The places before which the turns may be cut."""

    @property
    def tokens(self) -> int:
        """The estimated tokens of the window."""
        return _tokens(sum(turn.cost for turn in self.shrunk[self.head :]))

    @property
    def newest(self) -> int:
        """The place of the newest turn, with its results if it calls tools."""
        return self.places[-1] if self.places else len(self.turns)

    def tokens_behind(self) -> list[int]:
        """The estimated tokens of the window from each place on."""
        costs = [turn.cost for turn in self.shrunk]
        behind = [*accumulate(reversed(costs), initial=0)]
        return [_tokens(behind[len(costs) - place]) for place in range(len(costs))]

    def unchanged(self) -> Plan:
        """The plan that does nothing."""
        return Plan(self.turns, seen=self.shrunk)

    def cut_before(self, place: int) -> Plan:
        """The plan that keeps the turns from this place on. A summary alone is no reason for another one."""
        summarise = self.turns[self.head : place]
        if all(turn.kind == "summary" for turn in summarise):
            return self.unchanged()
        return Plan((*self.turns[: self.head], *self.turns[place:]), summarise)

    def all_but_newest(self) -> Plan:
        """The plan that keeps the newest turn alone, with its results."""
        return self.cut_before(self.newest)


def window_of(turns: Sequence[ChatTurn], settings: SessionSettings) -> Window:
    """The window of paired turns."""
    head = next((place for place, turn in enumerate(turns) if turn.role != "system"), len(turns))
    return Window(tuple(turns), shrunk(turns, settings), head, cuts(turns))


def _tokens(tenths: int) -> int:
    return -(-tenths // 10)
