"""Intake: raw pushes from their lists into the inbox, each taken in by one atomic step."""

from __future__ import annotations

import redis

from memd import inbox
from memd.config import Settings
from memd.connection import Call, Flight, send
from memd.errors import MemdError, Rejected
from memd.events import Event, logger
from memd.filtering import to_context
from memd.inbox import raw_lists
from memd.signal_files import load_patterns
from memd.validation import parse_push

BATCH = 100
PART = 25
"""Of a batch, what is sent at once."""

BATCHES_A_TICK = 10
"""After so many rounds the other duties have their turn. A round takes one batch of each list, so that a flood on one
keeps the others waiting for a batch at most."""


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
        for _ in range(BATCHES_A_TICK):
            waiting = tuple(source for source in waiting if self._take_batch(source))
            if not waiting:
                return self._pause_s
        return 0.0

    def _take_batch(self, source: str) -> bool:
        """Take in what is at the head; True when there may be more. Stops where another scheduler was faster.

        Each part is read while the server takes in the part before it: what is not the head any more stays.
        """
        heads = send(self._client, inbox.raw_heads(source, BATCH))
        under_way: tuple[list[bytes], Flight[bool]] | None = None
        try:
            for start in range(0, len(heads), PART):
                part = heads[start : start + PART]
                calls = [self._call(raw, source) for raw in part]
                if under_way is not None and (end := self._end(source, *under_way)) is not None:
                    return end
                under_way = part, Flight(self._client, calls)
            if under_way is not None and (end := self._end(source, *under_way)) is not None:
                return end
        finally:  # what was sent and not waited for is taken in or still there: the next look tells
            if under_way is not None:
                under_way[1].call_off()
        return len(heads) == BATCH

    def _end(self, source: str, heads: list[bytes], sent: Flight[bool]) -> bool | None:
        """None when the server has taken in a part as a whole; else whether the list may hold more to take in now."""
        for raw, answer in zip(heads, sent.land(), strict=True):
            if isinstance(answer, Rejected):
                # The functions refused what the validator let pass. The pushes behind it saw another head and stayed.
                send(self._client, inbox.take_dead(raw, source, answer))
                return True
            if isinstance(answer, MemdError):
                raise answer
            if not answer:
                return False
        return None

    def _call(self, raw: bytes, source: str) -> Call[bool]:
        if not self._settings.enabled:
            return inbox.take_skipped(raw, source, "disabled")
        try:
            context = to_context(parse_push(raw, self._settings.client), self._patterns)
        except Rejected as error:  # kept in the dead as it came, with the code
            self._log.warning(Event.RAW_PUSH_DEAD, code=error.code, bytes=len(raw))
            return inbox.take_dead(raw, source, error)
        if not context.messages:
            self._log.info(Event.RAW_PUSH_SKIPPED, reason="nothing_left", dropped=context.dropped)
            return inbox.take_skipped(raw, source, "nothing_left", context.dropped)
        return inbox.take(raw, source, context)
