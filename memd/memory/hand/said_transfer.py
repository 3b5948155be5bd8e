"""The said layer in exports and imports: its turns and marks as they are, and back only into the same memory.

What comes back is redacted and judged by the present rules, and asked by what was removed, forgotten or wished not to
be kept. It is never extracted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from memd.config import SaidSettings
from memd.context import Message
from memd.memory.document import Document
from memd.memory.removed import turn_hashes
from memd.memory.said.changes import SaidChange
from memd.memory.said.excerpts import judged
from memd.memory.said.may_keep import may_keep
from memd.memory.said.taking import bounded, first_kept, stays_away
from memd.memory.said.turns import MAX_TURN_CHARS, Mark, Said, Turn, line_of
from memd.push.limits import shorten_redacted
from memd.push.redaction import redact
from memd.push.times import iso, moment

MAX_ID_CHARS = 400
"""Characters of a thread's name or a speaker's."""

_IDENTITY = re.compile("[in][0-9a-f]{36}")


def exported(document: Document, said: Said) -> Document:
    """The document with its turns and marks in the place of the name of their file."""
    rest = {name: value for name, value in document.items() if name != "said"}
    if not said:
        return rest
    return {**rest, "said": {"turns": msgspec.to_builtins(said.turns), "marks": msgspec.to_builtins(said.marks)}}


@dataclass(frozen=True, slots=True)
class ImportedSaid:
    """The change of the layer (None: nothing new), the number of new turns, and the refused ones by reason."""

    change: SaidChange | None = None
    turns: int = 0
    refused: Counter[str] = field(default_factory=Counter)


def imported(
    value: object,
    document: Document,
    said: Said,
    settings: SaidSettings,
    now: datetime,
    is_forgotten: Callable[[str], bool],
) -> ImportedSaid:
    """The turns of an export that this memory of the same user lacks, before its own. `said`: the layer as it is."""
    refused: Counter[str] = Counter()
    removed, first = turn_hashes(document), first_kept(settings, now)
    turns: list[Turn] = []
    for entry in _entries(value, "turns"):
        turn = _turn(entry, now)
        if turn is None:
            refused["malformed_turn"] += 1
        elif turn.id in said.by_id:
            continue
        elif stays_away(turn.id, turn.text, removed):
            refused["removed_turn"] += 1
        elif is_forgotten(turn.id):
            refused["forgotten_turn"] += 1
        elif "" < turn.at < first:
            refused["old_turn"] += 1
        else:
            turns.append(turn)
    kept = [judged(turn, ()) for turn in _kept(turns)]
    refused["unwanted_turn"] += len(turns) - len(kept)
    if not kept:
        return ImportedSaid(refused=+refused)
    names = {turn.id for turn in kept}
    marks = [mark for entry in _entries(value, "marks") if (mark := _mark(entry)) and mark.mark in names]
    both = Said([*kept, *said.turns], [*map(line_of, kept), *said.lines], [*marks, *said.marks])
    return ImportedSaid(bounded(both, (), (), settings), len(kept), +refused)


def _kept(turns: Sequence[Turn]) -> list[Turn]:
    """Those that may be kept, thread by thread."""
    threads: dict[str, list[Turn]] = {}
    for turn in turns:
        threads.setdefault(turn.thread, []).append(turn)
    unwanted: set[str] = set()
    for thread in threads.values():
        unwanted |= may_keep([Message(turn.role, turn.text, identity=turn.id) for turn in thread]).not_kept.keys()
    return [turn for turn in turns if turn.id not in unwanted]


def _entries(value: object, name: str) -> Iterator[Any]:
    entries = value.get(name) if isinstance(value, dict) else None
    yield from entries if isinstance(entries, list) else ()


def _turn(entry: Any, now: datetime) -> Turn | None:
    """A turn as it would be kept today; None for what is none."""
    try:
        turn = msgspec.convert(entry, Turn)
    except msgspec.ValidationError:  # counted as malformed
        return None
    if not _IDENTITY.fullmatch(turn.id) or max(len(turn.thread), len(turn.name)) > MAX_ID_CHARS:
        return None
    text = shorten_redacted(redact(turn.text)[0], MAX_TURN_CHARS)
    return msgspec.structs.replace(turn, text=text, at=_past(turn.at, now), said_at=_past(turn.said_at, now))


def _past(time: str, now: datetime) -> str:
    """A time of an import, in the form of documents; the present for one in the future, "" for none."""
    parsed = moment(time)
    return iso(min(parsed, now)) if parsed else ""


def _mark(entry: Any) -> Mark | None:
    try:
        return msgspec.convert(entry, Mark)
    except msgspec.ValidationError:  # a mark of a later version
        return None
