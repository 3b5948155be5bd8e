"""Batches of the Messages API by Anthropic's SDK: half the price for what may wait up to a day.

The addresses are built here, not taken from the answers: the key goes nowhere but to the endpoint that was configured.
Importing this module imports the SDK.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import anthropic
import httpx2
from anthropic.types.messages import MessageBatch

from memd.config import ExtractionSettings
from memd.errors import ModelUnavailable
from memd.extraction import failures
from memd.extraction.anthropic import CONNECT_S, open_lines, request_options, translated
from memd.extraction.batch.protocol import BatchState
from memd.extraction.batch.results import BatchResult, parse_line
from memd.extraction.prompt import build
from memd.extraction.protocol import Request

NOT_FOUND = "model_not_found"
"""What a 404 is called in `failures`."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class AnthropicBatches:
    """The batches of one endpoint. One call, one answer, no retries, a deadline for each."""

    def __init__(self, settings: ExtractionSettings, largest: int) -> None:
        """`largest`: requests of one batch; its results may have so many times `max_reply_bytes`."""
        self._settings = settings
        self._options = request_options(settings)
        self._max_bytes = largest * settings.max_reply_bytes
        self._client: anthropic.AsyncAnthropic | None = None

    def params(self, request: Request) -> dict[str, Any]:
        """The request of one extraction: the same as for a call."""
        prompt = build(request, datetime.now(UTC).date())
        return {**self._options, "messages": [{"role": "user", "content": prompt}]}

    async def create(self, requests: Sequence[tuple[str, dict[str, Any]]]) -> str:
        """Send (id, params) as one batch; answers its id. Raises ExtractionFailed as a call does."""
        rows: Any = [{"custom_id": name, "params": params} for name, params in requests]
        async with self._asking() as client:
            batch = await client.messages.batches.create(requests=rows, timeout=self._timeout)
        return _id_of(batch)

    async def state(self, batch_id: str) -> BatchState:
        """How far a batch is; `gone` when the endpoint does not know it, or its results, any more."""
        try:
            async with self._asking() as client:
                batch = await client.messages.batches.retrieve(batch_id, timeout=self._timeout)
        except ModelUnavailable as error:
            if error.code == NOT_FOUND:
                return "gone"
            raise
        _id_of(batch)
        if batch.archived_at is not None:
            return "gone"
        return "ended" if batch.processing_status == "ended" else "in_progress"

    async def results(self, batch_id: str) -> list[BatchResult]:
        """What became of its requests, as far as there are lines that can be read. Raises ExtractionFailed."""
        async with self._asking() as client:
            answer = await client.get(
                f"/v1/messages/batches/{batch_id}/results",
                cast_to=httpx2.Response,
                options={"headers": {"accept": "application/x-jsonl"}, "timeout": self._timeout},
            )
        found = (parse_line(line, self._settings.max_reply_bytes) for line in answer.content.splitlines() if line)
        return [result for result in found if result is not None]

    async def cancel(self, batch_id: str) -> None:
        """Ask for no more answers; what was answered before is still among the results."""
        async with self._asking() as client:
            await client.messages.batches.cancel(batch_id, timeout=self._timeout)

    async def delete(self, batch_id: str) -> None:
        """Have the endpoint forget a batch that has ended, with its requests and results."""
        async with self._asking() as client:
            await client.messages.batches.delete(batch_id, timeout=self._timeout)

    async def aclose(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.close()

    @property
    def _timeout(self) -> httpx2.Timeout:
        deadline_s = self._settings.deadline_s
        return httpx2.Timeout(deadline_s, connect=min(CONNECT_S, deadline_s))

    @asynccontextmanager
    async def _asking(self) -> AsyncIterator[anthropic.AsyncAnthropic]:
        """The client, under the total deadline; its errors are translated."""
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                yield self._opened()
        except TimeoutError:
            raise failures.unavailable("timeout") from None
        except anthropic.AnthropicError as error:
            raise translated(error) from None

    def _opened(self) -> anthropic.AsyncAnthropic:
        """The client, opened with the first use: most drains have no batch to ask for."""
        if self._client is None:
            lines = open_lines(self._settings, 1, self._max_bytes)
            if not lines:
                raise failures.unavailable("no_key")
            self._client = lines[0].client
        return self._client


def _id_of(batch: object) -> str:
    """The id of a batch, as the endpoint calls it; it becomes a part of addresses and of Redis names."""
    found = batch.id if isinstance(batch, MessageBatch) else None
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise failures.unavailable("not_the_api")
    return found
