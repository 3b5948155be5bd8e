"""Untold: what an update's summaries must not tell either, because its facts were held back as sensitive."""

from __future__ import annotations

from collections.abc import Iterable

from memd.extraction.update import NewFact
from memd.memory.document import Fact
from memd.memory.purge import Words, without_sentences


class Untold:
    """The facts of one update that were held back."""

    def __init__(self) -> None:
        self._facts: list[Fact] = []

    def note(self, proposal: NewFact, content: str) -> None:
        """Take one in. `content`: its sentence."""
        self._facts.append({"content": content, "evidence": [{"quote": item.quote} for item in proposal.evidence]})

    def cut(self, text: str, kept: Iterable[Fact]) -> str:
        """A summary without the sentences that tell one of them. `kept`: the facts that it may tell."""
        return without_sentences(text, Words(self._facts, kept)) if self._facts else text
