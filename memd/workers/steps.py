"""The values between the steps of a claim's life: each step takes the value of the step before it and returns the next.

A step may return an outcome instead, which ends the part.

ClaimPart ──load──► Opened ──choose──► Work ──ask──► Answered ──commit──► outcome
                              └─► Unread ──note──► outcome
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from memd.config import Settings
from memd.context import Message
from memd.errors import ContentTooLong
from memd.extraction.protocol import Extraction, Maintenance, Request, Usage
from memd.extraction.update import Update
from memd.inbox.claim import Claim
from memd.inbox.histograms import observed
from memd.memory import ledger
from memd.memory.projects.shared import Projects
from memd.memory.said.may_keep import Kept
from memd.memory.scoping import visible_to
from memd.memory.store.protocol import Loaded
from memd.push.times import today_of
from memd.workers.delivering import NOTHING_DELIVERED, Deliveries
from memd.workers.progress import Progress


@dataclass(frozen=True, slots=True)
class ClaimPart:
    """Messages of a claim that are tried together: all, or fewer if the model cannot take all."""

    claim: Claim
    messages: tuple[Message, ...]
    guilty: frozenset[str]
    """Identities of the claim's messages that must not even serve as context."""

    progress: Progress
    """Shared by all parts of the claim."""

    failure: ContentTooLong | None = None
    """The failure of these messages as a whole: they hold one user message, which is asked about in pieces."""

    @property
    def is_whole(self) -> bool:
        """Whether these are all messages of the claim."""
        return len(self.messages) == len(self.claim.messages)

    @property
    def ends_claim(self) -> bool:
        """Whether its last message is the last of the claim."""
        return self.messages[-1:] == self.claim.messages[-1:]

    def spend(self, model: str, usage: Usage, *, batch: bool) -> None:
        """Count one call. An unusable reply costs as much as any other."""
        self.progress.spent.update(usage_stats(model, usage, batch=batch))

    def time_call(self, model: str, seconds: float, code: str = "") -> None:
        """Count the time of one call that is no batch's, and with a code its failure."""
        failure = {f"failed:{code}:{model}": 1} if code else {}
        self.progress.spent.update({f"called:{model}": 1, **failure, **observed("extraction", seconds)})


@dataclass(frozen=True, slots=True)
class Opened:
    """A part and the bucket's document. `earlier`: the turns of the thread before the claim's messages, if needed.

    `projects`: of the messages' marks, those to which the user may add.
    """

    part: ClaimPart
    loaded: Loaded
    earlier: tuple[Message, ...] = ()
    projects: Projects = field(default_factory=dict)
    deliveries: Deliveries = NOTHING_DELIVERED
    """What became of the outbox that the document had."""


@dataclass(frozen=True, slots=True)
class Work:
    """The extractor's input: the new messages of a part, and known messages before them for context."""

    part: ClaimPart
    loaded: Loaded
    new: tuple[Message, ...]
    before: tuple[Message, ...]
    taken: tuple[Message, ...]
    """The messages that the ledger holds afterwards, the already known ones included."""

    said: tuple[Message, ...]
    """The new messages that may be kept, acknowledgements too, as the said layer keeps them."""

    kept: Kept
    """Which messages of the claim may be kept, and which prove nothing; the extractor does not see the latter."""

    maintenance: Maintenance
    """Questions about the document itself."""

    redacted: dict[str, int]
    """Secrets removed from the new messages, by kind: neither the extractor nor the document sees them."""

    shown: frozenset[str] | None = None
    """The ids of the facts that the extractor sees; None: all of them."""

    projects: Projects = field(default_factory=dict)
    """The projects of the new messages' marks to which the user may add."""

    delivered: frozenset[str] = frozenset()
    """Ids of outbox entries that their projects know, which leave with the next commit."""

    place: str = ""
    """The place of a piece in the user's message; empty for whole messages."""

    repair: str = ""
    """The error of the reply to this same request, which is repeated once."""

    @property
    def not_kept(self) -> dict[str, int]:
        """The part's messages that may not be kept, by reason."""
        return dict(Counter(why for message in self.part.messages if (why := self.kept.not_kept.get(message.identity))))

    @property
    def names(self) -> tuple[str, ...]:
        """The names under which replies that are no update are counted."""
        return tuple(f"{message.identity}{self.place}" for message in self.part.messages)

    def request(self, settings: Settings, now: datetime) -> Request:
        """The question to the extractor."""
        zone, key = settings.extraction.zone, self.part.claim.key
        name = ledger.name_of(key.thread_id, key.user_id, shared=settings.store.shared)
        newest = next((one.created_at for one in reversed(self.new) if one.role == "user"), None)
        return Request(
            visible_to(self.loaded.document, name, self.new),
            self.new,
            self.before,
            settings.extraction.deadline_s,
            self.maintenance,
            today_of(newest, now, zone),
            self.repair,
            self.shown,
            zone,
            settings.apply.labels_sensitive,
            self.projects,
        )


@dataclass(frozen=True, slots=True)
class Unread:
    """Work without words of the user: the ledger takes its messages in, and the model is not asked.

    `reason`: why the part is skipped then.
    """

    work: Work
    reason: str


@dataclass(frozen=True, slots=True)
class Answered:
    """Work and its extraction."""

    work: Work
    extraction: Extraction


NOTHING = Extraction(Update(), Usage(), model="", prompt_version="")
"""The extraction of messages that the model is not asked about."""


def usage_stats(model: str, usage: Usage, *, batch: bool) -> dict[str, int]:
    """The counters of one call: totals, and `used:<kind>:<model>`, which the inbox also counts by day and budget."""
    way = "batch_" if batch else ""
    kinds = {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
    }
    totals = {"model_calls": 1, **{f"{kind}_tokens": count for kind, count in kinds.items()}}
    if not any(kinds.values()):  # the offline extractor, or an endpoint that does not count
        return totals
    return totals | {f"used:{way}{kind}:{model}": count for kind, count in {"calls": 1, **kinds}.items()}
