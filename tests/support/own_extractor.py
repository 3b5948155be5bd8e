"""Extractors that are not memd's, as `extraction.class` may name them."""

from __future__ import annotations

from memd.config import ExtractionSettings
from memd.extraction.protocol import Extraction, Request, Usage, WrittenText
from support.conversations import one_fact_each


class OwnExtractor:
    """Makes a fact of every user message. It is called with the settings and the most calls at once."""

    name = "own"

    def __init__(self, settings: ExtractionSettings, concurrency: int) -> None:
        self._model = f"{settings.model}/{concurrency}"

    async def extract(self, request: Request) -> Extraction:
        """The update of these messages."""
        return Extraction(one_fact_each(request.messages), Usage(), self._model, "own-1")

    async def aclose(self) -> None:
        """Nothing is open."""


class OwnWriter(OwnExtractor):
    """Writes texts, too."""

    async def write(self, instructions: str, prompt: str, deadline_s: float) -> WrittenText:
        """How many turns it was asked about."""
        return WrittenText(f"{prompt.count('<t role=')} turns", Usage())


class NoExtractor:
    """Has nothing that an extractor must have."""

    def __init__(self, *_: object) -> None:
        self.name = "none"


class NeedsMore:
    """Asks for something that memd does not give."""

    def __init__(self, settings: ExtractionSettings, concurrency: int, key: str) -> None:
        self.name = key
