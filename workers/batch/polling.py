"""Polling: batches that are out are asked for from time to time, and their answers handed to the keys that wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import redis

from memd.config import Settings
from memd.errors import ExtractionFailed, MemdError, ModelUnavailable
from memd.events import Event, logger
from memd.extraction import address
from memd.extraction.batch.results import Result, pack
from memd.extraction.protocol import Batches
from memd.inbox import batches as kept
from memd.inbox.batches import Polled
from memd.inbox.breaker import MAYBE_CONTENT
from memd.inbox.connection import Call, send
from workers.spending import stats

CALLED_FOR = MAYBE_CONTENT | {"batch_expired"}
"""Failures after which a request goes into no batch again: it has waited for a day, or a call and its breaker have to
tell whether the endpoint or the content is to blame."""

T = TypeVar("T")
InThread = Callable[..., Awaitable[Any]]


class Polling:
    """One look at all batches that are to be asked for. Cut short anywhere, the next look does the rest."""

    def __init__(self, settings: Settings, client: redis.Redis, batches: Batches | None, in_thread: InThread) -> None:
        self._client = client
        self._batches = batches
        self._in_thread = in_thread
        self._address = address(settings.extraction)
        self._model = settings.extraction.model
        self._log = logger()

    async def look(self) -> None:
        """Ask for each batch whose time has come. Raises nothing: what failed is tried at the batch's next time."""
        try:
            # The functions also give up what is too old, whichever endpoint it is of.
            for batch in await self._send(kept.poll(self._address)):
                await self._ask(batch)
        except MemdError as error:  # the inbox is out of reach
            self._log.warning(Event.BATCH_FAILED, code=type(error).__name__)

    async def _ask(self, batch: Polled) -> None:
        """Ask for one batch; when the endpoint fails, the others are asked for all the same."""
        try:
            await self._settle(batch)
        except ExtractionFailed as error:
            self._log.warning(Event.BATCH_FAILED, code=error.code, batch=batch.id)

    async def _settle(self, batch: Polled) -> None:
        if self._batches is None:
            return
        match await self._batches.state(batch.id):
            case "gone":
                await self._send(kept.again(batch.id))
                self._log.warning(Event.BATCH_GIVEN_UP, batch=batch.id, requests=batch.wanted)
            case "ended":
                await self._collect(self._batches, batch)
            case "in_progress" if batch.wanted == 0:
                await self._batches.cancel(batch.id)

    async def _collect(self, batches: Batches, batch: Polled) -> None:
        results = await batches.results(batch.id)
        ends: Counter[str] = Counter()
        for result in results:
            ends[await self._send(self._handed(batch.id, result))] += 1
        await self._send(kept.again(batch.id))  # those of which there is no line
        self._log.info(Event.BATCH_ENDED, batch=batch.id, **ends)
        if not ends["unknown"]:  # else maybe of a claim that is not recorded yet
            await batches.delete(batch.id)

    def _handed(self, batch_id: str, result: Result) -> Call[str]:
        """What becomes of an answer: to its key, or, when the endpoint is to blame that there is none, asked anew."""
        failure = result.failure
        if isinstance(failure, ModelUnavailable):
            return kept.again(batch_id, result.request_id, urgent=failure.code in CALLED_FOR)
        paid = stats(self._model, result.usage, batch=True) if result.kind == "succeeded" else {}
        return kept.answer(batch_id, result.request_id, pack(result), paid)

    async def _send(self, call: Call[T]) -> T:
        found: T = await self._in_thread(send, self._client, call)
        return found
