"""Limits: makes what filtering leaves of a push fit the inbox, and refuses nothing.

The newest messages stay. A message that is too long keeps its head and its tail, and loses its middle. Secrets near the
cuts are redacted first, and found in the text on both sides of a cut, so that no half of one stays that nobody could
recognise. The rest of the text waits for the redaction of the drain, as every other message does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from memd.config import ClientSettings
from memd.context import Message
from memd.push.marks import MARK, mark
from memd.push.validation import wire_message

if TYPE_CHECKING:
    from memd.push.named_secrets import Span

TRUNCATED, OVER_LIMIT = "truncated", "over_limit"
"""How a receipt counts the messages that were shortened, and the older messages that were left out."""

GAP = "\n[...]\n"
"""Stands for the middle of a shortened text."""

REACH = 8_192
"""Characters on each side of a cut in which secrets are looked for. Servers accept no longer header, so no longer token
works; private keys are found at any length."""

NEAR = REACH // 2
"""Characters on the kept side of a cut in which secrets are redacted. Nothing farther from a cut needs the words behind
it to be recognised: the words that name a secret are at most some hundred characters away."""

CHAR_BYTES, FIELDS_BYTES, SOURCE_BYTES = 4, 1_040, 570
"""The most bytes on the wire of a character, of a message's fields besides content and source, and of its source."""


def fit(messages: Sequence[Message], limits: ClientSettings) -> tuple[tuple[Message, ...], dict[str, int]]:
    """The newest messages that fit together, each within the limit of one; and how many were cut, by reason."""
    most, longest = len(messages) * FIELDS_BYTES, 0
    for message in messages:
        size = len(message.content)
        longest = max(longest, size)
        most += size * CHAR_BYTES + (SOURCE_BYTES if message.source_kind else 0)
    if most <= limits.max_push_bytes and len(messages) <= limits.max_messages and longest <= limits.max_message_chars:
        return tuple(messages), {}  # the fast path: nearly every push
    kept: list[Message] = []
    truncated, room = 0, limits.max_push_bytes
    for message in reversed(messages[-limits.max_messages :]):
        short = _shortened(message, limits)
        room -= len(wire_message(short))
        if room < 0:
            break
        truncated += short is not message
        kept.append(short)
    cut = {TRUNCATED: truncated, OVER_LIMIT: len(messages) - len(kept)}
    return tuple(reversed(kept)), {reason: count for reason, count in cut.items() if count}


def shorten(text: str, most: int) -> str:
    """Head and tail of a text, together `most` characters. No part of a secret that a cut goes through is left."""
    if len(text) <= most:
        return text
    head, tail = _rooms(most)
    return _ends(text, head, tail, _near_cuts(text, head, len(text) - tail))


def shorten_redacted(text: str, most: int) -> str:
    """The same of a text whose secrets are marks by now; none of the marks is cut through."""
    if len(text) <= most:
        return text
    return _ends(text, *_rooms(most), [(*found.span(), found[1]) for found in MARK.finditer(text)])


def _shortened(message: Message, limits: ClientSettings) -> Message:
    fields = len(wire_message(replace(message, content="")))
    most = max(len(GAP) + 1, min(limits.max_message_chars, (limits.max_push_bytes - fields) // CHAR_BYTES))
    return message if len(message.content) <= most else replace(message, content=shorten(message.content, most))


def _rooms(most: int) -> tuple[int, int]:
    """The characters of the head and of the tail."""
    room = most - len(GAP)
    return room - room // 2, room // 2


def _near_cuts(text: str, head: int, tail: int) -> list[Span]:
    """The secrets near the cuts of a text of which `text[:head]` and `text[tail:]` are kept."""
    from memd.push.redaction import find, merged, private_keys  # noqa: PLC0415  (few producers ever cut a message)

    spans = private_keys(text)
    base = max(0, head - REACH)
    for start, end, kind in find(text[base : head + REACH]):
        if base + start < head and base + end > head - NEAR:
            spans.append((base + start, base + end, kind))
    base = max(0, tail - REACH)
    for start, end, kind in find(text[base : tail + REACH]):
        if base + start < tail + NEAR and base + end > tail:
            spans.append((base + start, _end_of_run(text, base + end, tail + REACH), kind))
    return merged(spans)


def _end_of_run(text: str, end: int, searched: int) -> int:
    """The end of a secret. One that reaches the end of what was searched goes on to the next space."""
    while searched <= end < len(text) and "!" <= text[end] <= "~":
        end += 1
    return end


def _ends(text: str, head: int, tail: int, secrets: list[Span]) -> str:
    """At most `head` characters from the start and `tail` from the end, with marks for the secrets."""
    first = _pieces(text, 0, head, secrets)
    last = _pieces(text, len(text) - tail, len(text), secrets)
    return "".join((*_filled(first, head), GAP, *reversed(list(_filled(reversed(last), tail, from_end=True)))))


def _pieces(text: str, start: int, end: int, secrets: list[Span]) -> list[tuple[str, bool]]:
    """A part of a text in pieces, each with whether it is a mark, which stands for a whole secret."""
    pieces = []
    for first, last, kind in secrets:
        if start < last and first < end:
            pieces += [(text[start : max(start, first)], False), (mark(kind), True)]
            start = last
    return [*pieces, (text[start:end], False)]


def _filled(pieces: Iterable[tuple[str, bool]], room: int, *, from_end: bool = False) -> Iterator[str]:
    """The pieces that there is room for. The last one is cut, unless it is a mark: marks may be longer than secrets."""
    for piece, is_mark in pieces:
        if len(piece) > room:
            yield "" if is_mark else piece[len(piece) - room :] if from_end else piece[:room]
            return
        room -= len(piece)
        yield piece
