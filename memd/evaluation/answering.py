"""Replies to requests: from a model, or from people who read the request files that a run writes."""

from __future__ import annotations

import json
from collections.abc import Container, Iterable
from pathlib import Path

from memd.errors import ContentTooLong, ExtractionFailed, ModelUnavailable
from memd.evaluation.saved_replies import Recorder, SavedReply, Unanswered, fingerprint, saved_from
from memd.extraction.prompt import INSTRUCTIONS, build
from memd.extraction.protocol import Extraction, Extractor, Request
from memd.extraction.update import json_schema


class Live:
    """Replies from an extractor."""

    def __init__(self, extractor: Extractor, recorder: Recorder | None = None) -> None:
        self._extractor = extractor
        self._recorder = recorder

    async def answer(self, name: str, request: Request) -> Extraction:
        """Ask the extractor. Raises ExtractionFailed."""
        try:
            extraction = await self._extractor.extract(request)
        except ExtractionFailed as error:  # raised again; a malformed reply is saved for replay, an outage is not
            if self._recorder is not None and not isinstance(error, ModelUnavailable):
                stop_reason = "max_tokens" if isinstance(error, ContentTooLong) else "end_turn"
                self._recorder.keep(SavedReply(name, text="", stop_reason=stop_reason), request)
            raise
        if self._recorder is not None:
            self._recorder.keep(saved_from(name, extraction), request)
        return extraction


class RequestFolder:
    """A folder of requests without a reply: `_system.md`, `_schema.json`, and one NAME.md per request."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, unanswered: Iterable[Unanswered], answered: Container[str]) -> int:
        """Write the unanswered requests and remove the files of answered ones. Returns how many are left."""
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "_system.md").write_text(INSTRUCTIONS, encoding="utf-8")
        schema = json.dumps(json_schema(), indent=1)
        (self._folder / "_schema.json").write_text(schema + "\n", encoding="utf-8")
        for file in self._folder.glob("*.md"):
            if file.name.removesuffix(".md") in answered:
                file.unlink()
        left = list(unanswered)
        for one in left:
            head = f"{one.name}  request {fingerprint(one.request)}\n\n"
            text = head + build(one.request, one.request.today) + "\n"
            (self._folder / f"{one.name}.md").write_text(text, encoding="utf-8")
        return len(left)
