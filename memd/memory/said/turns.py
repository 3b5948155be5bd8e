"""The lines of the said layer, and the parsed layer.

One JSON object a line. A turn is a message that the bucket has taken in; a mark says something about an earlier turn.
Turns are in the order in which they were taken in, so within a thread in the order of the inbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
from msgspec import Struct, field

from memd.context import Role

MAX_TURN_CHARS = 4_000
"""Characters of a turn that are kept: of a longer one the first and the last half of them."""


class Turn(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """One message as it is kept: redacted, then cut.

    `id`: the identity of the whole message. `thread`: its name in the ledger. `said_at`: when it was said, `at`: when
    it arrived; both ISO 8601, "" when not known. `name`: the speaker, "" for the user and the assistant themselves.
    """

    id: str
    thread: str
    role: Role
    text: str
    said_at: str = ""
    at: str = ""
    name: str = ""
    excerpts: tuple[tuple[int, int], ...] = ()
    """Start and end in `text` of the sentences that passed the gates."""

    gates: int = 0
    """The version of the gates that judged it; 0 when none has."""


class Mark(Struct, frozen=True, rename="camel", omit_defaults=True, gc=False):
    """A decision about the turn with the identity `mark`: `hidden` (never shown) or `over` (no longer true)."""

    mark: str
    as_: str = field(name="as")
    why: str = ""
    at: str = ""
    """When it was decided (ISO 8601)."""


class Said:
    """The parsed layer of one bucket. It never changes; callers share it."""

    def __init__(
        self, turns: Sequence[Turn], lines: Sequence[bytes], marks: Sequence[Mark] = (), damaged: int = 0
    ) -> None:
        """`lines`: the line of each turn. `damaged`: how many lines could not be read."""
        self.turns = tuple(turns)
        self.lines = tuple(lines)
        self.marks = tuple(marks)
        self.damaged = damaged
        self.hidden = frozenset(mark.mark for mark in marks if mark.as_ == "hidden")
        """Identities of turns that are never shown."""
        self.over: Mapping[str, str] = {mark.mark: mark.at for mark in marks if mark.as_ == "over"}
        """Identities of turns that say what has changed since, each with the time of that decision."""

    def __bool__(self) -> bool:
        """Whether it has any turn."""
        return bool(self.turns)

    @cached_property
    def size(self) -> int:
        """The bytes of its turns' lines."""
        return sum(map(len, self.lines))

    @cached_property
    def by_id(self) -> Mapping[str, Turn]:
        """The turns by their identities, in order."""
        return {turn.id: turn for turn in self.turns}

    def only(self, kept: Iterable[bool]) -> Said:
        """The layer with only those turns, in order, for which `kept` is true, and their marks."""
        pairs = [pair for pair, keep in zip(zip(self.turns, self.lines, strict=True), kept, strict=True) if keep]
        names = {turn.id for turn, _ in pairs}
        marks = [mark for mark in self.marks if mark.mark in names]
        return Said([turn for turn, _ in pairs], [line for _, line in pairs], marks, self.damaged)

    def replaced(self, turns: Sequence[Turn]) -> Said:
        """The layer with these turns, one for each of its own; the lines of those that stay the same stay too."""
        both = zip(self.turns, turns, self.lines, strict=True)
        lines = [line if old == new else _merged(line, new) for old, new, line in both]
        return Said(turns, lines, self.marks, self.damaged)

    def of_thread(self, thread: str) -> Sequence[Turn]:
        """The turns of a thread, given by its name in the ledger, oldest first."""
        return self._threads.get(thread, ())

    def before(self, identity: str, most: int) -> Sequence[Turn]:
        """Up to `most` turns of the same thread directly before a turn, oldest first; none for an unknown one."""
        thread, place = self._place(identity)
        return thread[max(0, place - most) : place] if place >= 0 else ()

    def after(self, identity: str, most: int) -> Sequence[Turn]:
        """Up to `most` turns of the same thread directly after a turn, oldest first; none for an unknown one."""
        thread, place = self._place(identity)
        return thread[place + 1 : place + 1 + most] if place >= 0 else ()

    def beside(self, identities: Iterable[str], most: int) -> frozenset[str]:
        """The identities of up to `most` turns of the same thread on either side of each of these turns.

        One of these turns is among them only where another one is that near.
        """
        found: set[str] = set()
        for identity in identities:
            thread, place = self._place(identity)
            found.update(turn.id for turn in thread[max(0, place - most) : place])
            found.update(turn.id for turn in thread[place + 1 : place + 1 + most])
        return frozenset(found)

    def _place(self, identity: str) -> tuple[Sequence[Turn], int]:
        turn = self.by_id.get(identity)
        return ((), -1) if turn is None else (self.of_thread(turn.thread), self._places[identity])

    @cached_property
    def _threads(self) -> dict[str, tuple[Turn, ...]]:
        threads: dict[str, list[Turn]] = {}
        for turn in self.turns:
            threads.setdefault(turn.thread, []).append(turn)
        return {thread: tuple(turns) for thread, turns in threads.items()}

    @cached_property
    def _places(self) -> dict[str, int]:
        """The place of each turn in its thread."""
        return {turn.id: place for turns in self._threads.values() for place, turn in enumerate(turns)}


NOTHING_SAID = Said((), ())
"""The layer of a bucket that keeps none."""

_ENCODER = msgspec.json.Encoder()
_TURN = msgspec.json.Decoder(Turn)
_MARK = msgspec.json.Decoder(Mark)
_MARK_BEGINS = b'{"mark"'


def line_of(entry: Turn | Mark) -> bytes:
    """The line of a turn or mark, with its end."""
    return _ENCODER.encode(entry) + b"\n"


def decode(data: bytes) -> Said:
    """The layer in these bytes. Lines that cannot be read are skipped and counted; a power cut may leave some."""
    turns: list[Turn] = []
    lines: list[bytes] = []
    marks: list[Mark] = []
    damaged = 0
    for line in data.splitlines(keepends=True):
        try:
            if line.startswith(_MARK_BEGINS):
                marks.append(_MARK.decode(line))
                continue
            turns.append(_TURN.decode(line))
            lines.append(line)
        except (msgspec.DecodeError, UnicodeDecodeError):  # not a line of ours, or one that was cut off
            damaged += 1
    return Said(turns, lines, marks, damaged)


_OURS = frozenset(field.encode_name for field in msgspec.structs.fields(Turn))


def _merged(line: bytes, turn: Turn) -> bytes:
    """The line of a changed turn, with the fields of later versions that its old line has."""
    fields = msgspec.json.decode(line)
    later = {name: value for name, value in fields.items() if name not in _OURS}
    return _ENCODER.encode(msgspec.to_builtins(turn) | later) + b"\n"


def encode(entries: Iterable[Turn | Mark]) -> bytes:
    """The lines of turns and marks."""
    return b"".join(map(line_of, entries))


def without(said: Said, gone: Iterable[str]) -> Said:
    """The layer without the turns of these identities and their marks; the same object when it has none of them."""
    left_out = frozenset(gone)
    return said if left_out.isdisjoint(said.by_id) else said.only(turn.id not in left_out for turn in said.turns)
