"""Outright: what a user asks to remember ("remember that I am allergic to nuts", 记住我对坚果过敏) is sure."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from pathlib import Path

from memd.context import Message
from memd.memory.evidence import UserMessages
from memd.memory.facts import Evidence
from memd.memory.text import fold
from memd.push.patterns import load, prepared
from memd.push.prefilter import Prefilter

_END = re.compile(r"[.!?。！？]")


@prepared
def _patterns() -> Prefilter[re.Pattern[str]]:
    sources = load(Path(__file__).parent / "outright")["remember"]
    return Prefilter((source, re.compile(source)) for source in sources)


def outright(text: str) -> list[tuple[int, int]]:
    """The places in a folded text of what it asks to remember; none in a question."""
    begun = sorted(match.end() for pattern in _patterns().select(text) for match in pattern.finditer(text))
    if not begun:
        return []
    ends = [match.start() for match in _END.finditer(text)]  # all at once: a search from each place would be quadratic
    found: list[tuple[int, int]] = []
    for start in begun:
        place = bisect_left(ends, start)
        if place == len(ends):
            found.append((start, len(text)))
        elif text[ends[place]] not in "?？":
            found.append((start, ends[place]))
    return found


class Outright:
    """The messages of an update in which the user asks to remember something."""

    def __init__(self, sent: Sequence[Message], messages: UserMessages) -> None:
        self._messages = messages
        texts = {message.identity: fold(message.content) for message in sent if message.role == "user"}
        self._asked = {name: (text, places) for name, text in texts.items() if (places := outright(text))}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._asked)

    def holds(self, evidence: Sequence[Evidence]) -> bool:
        """Whether a quote stands in what the user asks to remember."""
        return any(self._stands_in(entry) for entry in evidence)

    def _stands_in(self, entry: Evidence) -> bool:
        quote = fold(entry["quote"])
        for name in self._messages.identities([entry]):
            text, places = self._asked.get(name, ("", []))
            start = text.find(quote)
            if start >= 0 and any(start < last and first < start + len(quote) for first, last in places):
                return True
        return False
