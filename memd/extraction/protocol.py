"""The request to an extractor, the extraction it returns, and the interface of an extractor."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, tzinfo
from typing import NamedTuple, Protocol, runtime_checkable

from memd.context import Message
from memd.extraction.update import Extras, Update
from memd.memory.document import Document
from memd.memory.projects.shared import Projects


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Questions about the document itself: ids of facts to review, each with why, categories to merge facts in, and
    whether the user's profile is asked for."""

    review: Mapping[str, str] = field(default_factory=dict)
    merge: tuple[str, ...] = ()
    profile: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One question: what do these messages change in this document?

    `messages` are new; evidence counts them from 0. `before` are known messages that only give context.
    `deadline_s`: seconds until the extraction must have ended; the extractor's own setting may be shorter. `today`: the
    date that the extractor is told. `repair`: why the first reply to this same request was no update, else "".
    `shown`: the ids of the facts that the extractor is shown; None: all of them. `timezone`: where the user is, for
    the days of messages that do not say it. `sensitive`: new facts are to be labelled `sensitive` where they are.
    `projects`: those of the messages' marks to which the user may add, by id.
    """

    document: Document
    messages: tuple[Message, ...]
    before: tuple[Message, ...] = ()
    deadline_s: float = 90.0
    maintenance: Maintenance = field(default_factory=Maintenance)
    today: date = field(default_factory=lambda: datetime.now(UTC).date())
    repair: str = ""
    shown: Collection[str] | None = None
    timezone: tzinfo = UTC
    sensitive: bool = False
    projects: Projects = field(default_factory=dict)

    @property
    def extras(self) -> Extras:
        """What it asks for beyond what every request asks."""
        marked = any(message.project for message in self.messages)
        return Extras(self.sensitive, marked, self.maintenance.profile)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the endpoint counted them; `input_tokens` excludes cache reads and writes."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The tokens of two calls together."""
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )


MALFORMED = "malformed"
"""The reason for which an item is refused that does not have the form of the schema."""


TOO_MANY = "too_many_items"
"""The reason for which items are refused that one reply has beyond the most, of a message that cannot be split."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """An update, its cost, and the model and version of the prompt that made it.

    `mended`: repairs of the reply's form, by kind. `malformed`: the place of each item that was refused for its form,
    such as `newFacts[3].confidence`. `over`: how many items were refused as TOO_MANY.
    """

    update: Update
    usage: Usage
    model: str
    prompt_version: str
    mended: Mapping[str, int] = field(default_factory=dict)
    malformed: tuple[str, ...] = ()
    over: int = 0


@runtime_checkable
class Extractor(Protocol):
    """Turns messages into an update. It reads and never writes: the code after it decides what is applied.

    One of your own, named in `extraction.class`, is called with the extraction settings and the most calls at once.
    """

    name: str

    async def extract(self, request: Request) -> Extraction:
        """Extract one request.

        Raises ModelUnavailable (only the endpoint is at fault), ContentRefused (NoUpdate for a reply that is no update)
        or ContentTooLong (Truncated for a reply that breaks off at the limit of tokens).
        """
        ...

    async def aclose(self) -> None:
        """Close the connections; the extractor cannot be used afterwards."""
        ...


class WrittenText(NamedTuple):
    """What the model wrote, its cost, and whether it was cut at the limit of tokens."""

    text: str
    usage: Usage
    is_cut: bool = False


@runtime_checkable
class Writer(Protocol):
    """Writes texts. An extractor of one's own (`extraction.class`) with these two methods is one, too."""

    async def write(self, instructions: str, prompt: str, deadline_s: float) -> WrittenText:
        """One call to the model. Raises ModelUnavailable, ContentRefused or ContentTooLong."""
        ...

    async def aclose(self) -> None:
        """Close the connections; the writer cannot be used afterwards."""
        ...
