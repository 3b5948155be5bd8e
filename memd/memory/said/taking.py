"""Taking in: the turns that messages become, and the change of the layer that keeps it within its bounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from memd.config import SaidSettings
from memd.context import Message, digest
from memd.memory.document import SaidFile
from memd.memory.said.changes import Append, Rewrite, append, rewrite
from memd.memory.said.turns import MAX_TURN_CHARS, NOTHING_SAID, Mark, Said, Turn, line_of
from memd.memory.text import normal_key
from memd.push.limits import shorten_redacted
from memd.push.sentence_ends import sentence_ends
from memd.push.times import iso

ROOM = 0.75
"""Share of the bounds that a compaction fills: the next one is a quarter of the layer away."""


def turn_hash(identity: str) -> str:
    """The hash by which the document remembers a turn that was removed."""
    return digest("removed turn", identity, size=8)


def sentence_hash(sentence: str) -> str:
    """The hash of a sentence that was removed; those that differ in width, case and punctuation share one."""
    return digest("removed sentence", normal_key(sentence), size=8)


def sentences_in(text: str) -> Iterator[str]:
    """The sentences of a turn."""
    start = 0
    for end in sentence_ends(text):
        if sentence := text[start:end].strip():
            yield sentence
        start = end


def stays_away(identity: str, text: str, removed: Collection[str]) -> bool:
    """Whether a turn was removed, or says again under another identity what was removed. `removed`: the hashes."""
    if not removed:
        return False
    return turn_hash(identity) in removed or any(sentence_hash(one) in removed for one in sentences_in(text))


def turns_of(messages: Iterable[Message], thread: str, removed: Collection[str] = ()) -> list[Turn]:
    """The turns of redacted messages. `thread`: its name in the ledger; `removed`: hashes of what stays away."""
    texts = ((message, shorten_redacted(message.content, MAX_TURN_CHARS)) for message in messages)
    return [
        Turn(message.identity, thread, message.role, text, message.said_at, message.at, message.name or "")
        for message, text in texts
        if not stays_away(message.identity, text, removed)
    ]


def took_in(
    held: SaidFile,
    read: Callable[[], Said],
    turns: Sequence[Turn],
    settings: SaidSettings,
    now: datetime,
    marks: Sequence[Mark] = (),
) -> Append | Rewrite | None:
    """The change that adds turns and marks: an append, or a compaction where a bound would be passed.

    `held`: the layer's file. `read`: reads the layer, which only a compaction does.
    """
    change = append(turns, marks)
    if change is None:
        return None
    size, count = held.bytes + len(change.lines), held.turns + change.turns
    if size <= settings.max_bytes and count <= settings.max_turns:
        return change
    said = young(read() if held.file else NOTHING_SAID, settings, now)
    return bounded(said, turns, marks, settings)


def young(said: Said, settings: SaidSettings, now: datetime) -> Said:
    """The layer without the turns that arrived more than `said.days` ago; the same object when there are none.

    A turn of unknown arrival counts as young: the bounds remove it.
    """
    first = first_kept(settings, now)
    if not any("" < turn.at < first for turn in said.turns):
        return said
    return said.only(not "" < turn.at < first for turn in said.turns)


def first_kept(settings: SaidSettings, now: datetime) -> str:
    """Turns that arrived before this time (ISO 8601) are past their days."""
    return iso(now - timedelta(days=settings.days))


def bounded(said: Said, turns: Sequence[Turn], marks: Sequence[Mark], settings: SaidSettings) -> Rewrite:
    """The layer with the further turns and marks; where a bound is passed, without its oldest turns: within `ROOM`."""
    lines = [*said.lines, *map(line_of, turns)]
    extra = sum(len(line_of(mark)) for mark in (*said.marks, *marks))
    if len(lines) <= settings.max_turns and sum(map(len, lines)) + extra <= settings.max_bytes:
        return rewrite(said, turns, marks)
    room = settings.max_bytes * ROOM - extra
    first = max(0, len(lines) - int(settings.max_turns * ROOM))
    size = sum(map(len, lines[first:]))
    while size > room and first < len(lines):
        size -= len(lines[first])
        first += 1
    old = len(said.lines)
    left = said.only(place >= first for place in range(old))
    return rewrite(left, turns[max(0, first - old) :], marks)
