"""Halving: where the model cannot take all messages of a claim, smaller parts are tried, in order.

The messages that fail even alone go to the dead; the others are stored. Only what is too long, truncated, or refused
for its content is halved: a reply that is no update says nothing about that, so its messages are tried again, whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby
from operator import add

from memd.context import Message
from memd.errors import ContentRefused, ContentTooLong, NoUpdate, Truncated
from memd.events import Event, logger
from memd.inbox.claim import Claim
from memd.workers.outcome import Dead, Guilty, Outcome, Overtaken, PartOutcome, Retry, Skipped, Stored, Unfit
from memd.workers.pieces import can_be_split
from memd.workers.progress import Progress
from memd.workers.steps import ClaimPart

MAX_CALLS = 64
"""Most model calls that one halving may cost; enough to find eight guilty messages among thousands."""

ROUNDS = 5
"""How often a part starts again because other writers were faster, before the claim goes back."""

Failure = ContentRefused | ContentTooLong


@dataclass(frozen=True, slots=True)
class _Planned:
    messages: tuple[Message, ...]
    blamed: tuple[Guilty, ...] = ()
    """Replies that failed together with this part; they are guilty if this part passes alone."""

    rounds: int = 0
    failure: ContentTooLong | None = None
    """See `ClaimPart.failure`."""


class Parts:
    """The parts of one claim, each to be tried and then ended with its outcome; `finish` adds the outcomes up."""

    def __init__(self, claim: Claim, max_attempts: int) -> None:
        self.progress = Progress.of(claim)
        self._claim = claim
        self._last_attempt = claim.attempts + 1 >= max_attempts
        self._planned = [_Planned(run) for run in reversed(_runs(claim))]
        """The next part last."""

        self._passed: list[Stored | Skipped] = []
        self._guilty: list[Guilty] = []
        self._failure: Failure | None = None
        """The failure of the whole claim."""

        self._ended_by: Outcome | None = None
        self._calls = 0

    def __iter__(self) -> Iterator[ClaimPart]:
        """Yield the parts in order, until all are done or an outcome ends the claim."""
        while self._planned and self._ended_by is None:
            guilty = frozenset(message.identity for message in self._guilty)
            part = self._planned[-1]
            yield ClaimPart(self._claim, part.messages, guilty, self.progress, part.failure)

    def end(self, outcome: PartOutcome) -> None:
        """End the part in hand."""
        part = self._planned.pop()
        match outcome:
            case Stored() | Skipped():
                self._calls += 1
                self._passed.append(outcome)
                self.progress.end_pieces()
                self._guilty += part.blamed
            case Overtaken() if part.rounds + 1 < ROUNDS:
                self._planned.append(replace(part, rounds=part.rounds + 1))
            case Overtaken():
                self._ended_by = Retry("conflict", "other writers were faster each time", costs=False)
            case Unfit(failure):
                self._calls += 1
                self._refuse(part, failure)
            case _:  # the claim comes back, and the ledger knows which of its messages were stored
                self._ended_by = outcome

    def finish(self) -> Outcome:
        """The outcome of the claim: without a stored part, guilty messages make all of it dead."""
        if self._ended_by is not None:
            return self._ended_by
        stored = [outcome for outcome in self._passed if isinstance(outcome, Stored)]
        if not stored and self._failure is not None and self._guilty:
            return Dead(self._failure.code, str(self._failure))
        if not stored:
            return self._passed[0]
        if self._failure is not None:
            logger().warning(Event.HALVED, claim=self._claim.id, code=self._failure.code, guilty=len(self._guilty))
        return replace(reduce(add, stored), guilty=tuple(self._guilty))

    def _refuse(self, part: _Planned, failure: Failure) -> None:
        """Split the part. What may pass on the next attempt is retried instead, and what cannot be split is guilty."""
        if isinstance(failure, NoUpdate) and not self.progress.is_used_up(self.progress.names_of(part.messages)):
            self._ended_by = Retry(failure.code, str(failure), costs=True, formless=True)
            return
        may_pass = isinstance(failure, ContentRefused) and not isinstance(failure, NoUpdate)
        if may_pass and self._failure is None and not self._last_attempt:
            self._ended_by = Retry(failure.code, str(failure), costs=True)
            return
        self._failure = self._failure or failure
        self.progress.end_pieces()
        if isinstance(failure, NoUpdate) or part.failure is not None:
            self._guilty += _guilty(part.messages, failure)
        else:
            self._split(part.messages, failure)

    def _split(self, messages: tuple[Message, ...], failure: Failure) -> None:
        users = [place for place, message in enumerate(messages) if message.role == "user"]
        alone = len(users) == 1 and (len(messages) == 1 or isinstance(failure, Truncated))
        if alone and isinstance(failure, ContentTooLong) and can_be_split(messages, failure):
            self._planned.append(_Planned(messages, failure=failure))
        elif len(messages) == 1 or not users or self._calls > MAX_CALLS:  # the first call does not count as halving
            self._guilty += _guilty(messages, failure)
        elif len(users) == 1:
            # A reply cannot be tried without its question: if the question passes alone, the reply is at fault.
            place = users[0]
            rest = messages[:place] + messages[place + 1 :]
            self._planned.append(_Planned(messages[place : place + 1], _guilty(rest, failure)))
        else:
            middle = users[len(users) // 2]
            self._planned += [_Planned(messages[middle:]), _Planned(messages[:middle])]


def _runs(claim: Claim) -> list[tuple[Message, ...]]:
    """The claim's messages in parts: those whose replies were no update are tried again without newer ones."""
    runs = groupby(claim.messages, key=lambda message: message.identity in claim.formless)
    return [tuple(run) for _, run in runs] or [()]


def _guilty(messages: tuple[Message, ...], failure: Failure) -> tuple[Guilty, ...]:
    return tuple(Guilty(message.identity, failure.code, str(failure)) for message in messages)
