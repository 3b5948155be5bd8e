"""What one attempt at a claim came to: a value, which `Life` turns into exactly one move of the inbox."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Guilty:
    """A message that the model cannot take, alone: it goes to the dead, the rest of its claim does not."""

    identity: str
    code: str
    error: str


@dataclass(frozen=True, slots=True)
class Stored:
    """The document has the messages; `refused` counts what was not stored, by reason."""

    messages: int
    fact_ids: tuple[str, ...]
    confirmed: int
    retired: int
    refused: dict[str, int]
    redacted: dict[str, int] = field(default_factory=dict)
    """Secrets cut out of the messages, by kind."""

    guilty: tuple[Guilty, ...] = ()
    """Messages of the claim that were found to spoil it: buried by themselves before the rest is acked."""

    def __add__(self, other: Stored) -> Stored:
        """Two parts of one claim as one outcome."""
        return Stored(
            self.messages + other.messages,
            self.fact_ids + other.fact_ids,
            self.confirmed + other.confirmed,
            self.retired + other.retired,
            dict(Counter(self.refused) + Counter(other.refused)),
            dict(Counter(self.redacted) + Counter(other.redacted)),
        )


@dataclass(frozen=True, slots=True)
class Skipped:
    """Nothing of the claim is worth reading, or it is known already."""

    reason: str


@dataclass(frozen=True, slots=True)
class Retry:
    """The claim goes back. `costs` says whether the content is to blame; `wait_s` is a floor for the backoff."""

    code: str
    error: str
    costs: bool
    wait_s: float = 0.0
    backoff: bool = True
    """Whether the key's own doubling backoff applies; an open breaker sets the pause instead."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """The claim's request is in a batch: it is given back until that is answered. `asked`: what it is about."""

    batch: str
    asked: str


@dataclass(frozen=True, slots=True)
class Dead:
    """The claim's content can never be worked on."""

    code: str
    error: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The claim is somebody else's by now, or the inbox is out of reach: its lease decides, nothing is sent."""

    code: str = field(default="claim_lost")


Outcome = Stored | Skipped | Retry | Deferred | Dead | Lost
