"""The gate before the model: this worker's side of the endpoint's breaker."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import redis

from memd.errors import ContentRefused, ExtractionFailed, MemdError, ModelUnavailable
from memd.events import Event, logger
from memd.inbox import breaker
from memd.inbox.breaker import Breaker
from memd.inbox.connection import Call, send

T = TypeVar("T")
InThread = Callable[..., Awaitable[Any]]


class Gate:
    """Lets calls through while the breaker allows them, and reports how they ended."""

    def __init__(self, client: redis.Redis, endpoint: str, in_thread: InThread) -> None:
        self._client = client
        self._endpoint = endpoint
        self._in_thread = in_thread
        self._closed_until = 0.0
        self._last_answer = 0.0
        self._failing = False
        self._probe = ""
        self._log = logger()

    def probe(self, claim_id: str) -> None:
        """The breaker is half-open, and this claim is the one that tries the endpoint."""
        self._probe = claim_id

    def is_probe(self, claim_id: str) -> bool:
        """Whether this claim is the one that tries the endpoint."""
        return claim_id == self._probe

    async def call(self, claim_id: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask, unless the breaker is open. Raises what `ask` raises, and ModelUnavailable with the pause to keep.

        A failure of one call while others of this worker are answered is taken for the content's: ContentRefused.
        """
        rest = self._closed_until - time.monotonic()
        if rest > 0 and claim_id != self._probe:
            raise ModelUnavailable("paused", "the endpoint's breaker is open", rest)
        started = time.monotonic()
        try:
            answer = await ask()
        except ModelUnavailable as error:
            raise await self._failed(claim_id, error, started) from None
        except ExtractionFailed:  # the endpoint answered, if not well: that is this content's affair
            await self._answered(claim_id)
            raise
        await self._answered(claim_id)
        return answer

    async def free(self, claim_id: str) -> None:
        """The claim has ended; if it was the probe and made no call, another one may try."""
        if claim_id == self._probe:
            self._probe = ""
            await self._send(breaker.free(self._endpoint, claim_id))

    async def _failed(self, claim_id: str, error: ModelUnavailable, started: float) -> ExtractionFailed:
        if error.code in breaker.MAYBE_CONTENT and self._last_answer > started and claim_id != self._probe:
            return ContentRefused(error.code, "the endpoint fails on this content while it answers others")
        self._failing = True
        found = await self._send(breaker.trip(self._endpoint, error))
        if found is None or found.state == "counted":
            return error
        if claim_id == self._probe:
            self._probe = ""
        self._closed_until = time.monotonic() + found.pause_s
        if found.state == "opened":
            self._log.warning(Event.MODEL_OUTAGE_BEGAN, code=error.code, pause_s=round(found.pause_s, 1))
        return ModelUnavailable(error.code, "the endpoint's breaker is open", found.pause_s)

    async def _answered(self, claim_id: str) -> None:
        self._last_answer = time.monotonic()
        if not self._failing and claim_id != self._probe:
            return
        found = await self._send(breaker.close(self._endpoint, claim_id))
        if claim_id == self._probe:
            self._probe = ""
        self._failing = False
        if found is not None and found.state == "closed":
            self._closed_until = 0.0
            self._log.info(Event.MODEL_OUTAGE_ENDED, code=found.code)

    async def _send(self, call: Call[Breaker]) -> Breaker | None:
        """None when the inbox is out of reach: then nothing is claimed either, and the claim's lease decides."""
        try:
            found: Breaker = await self._in_thread(send, self._client, call)
        except MemdError as error:
            self._log.warning(Event.OUTAGE_BEGAN, code=type(error).__name__)
            return None
        return found
