"""The outcome of one attempt at a claim: a value, which `settle` turns into exactly one move of the inbox."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from memd.errors import (
    ClaimLost,
    ContentRefused,
    ContentTooLong,
    DocumentDamaged,
    InboxFull,
    InboxUnavailable,
    ModelUnavailable,
    StoreUnavailable,
)
from memd.events import Event, logger
from memd.inbox.claim import PaidAnswer


@dataclass(frozen=True, slots=True)
class Guilty:
    """A message that the model cannot take even alone: it goes to the dead, the rest of its claim does not."""

    identity: str
    code: str
    error: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The document holds the messages. `refused` counts the items of the update that were not stored, by reason."""

    messages: int
    fact_ids: tuple[str, ...]
    confirmed: int = 0
    retired: int = 0
    forgotten: int = 0
    suspended: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    redacted: dict[str, int] = field(default_factory=dict)
    """Secrets removed from the messages, by kind."""

    not_kept: dict[str, int] = field(default_factory=dict)
    """Messages that the user asked not to keep, and the replies to them, by reason."""

    mended: dict[str, int] = field(default_factory=dict)
    """Repairs of the reply's form, by kind."""

    malformed: tuple[str, ...] = ()
    """The places of the items that were refused for their form; `refused` counts them too."""

    project: dict[str, object] = field(default_factory=dict)
    """What became of what was for projects: `facts`, `private`, `refused`; or `waiting`."""

    guilty: tuple[Guilty, ...] = ()
    """Messages of the claim that go to the dead before the rest is acked."""

    def __add__(self, other: Stored) -> Stored:
        """Two parts of one claim as one outcome."""
        return Stored(
            self.messages + other.messages,
            self.fact_ids + other.fact_ids,
            self.confirmed + other.confirmed,
            self.retired + other.retired,
            self.forgotten + other.forgotten,
            self.suspended + other.suspended,
            dict(Counter(self.refused) + Counter(other.refused)),
            dict(Counter(self.redacted) + Counter(other.redacted)),
            dict(Counter(self.not_kept) + Counter(other.not_kept)),
            dict(Counter(self.mended) + Counter(other.mended)),
            self.malformed + other.malformed,
            _together(self.project, other.project),
        )


def _together(one: dict[str, object], other: dict[str, object]) -> dict[str, object]:
    """What two parts of a claim had for projects."""
    if not (one and other):
        return one or other
    if "waiting" in one or "waiting" in other:
        return {"waiting": True}
    facts = sum(count for part in (one, other) if isinstance(count := part.get("facts"), int))
    return {**one, **other, "facts": facts}


@dataclass(frozen=True, slots=True)
class Skipped:
    """The claim holds nothing worth reading, or nothing new."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """The claim returns to pending. `costs`: the content is at fault, so it costs an attempt."""

    code: str
    error: str
    costs: bool
    wait_s: float | None = None
    """Seconds until the next try, where the endpoint or its circuit breaker names them; None: the key's own backoff."""

    answer: PaidAnswer | None = None
    """The model's answer if only the store failed, or its answers to the pieces of a message that were asked about so
    far: they are kept with the claim, so that they are not paid again."""

    formless: bool = False
    """The reply was no update. Such replies are counted by message, so this never is the last attempt."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The claim's request is in a batch: the claim goes back until the batch is answered.

    `fingerprint`: of the request, see `results.fingerprint`.
    """

    batch: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class Dead:
    """The claim's content can never be processed."""

    code: str
    error: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Another worker has the claim, or the inbox is unreachable: nothing is sent, and the lease decides."""

    code: str = "claim_lost"


Outcome = Stored | Skipped | Retry | Deferred | Dead | Lost
"""How a claim ends for this worker."""


@dataclass(frozen=True, slots=True)
class Unfit:
    """The model cannot take this part of the claim: a smaller part is tried, or the claim costs an attempt."""

    failure: ContentRefused | ContentTooLong


@dataclass(frozen=True, slots=True)
class Overtaken:
    """Another writer stored some of these messages first, or won every race: the part starts again."""


PartOutcome = Outcome | Unfit | Overtaken
"""How one part of a claim ends; see `halving`."""

STOPPING = Retry("stopping", "the worker stops", costs=False, wait_s=0)
UNFINISHED = Retry("unfinished", "the next drain asks for the rest of the claim", costs=False, wait_s=0)


def unwritable(error: StoreUnavailable | DocumentDamaged) -> Retry:
    """The document is intact; the claim waits until the store works again or the document is repaired."""
    return Retry(type(error).__name__, str(error), costs=False)


def judge(error: Exception) -> Outcome | Unfit:
    """The outcome of a failed step. After any failure, no message of the part is stored."""
    match error:
        case ClaimLost():
            return Lost()
        case InboxUnavailable() | InboxFull():  # the lease expires and the claim comes back
            return Lost("inbox_unavailable")
        case ModelUnavailable():
            return Retry(error.code, str(error), costs=False, wait_s=error.retry_after_s)
        case ContentRefused() | ContentTooLong():
            return Unfit(error)
        case StoreUnavailable() | DocumentDamaged():
            return unwritable(error)
    logger().error(Event.RELEASED, code="internal", exc_info=error)
    return Retry("E_INTERNAL", f"E_INTERNAL: {type(error).__name__}", costs=True)
