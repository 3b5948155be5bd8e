"""Asking the extractor: by a call through the circuit breaker, by joining a batch, or from a batch's answer."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any, TypeVar

from memd.errors import ClaimLost, ExtractionFailed, NotReady, NoUpdate
from memd.extraction.batch import results
from memd.extraction.protocol import Extraction, Request
from memd.inbox import verbs
from memd.inbox.bell import JOB_TIMEOUT_S
from memd.workers.batch.send import AskAlone, BatchSender
from memd.workers.circuit import Circuit
from memd.workers.learning import Learning
from memd.workers.outcome import STOPPING, UNFINISHED, Deferred, Lost, Retry
from memd.workers.repair import repaired
from memd.workers.resources import Resources
from memd.workers.steps import Answered, Work

T = TypeVar("T")

LAST_CALL_S = JOB_TIMEOUT_S - 20
"""Seconds of a drain within which each of its calls must end, so that commits have time before RQ ends the drain. The
parts of one claim may take longer: the next drain asks for the rest."""


class Asking:
    """The requests of all claims in hand. A claim has at most one in flight."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._extractor = resources.extractor
        self._settings = resources.settings.extraction
        self.circuit = Circuit(resources)
        self._learning = Learning(resources)
        self._sender = BatchSender(resources, self.circuit)
        self._in_flight: dict[str, asyncio.Future[Any]] = {}
        self._stopping = False
        self._started = time.monotonic()

    def stop(self) -> None:
        """Cancel all requests and make no further ones; their claims return to pending and cost no attempt."""
        self._stopping = True
        for request in self._in_flight.values():
            request.cancel()

    def lose(self, claim_id: str) -> None:
        """Cancel the request of a claim that is no longer ours."""
        if request := self._in_flight.get(claim_id):
            request.cancel()

    async def aclose(self) -> None:
        """Cancel batches that are being sent."""
        await self._sender.aclose()

    async def ask(self, work: Work) -> Answered | Deferred | Retry | Lost:
        """The extraction of these messages, or the claim's outcome if there is no extraction yet. Counts the tokens.

        A reply that is no update is repaired: the request is made once more, with the error named. Raises
        ExtractionFailed.
        """
        return await repaired(work, self._ask_once, self._note_formless)

    async def _ask_once(self, work: Work) -> Answered | Deferred | Retry | Lost:
        answer = work.part.progress.answer
        if answer is not None and (extraction := results.kept(answer, work.new)):  # its cost was counted with its call
            return Answered(work, extraction)
        from_batch = has_paid_answer(work)
        try:
            reply = await self._read(work) if from_batch else await self._request(work)
        except ExtractionFailed as error:
            if error.usage is not None:
                work.part.spend(self._settings.model, error.usage, batch=from_batch)
            raise
        if not isinstance(reply, Extraction):
            return reply
        work.part.spend(reply.model, reply.usage, batch=from_batch)
        return Answered(work, reply)

    async def _read(self, work: Work) -> Extraction:
        """The extraction in a batch's answer. One that is no update is never read again. Raises ExtractionFailed."""
        progress = work.part.progress
        assert progress.answer is not None  # noqa: S101  (has_paid_answer said so)
        try:
            return results.read(progress.answer, work.new)
        except NoUpdate as error:
            progress.answer = None
            failure = await self.circuit.formless(work.part.claim.id, error)
            if failure is not error:  # the endpoint is at fault, so the reply does not count
                await self._note_formless(work)
            raise failure from None

    async def _note_formless(self, work: Work) -> None:
        """Keep the counts with the claim. Raises ClaimLost, InboxUnavailable."""
        with suppress(NotReady):  # functions of an older version: the counts are kept while the claim is in hand
            if not await self._resources.send(verbs.note_formless(work.part.claim.id, work.part.progress.formless)):
                raise ClaimLost("the claim is somebody else's by now")

    async def _request(self, work: Work) -> Extraction | Deferred | Retry | Lost:
        if self._stopping:
            return STOPPING
        if work.part.is_whole and not work.place and not work.repair and self._sender.wants(work.part.claim):
            sent = await self._send_in_batch(work)
            if not isinstance(sent, AskAlone):
                return sent
        return await self._call(work)

    async def _send_in_batch(self, work: Work) -> Deferred | AskAlone | Retry | Lost:
        request = work.request(self._resources.settings, work.part.claim.now)
        sent = await self._result(work, self._sender.join(work.part.claim.id, request))
        return Deferred(sent, results.fingerprint(work.new, self._settings.model)) if isinstance(sent, str) else sent

    async def _call(self, work: Work) -> Extraction | Retry | Lost:
        if self._stopping:
            return STOPPING
        if time.monotonic() - self._started > LAST_CALL_S - self._settings.deadline_s:
            return UNFINISHED
        request = work.request(self._resources.settings, work.part.claim.now)
        call = self._learning.call(lambda: self.circuit.call(work.part.claim.id, lambda: self._extract(work, request)))
        return await self._result(work, asyncio.ensure_future(call))

    async def _extract(self, work: Work, request: Request) -> Extraction:
        """One call, counted by model and time; one that failed also by its code. Raises ExtractionFailed."""
        started = time.monotonic()
        code = ""
        try:
            return await self._extractor.extract(request)
        except ExtractionFailed as error:
            code = error.code
            raise
        finally:
            work.part.time_call(self._settings.model, time.monotonic() - started, code)

    async def _result(self, work: Work, request: asyncio.Future[T]) -> T | Retry | Lost:
        """The result of a request, or the claim's outcome when the request was cancelled by `stop` or `lose`."""
        claim_id = work.part.claim.id
        self._in_flight[claim_id] = request
        try:
            return await request
        except asyncio.CancelledError:
            if not request.cancelled():  # the claim's own task is cancelled
                raise
            return STOPPING if self._stopping else Lost()
        finally:
            del self._in_flight[claim_id]


def has_paid_answer(work: Work) -> bool:
    """Whether there is a stored answer for exactly these messages, which saves a call."""
    answer = work.part.progress.answer
    return answer is not None and results.fits(answer, work.new)
