"""Intake: raw pushes from their lists into the inbox, each taken in by one atomic step."""

from __future__ import annotations

import time
from typing import Any, NamedTuple, cast

import redis

from memd.config import Settings
from memd.errors import MemdError, Rejected
from memd.events import Event, logger
from memd.inbox import verbs
from memd.inbox.connection import Call, Flight, send
from memd.inbox.verbs import raw_lists
from memd.push.filtering import to_context
from memd.push.signal_files import load_patterns
from memd.push.validation import parse_push

PART = 25
"""What is read, and sent, at once."""

ROUND_S = 0.1
ROUNDS_A_TICK = 2
"""After so many rounds the other duties have their turn. A round takes from each list for so long: a flood on one keeps
the others waiting no longer, however large its pushes are."""


class _End(NamedTuple):
    """Why a round cannot go on. `more`: whether another one may find something now."""

    more: bool


class Intake:
    """Takes in every raw list in turn. What cannot be accepted goes to the dead with a code, never away."""

    name = "intake"

    def __init__(self, settings: Settings, client: redis.Redis) -> None:
        self._settings = settings
        self._client = client
        self._lists = raw_lists(settings)
        self._patterns = load_patterns(settings.signals.folder)
        self._pause_s = settings.scheduler.tick_ms / 1000
        self._log = logger(duty=self.name)

    def tick(self) -> float:
        """Take in what is there, up to a share for each list."""
        waiting = self._lists
        for _ in range(ROUNDS_A_TICK):
            waiting = tuple(source for source in waiting if self._take_round(source))
            if not waiting:
                return self._pause_s
        return 0.0

    def _take_round(self, source: str) -> bool:
        """Take in what is at the head; True when there may be more. Stops where another scheduler was faster.

        Each part is read while the server takes in the part before it, and hands out the one behind it: what is not the
        head any more stays.
        """
        part = send(self._client, verbs.raw_heads(source, 0, PART))
        behind = send(self._client, verbs.raw_heads(source, PART, PART)) if len(part) == PART else []
        under_way: tuple[list[bytes], Flight[Any]] | None = None
        until = time.monotonic() + ROUND_S  # from here on: one part is taken in however long the server took to answer
        try:
            while part and time.monotonic() < until:
                calls: list[Call[Any]] = [self._call(raw, source) for raw in part]
                if under_way is not None:
                    landed = self._land(source, *under_way)
                    if isinstance(landed, _End):
                        return landed.more
                    behind = landed
                under_way = part, Flight(self._client, [*calls, verbs.raw_heads(source, len(behind), PART)])
                part = behind
            if under_way is not None and isinstance(landed := self._land(source, *under_way), _End):
                return landed.more
        finally:  # what was sent and not waited for is taken in or still there: the next look tells
            if under_way is not None:
                under_way[1].call_off()
        return bool(part)

    def _land(self, source: str, heads: list[bytes], sent: Flight[Any]) -> list[bytes] | _End:
        """What stands behind the next part, when the server has taken in this one as a whole."""
        *answers, behind = sent.land()
        for raw, answer in zip(heads, answers, strict=True):
            if isinstance(answer, Rejected):
                # The functions refused what the validator let pass. The pushes behind it saw another head and stayed.
                send(self._client, verbs.take_dead(raw, source, answer))
                return _End(more=True)
            if isinstance(answer, MemdError):
                raise answer
            if not answer:
                return _End(more=False)
        if isinstance(behind, MemdError):
            raise behind
        return cast("list[bytes]", behind)

    def _call(self, raw: bytes, source: str) -> Call[bool]:
        if not self._settings.enabled:
            return verbs.take_skipped(raw, source, "disabled")
        try:
            context = to_context(parse_push(raw, self._settings.client), self._patterns)
        except Rejected as error:  # kept in the dead as it came, with the code
            self._log.warning(Event.RAW_PUSH_DEAD, code=error.code, bytes=len(raw))
            return verbs.take_dead(raw, source, error)
        if not context.messages:
            self._log.info(Event.RAW_PUSH_SKIPPED, reason="nothing_left", dropped=context.dropped)
            return verbs.take_skipped(raw, source, "nothing_left", context.dropped)
        return verbs.take(raw, source, context)
