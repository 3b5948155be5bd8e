"""Evidence: only the user's own new messages prove a fact, by a verbatim quote."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memd.context import Message
from memd.extraction.update import Evidence as Quoted
from memd.memory.facts import Evidence
from memd.memory.text import fold

MAX_QUOTE_CHARS = 500
"""Characters of a quote that are kept; the beginning of a verbatim quote is verbatim too."""

MAX_EVIDENCE = 5
"""Quotes kept for one fact."""


class UserMessages:
    """The new user messages of one thread, in which quotes are looked up. Each is folded once, when first needed."""

    def __init__(self, thread_id: str, sent: Sequence[Message], new: Collection[str]) -> None:
        self._thread_id = thread_id
        self._messages = {i: m for i, m in enumerate(sent) if m.role == "user" and m.identity in new}
        self._folded: dict[int, str] = {}

    def hold(self, quote: str) -> bool:
        """Whether any of the messages contains the quote."""
        return self._place(quote, -1) is not None

    def evidence(self, quoted: Sequence[Quoted]) -> list[Evidence]:
        """The quotes that are verbatim, as the document keeps them.

        A quote from another user message than the one named counts: only the number was wrong.
        """
        entries: list[Evidence] = []
        for item in quoted:
            place = self._place(item.quote, item.message) if len(entries) < MAX_EVIDENCE else None
            if place is not None:
                entry = self._entry(place, item.quote)
                if entry not in entries:
                    entries.append(entry)
        return entries

    def quote(self, quote: str) -> list[Evidence]:
        """The evidence that a quote of any message gives."""
        place = self._place(quote, -1)
        return [] if place is None else [self._entry(place, quote)]

    def signalled(self, evidence: Sequence[Evidence], signal: str) -> bool:
        """Whether a message that these entries quote carries the signal."""
        named = {entry["message"] for entry in evidence}
        return any(signal in m.signals for m in self._messages.values() if (m.id or m.identity) in named)

    def _entry(self, place: int, quote: str) -> Evidence:
        message = self._messages[place]
        return {
            "thread": self._thread_id,
            "message": message.id or message.identity,
            "quote": quote[:MAX_QUOTE_CHARS],
        }

    def _place(self, quote: str, expected: int) -> int | None:
        text = fold(quote)
        if not any(map(str.isalnum, text)):
            return None
        if expected in self._messages and text in self._text(expected):
            return expected
        return next((i for i in self._messages if text in self._text(i)), None)

    def _text(self, index: int) -> str:
        if index not in self._folded:
            self._folded[index] = fold(self._messages[index].content)
        return self._folded[index]
