"""The two changes that a commit makes to the said layer: lines at its end, or the whole layer anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from memd.memory.document import SaidFile
from memd.memory.said.turns import Mark, Said, Turn, encode


@dataclass(frozen=True, slots=True)
class Append:
    """Lines at the end. `turns`: how many are turns. `since`: when the oldest of them arrived, "" when not known.

    `gates`: the lowest version of the gates that judged one of the turns; None without any turn.
    `durable`: the lines must survive a power cut together with the document. Plain turns need not: they are lost at
    most, while a lost mark would show what was hidden.
    """

    lines: bytes
    turns: int
    since: str = ""
    gates: int | None = None
    durable: bool = False


@dataclass(frozen=True, slots=True)
class Rewrite:
    """All lines anew, durably; without any, the layer's file goes. The fields are those of `Append`."""

    lines: bytes
    turns: int
    since: str = ""
    gates: int | None = None


SaidChange = Append | Rewrite


def with_more(old: SaidFile, change: Append) -> SaidFile:
    """A layer after lines were appended to it."""
    since = min(filter(None, (old.since, change.since)), default="")
    gates = old.gates if change.gates is None else min(old.gates, change.gates)
    return SaidFile(old.file, old.bytes + len(change.lines), old.turns + change.turns, since, gates)


def anew(name: str, change: SaidChange) -> SaidFile:
    """A layer of a new name that has these lines alone."""
    return SaidFile(name, len(change.lines), change.turns, change.since, change.gates or 0)


def append(turns: Iterable[Turn], marks: Iterable[Mark] = ()) -> Append | None:
    """The change that adds these turns, then these marks; None without any."""
    turns, marks = list(turns), list(marks)
    if not turns and not marks:
        return None
    return Append(encode([*turns, *marks]), len(turns), oldest(turns), lowest(turns), durable=bool(marks))


def rewrite(said: Said, turns: Iterable[Turn] = (), marks: Iterable[Mark] = ()) -> Rewrite:
    """The change that makes this the layer, with further turns and marks. Unchanged lines stay byte for byte."""
    turns = list(turns)
    known = said.by_id.keys() | {turn.id for turn in turns}
    alive = [mark for mark in (*said.marks, *marks) if mark.mark in known]
    lines = b"".join((*said.lines, encode(turns), encode(alive)))
    every = (*said.turns, *turns)
    return Rewrite(lines, len(every), oldest(every), lowest(every))


def oldest(turns: Iterable[Turn]) -> str:
    """When the first of these turns arrived; "" when that is not known of any."""
    return min((turn.at for turn in turns if turn.at), default="")


def lowest(turns: Iterable[Turn]) -> int | None:
    """The lowest version of the gates that judged one of these turns; None without any."""
    return min((turn.gates for turn in turns), default=None)
