"""What the user said: the only thing that proves a fact."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from memd.context import Message
from memd.extraction.update import Evidence
from memd.memory.text import fold

MAX_QUOTE_CHARS = 500
"""Characters of a quote that are kept; the beginning of a verbatim quote is one too."""

MAX_EVIDENCE = 5
"""Quotes kept for one fact."""


class Said:
    """The new user messages of one thread, for looking quotes up in. Messages are folded when first looked at."""

    def __init__(self, thread_id: str, sent: Sequence[Message], new: Collection[str]) -> None:
        self._thread_id = thread_id
        self._messages = {i: m for i, m in enumerate(sent) if m.role == "user" and m.identity in new}
        self._folded: dict[int, str] = {}

    def holds(self, quote: str) -> bool:
        """Whether the quote stands in any of the messages."""
        return self._place(quote, -1) is not None

    def evidence(self, pieces: Sequence[Evidence]) -> list[dict[str, Any]]:
        """The pieces that hold true, as the document keeps them.

        A quote that stands in another user message than the one named counts: only the number was wrong.
        """
        found: list[dict[str, Any]] = []
        for piece in pieces:
            place = self._place(piece.quote, piece.message) if len(found) < MAX_EVIDENCE else None
            if place is not None:
                message = self._messages[place]
                entry = {
                    "thread": self._thread_id,
                    "message": message.id or message.identity,
                    "quote": piece.quote[:MAX_QUOTE_CHARS],
                }
                if entry not in found:
                    found.append(entry)
        return found

    def signalled(self, evidence: Sequence[dict[str, Any]], signal: str) -> bool:
        """Whether a message that these entries quote carries the signal."""
        named = {entry["message"] for entry in evidence}
        return any(signal in m.signals for m in self._messages.values() if (m.id or m.identity) in named)

    def _place(self, quote: str, named: int) -> int | None:
        wanted = fold(quote)
        if not any(map(str.isalnum, wanted)):
            return None
        if named in self._messages and wanted in self._text(named):
            return named
        return next((i for i in self._messages if wanted in self._text(i)), None)

    def _text(self, index: int) -> str:
        if index not in self._folded:
            self._folded[index] = fold(self._messages[index].content)
        return self._folded[index]
