"""Decodes the server's replies: text, times, and a stored message."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import unquote


class MessageValue(NamedTuple):
    """One message as the inbox stores it. `order` grows with each push; `signals`: as `signals_of` reads them.

    `at_ms`: when it was taken in, in ms since 1970; None where a build before 13 did that.
    """

    order: int
    at_ms: int | None
    signals: bytes
    body: bytes


def message_value(value: bytes) -> MessageValue:
    """Parse the value of a message's field, as `lua/merge.lua` writes it."""
    order, _sequence, tokens, signals, body = value.split(b" ", 4)
    _, _, at = tokens.partition(b"@")
    return MessageValue(int(order), abs(int(at)) if at else None, signals, body)


def signals_of(value: MessageValue) -> tuple[frozenset[str], str]:
    """The signals of a stored message, and the project that it is marked for ("": none)."""
    names, _, mark = text(value.signals).partition("#")
    return frozenset() if names == "-" else frozenset(names.split(",")), unquote(mark)


def moment(milliseconds: float) -> datetime:
    """A time of the server's clock, in UTC. `milliseconds`: since 1970."""
    return datetime.fromtimestamp(float(milliseconds) / 1000, UTC)


def text(value: Any) -> str:
    """A reply as text."""
    return value.decode() if isinstance(value, bytes) else str(value)
