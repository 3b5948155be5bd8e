"""The worker's side of the model endpoint's circuit breaker, which all workers share through the inbox.

The breaker's words: closed (calls are made), open (no calls), half-open (one claim, the probe, tries the endpoint).
"""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memd.errors import ContentRefused, ExtractionFailed, MemdError, ModelUnavailable, NoUpdate
from memd.events import Event, logger
from memd.extraction import endpoint
from memd.inbox import breaker
from memd.inbox.breaker import Breaker
from memd.inbox.connection import Call
from memd.workers.resources import Resources

T = TypeVar("T")

REPORT_S = 1.0
"""Seconds between reports of successes, which reset the failure count and show that this host reaches the endpoint."""

UNREPORTED = Breaker("unreported", 0, "")
"""The inbox is unreachable. Nothing is claimed until it is back; held claims depend on their leases."""


class Circuit:
    """Makes calls while the breaker allows them, and reports how they ended."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._endpoint = endpoint(resources.settings.extraction)
        self._host = socket.gethostname()
        self._open_until = 0.0
        self._last_success = 0.0
        self._reported = -math.inf
        self._failing = False
        self._probe = ""
        self._log = logger()

    def probe(self, claim_id: str) -> None:
        """The breaker is half-open, and this claim is the probe."""
        self._probe = claim_id

    def is_probe(self, claim_id: str) -> bool:
        """Whether this claim is the probe."""
        return claim_id == self._probe

    async def call(self, claim_id: str, make: Callable[[], Awaitable[T]]) -> T:
        """Make a call unless the breaker is open. Raises the errors of `make`, and ModelUnavailable with the pause.

        A call that fails while other calls of this worker succeed raises ContentRefused: its content is at fault.
        """
        pause_s = self._open_until - time.monotonic()
        if pause_s > 0 and claim_id != self._probe:
            raise ModelUnavailable("paused", "the endpoint's breaker is open", pause_s)
        started = time.monotonic()
        try:
            result = await make()
        except ModelUnavailable as error:
            raise await self._failed(claim_id, error, started) from None
        except NoUpdate as error:
            raise await self.formless(claim_id, error) from None
        except ExtractionFailed:  # the endpoint works, so the content is at fault
            await self._succeeded(claim_id)
            raise
        await self._succeeded(claim_id)
        return result

    async def formless(self, claim_id: str, error: NoUpdate) -> ExtractionFailed:
        """Report a reply that is no update. Returns the error to raise: ModelUnavailable if the endpoint is unfit.

        Replies that come in batches are reported, too.
        """
        self._last_success = time.monotonic()  # the endpoint works
        self._failing = True  # so that the next update is reported at once
        report = await self._report(breaker.formless(self._endpoint, claim_id, self._host))
        self._end_probe(claim_id)
        if report.state == "closed":
            self._closed(report)
        if report.state not in ("opened", "open"):
            return error
        failure = self._opened(report, breaker.UNFIT)
        failure.usage = error.usage
        return failure

    async def free(self, claim_id: str) -> None:
        """The claim has ended. If it was the probe and made no call, another claim may be the probe."""
        if claim_id == self._probe:
            self._probe = ""
            await self._report(breaker.free(self._endpoint, claim_id, self._host))

    async def _failed(self, claim_id: str, error: ModelUnavailable, started: float) -> ExtractionFailed:
        if error.code in breaker.MAYBE_CONTENT and self._last_success > started and claim_id != self._probe:
            return ContentRefused(error.code, "the endpoint fails on this content while it answers others")
        self._failing = True
        report = await self._report(breaker.trip(self._endpoint, error, self._host))
        if report is UNREPORTED or report.state == "counted":
            return error
        self._end_probe(claim_id)
        return self._opened(report, error.code)

    def _opened(self, report: Breaker, code: str) -> ModelUnavailable:
        """Make no calls until the pause is over. Returns the error for the claim."""
        self._open_until = time.monotonic() + report.pause_s
        if report.state == "opened":
            self._log.warning(Event.MODEL_OUTAGE_BEGAN, code=code, pause_s=round(report.pause_s, 1))
        return ModelUnavailable(code, "the endpoint's breaker is open", report.pause_s)

    def _closed(self, report: Breaker) -> None:
        self._open_until = 0.0
        self._log.info(Event.MODEL_OUTAGE_ENDED, code=report.code)

    async def _succeeded(self, claim_id: str) -> None:
        self._last_success = time.monotonic()
        lately = self._last_success - self._reported < REPORT_S
        if lately and not self._failing and claim_id != self._probe:
            return
        self._reported = self._last_success
        report = await self._report(breaker.close(self._endpoint, claim_id, self._host))
        self._end_probe(claim_id)
        self._failing = False
        if report.state == "closed":
            self._closed(report)

    def _end_probe(self, claim_id: str) -> None:
        if claim_id == self._probe:
            self._probe = ""

    async def _report(self, call: Call[Breaker]) -> Breaker:
        try:
            return await self._resources.send(call)
        except MemdError:  # the parent process logs the outage once
            return UNREPORTED
