"""What an extractor is asked, what it answers, and what it must be able to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from memd.context import Message
from memd.extraction.update import Asked, Update

if TYPE_CHECKING:
    from memd.extraction.batch.results import Result
    from memd.memory.document import Document


@dataclass(frozen=True, slots=True)
class Request:
    """One question: what do these messages change in this document?

    `messages` are new; evidence indexes count them from 0. `before` are known ones that only give context.
    `about`: what is asked of the document itself: facts to review, categories to merge in.
    `deadline_s`: seconds the whole answer may take; the extractor's own setting may be shorter.
    """

    document: Document
    messages: tuple[Message, ...]
    before: tuple[Message, ...] = ()
    deadline_s: float = 90.0
    about: Asked = field(default_factory=Asked)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the endpoint counted them; input_tokens excludes what was read from or put in its cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """What two calls cost together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer: an update, what it cost, and by what it was made."""

    update: Update
    usage: Usage
    model: str
    prompt_version: str


BatchState = Literal["in_progress", "ended", "gone"]


class Batches(Protocol):
    """An endpoint's batches: many requests sent at once, answered within a day, for half the price.

    Every method raises ExtractionFailed as a call does.
    """

    def params(self, request: Request) -> dict[str, Any]:
        """The request of one extraction, as it goes into a batch."""
        ...

    async def create(self, requests: Sequence[tuple[str, dict[str, Any]]]) -> str:
        """Send (id, params) as one batch; answers the batch's id."""
        ...

    async def state(self, batch_id: str) -> BatchState:
        """How far a batch is; `gone` when it cannot be asked for any more."""
        ...

    async def results(self, batch_id: str) -> list[Result]:
        """What became of the requests of a batch that has ended."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ask for no more answers."""
        ...

    async def delete(self, batch_id: str) -> None:
        """Have the endpoint forget a batch that has ended."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


class Extractor(Protocol):
    """Turns messages into an update. It reads, it never writes; what is applied is decided by the code after it."""

    name: str

    async def extract(self, request: Request) -> Extraction:
        """Answer one request.

        Raises ModelUnavailable (nobody is to blame but the endpoint), ContentRefused or ContentTooLong.
        """
        ...

    async def aclose(self) -> None:
        """Let go of connections; the extractor cannot be used afterwards."""
        ...
