"""Collecting batches: polls the endpoint for finished batches and hands their results to the waiting keys."""

from __future__ import annotations

from collections import Counter

from memd.errors import ExtractionFailed, MemdError, ModelUnavailable
from memd.events import Event, logger
from memd.extraction import address
from memd.extraction.batch.protocol import Batches
from memd.extraction.batch.results import BatchResult, pack
from memd.inbox import batches as inbox
from memd.inbox.batches import Polled
from memd.inbox.breaker import MAYBE_CONTENT
from memd.inbox.connection import Call
from memd.workers.resources import Resources
from memd.workers.steps import usage_stats

URGENT = MAYBE_CONTENT | {"batch_expired"}
"""Failures after which a request joins no further batch: it has waited for a day already, or only a call through the
circuit breaker can show whether the endpoint or the content is at fault."""


class BatchCollector:
    """Polls the due batches. After an interruption at any step, the next poll completes the work."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._batches = resources.batches
        self._address = address(resources.settings.extraction)
        self._model = resources.settings.extraction.model
        self._log = logger()

    async def collect(self) -> None:
        """Poll each due batch. Raises nothing: a failed poll is repeated at the batch's next due time."""
        try:
            # The call also gives up batches of any endpoint that are too old.
            for batch in await self._resources.send(inbox.poll(self._address)):
                await self._poll(batch)
        except MemdError as error:  # the inbox is unreachable
            self._log.warning(Event.BATCH_FAILED, code=type(error).__name__)

    async def _poll(self, batch: Polled) -> None:
        """Poll one batch. A failure of the endpoint does not stop the polls of other batches."""
        try:
            if self._batches is not None:
                await self._advance(self._batches, batch)
        except ExtractionFailed as error:
            self._log.warning(Event.BATCH_FAILED, code=error.code, batch=batch.id)

    async def _advance(self, batches: Batches, batch: Polled) -> None:
        match await batches.state(batch.id):
            case "gone":
                await self._resources.send(inbox.again(batch.id))
                self._log.warning(Event.BATCH_GIVEN_UP, batch=batch.id, requests=batch.open_requests)
            case "ended":
                await self._hand_over(batches, batch)
            case "in_progress" if batch.open_requests == 0:
                await batches.cancel(batch.id)

    async def _hand_over(self, batches: Batches, batch: Polled) -> None:
        """Give each result to its key; then the endpoint may delete the batch."""
        ends: Counter[str] = Counter()
        for result in await batches.results(batch.id):
            ends[await self._resources.send(self._move(batch.id, result))] += 1
        await self._resources.send(inbox.again(batch.id))  # requests without a result line
        self._log.info(Event.BATCH_ENDED, batch=batch.id, **ends)
        if not ends["unknown"]:  # an unknown request may belong to a claim that is not recorded yet
            await batches.delete(batch.id)

    def _move(self, batch_id: str, result: BatchResult) -> Call[str]:
        """Give the result to its key. When the endpoint is at fault for a missing result, repeat the request."""
        failure = result.failure
        if isinstance(failure, ModelUnavailable):
            return inbox.again(batch_id, result.request_id, urgent=failure.code in URGENT)
        spent = usage_stats(self._model, result.usage, batch=True) if result.kind == "succeeded" else {}
        return inbox.answer(batch_id, result.request_id, pack(result), spent)
