"""The receipt a push returns; use it later to look up the outcome."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import orjson

from memd.context import WIRE_VERSION, Context
from memd.errors import Rejected
from memd.inbox.connection import Call
from memd.inbox.decoding import moment, text
from memd.inbox.verbs import ACCEPTED, Merged, P, PushStatus, ReceiptParts

State = Literal["pending", "claimed", "stored", "skipped", "dead", "unknown"]

_ID = re.compile(r"([0-9a-f]{32})\.([0-9a-f]{8})\.([1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class Receipt:
    """The result of a push. `status`: queued, merged, unconfirmed (taken, but too few replicas had it in time), skipped
    (see `reason`), disabled.

    `messages`: how many were kept. `dropped`: turns by the reason why they were not, or (`truncated`) not whole.
    `cut`: blocks cut out of turns, by kind. `wire`: the version of the wire format that this door takes.
    """

    status: PushStatus
    id: str | None
    due_at: datetime | None
    reason: str | None
    messages: int
    dropped: dict[str, int] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)
    wire: int = WIRE_VERSION


@dataclass(frozen=True, slots=True)
class Range:
    """The outcome record of a key's sequence numbers `first` to `last`."""

    first: int
    last: int
    record: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Standing:
    """The states of a key's pushes: the pending and claimed sequence numbers, and the ended ranges.

    `earlier`: the generations before this one, which other servers gave, with the last number of each.
    """

    gen: str
    earlier: dict[str, int]
    pending: tuple[int, int] | None
    claimed: tuple[int, int] | None
    due_ms: int | None
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state of a push. A push that was processed in parts reports the worst state, and counts all of them.

    A pending push has the `reason` "budget" while it waits for a budget, until `due_at`.
    """

    state: State
    reason: str | None = None
    fact_ids: tuple[str, ...] = ()
    counts: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    not_kept: dict[str, int] = field(default_factory=dict)
    """Messages that the user asked not to keep, and the replies to them, by reason."""

    project: dict[str, Any] = field(default_factory=dict)
    """What became of what was for projects: `facts` added or confirmed, `private` (what the user may not share),
    `refused`; or `waiting`."""

    due_at: datetime | None = None

    @property
    def ended(self) -> bool:
        """Whether the push has reached its final state."""
        return self.state not in {"pending", "claimed"}


def receipt(merged: Merged, context: Context) -> Receipt:
    """The receipt for the result of merging a context."""
    accepted = merged.status in ACCEPTED
    return Receipt(
        status=merged.status,
        id=f"{merged.key}.{merged.gen}.{merged.seq}" if accepted else None,
        due_at=moment(merged.due_ms) if accepted else None,
        reason=merged.reason or None,
        messages=len(context.messages),
        dropped=context.dropped,
        cut=context.cut,
    )


def standings(keys: Sequence[str]) -> Call[list[Standing]]:
    """Read the states of the pushes of each key."""
    return Call(("FCALL", "memd_receipt_1", 1, P, *keys), lambda reply: [_standing(row) for row in reply])


def _standing(row: list[Any]) -> Standing:
    gens, start, end, due, taken_start, taken_end, ranges = row
    gen, *earlier = text(gens).split() or [""]
    return Standing(
        gen=gen,
        earlier=dict(zip(earlier[::2], map(int, earlier[1::2]), strict=True)),
        pending=(int(start), int(end)) if start else None,
        claimed=(int(taken_start), int(taken_end)) if taken_start else None,
        due_ms=int(float(due)) if due else None,
        ranges=tuple(_ranges(ranges)),
    )


def _ranges(lines: bytes) -> Iterator[Range]:
    for line in lines.splitlines():
        first, last, record = line.split(b" ", 2)
        yield Range(int(first), int(last), orjson.loads(record))


def parse_id(receipt_id: str) -> ReceiptParts:
    """Key hash, generation and sequence of a receipt id. Raises Rejected."""
    match = _ID.fullmatch(receipt_id)
    if not match:
        raise Rejected("E_RECEIPT_ID", "a receipt id has the form <key>.<generation>.<number>", "receipt")
    return match[1], match[2], int(match[3])


UNKNOWN = Outcome("unknown", "not a push this server knows, or its time is over")


def judge(standing: Standing, gen: str, seq: int) -> Outcome:
    """The outcome of sequence number `seq`. Pending and claimed come first, since parts of a push may have ended."""
    if standing.gen != gen and seq > standing.earlier.get(gen, 0):
        return UNKNOWN
    if standing.pending and standing.pending[0] <= seq <= standing.pending[1]:
        return Outcome("pending", due_at=moment(standing.due_ms) if standing.due_ms else None)
    if standing.claimed and standing.claimed[0] <= seq <= standing.claimed[1]:
        return Outcome("claimed")
    ended = [ended_range for ended_range in standing.ranges if ended_range.first <= seq <= ended_range.last]
    if not ended:
        return Outcome("unknown", "it ended so long ago that only later outcomes of its key are kept")
    return _worst(ended)


def explain(outcome: Outcome, rationed_until: datetime | None) -> Outcome:
    """Add to a pending outcome that it waits for a budget."""
    if outcome.state != "pending" or rationed_until is None:
        return outcome
    return replace(outcome, reason="budget", due_at=rationed_until)


def _worst(ended: list[Range]) -> Outcome:
    record = max((part.record for part in ended), key=_badness)
    refused: Counter[str] = Counter()
    not_kept: Counter[str] = Counter()
    for part in ended:
        refused.update(part.record.get("refused", {}))
        not_kept.update(part.record.get("not_kept", {}))
    return Outcome(
        state=record["state"],
        reason=record.get("reason"),
        fact_ids=tuple(fact for part in ended for fact in part.record.get("facts", ())),
        counts=dict(Counter(part.record["state"] for part in ended)),
        refused=dict(refused),
        not_kept=dict(not_kept),
        project=_for_projects(ended),
    )


def _for_projects(ended: list[Range]) -> dict[str, Any]:
    told = [found for part in ended if isinstance(found := part.record.get("project"), dict)]
    if any(found.get("waiting") for found in told):
        return {"waiting": True}
    refused = sum((Counter(found.get("refused", {})) for found in told), Counter[str]())
    counts = {name: sum(found.get(name, 0) for found in told) for name in ("facts", "private")}
    return {name: value for name, value in {**counts, "refused": dict(refused)}.items() if value} if told else {}


def _badness(record: dict[str, Any]) -> int:
    if record["state"] == "dead":
        return 3
    if record["state"] == "stored":
        return 1
    return 0 if record.get("reason") == "already_known" else 2
