"""The Message Batches API: half the price for extractions that may wait up to a day.

The addresses are built here, not taken from responses, so the key is only sent to the configured endpoint. Importing
this module imports httpx2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import httpx2

from memd.config import ExtractionSettings
from memd.errors import ModelUnavailable
from memd.extraction import envelope, failures
from memd.extraction.anthropic import request_options
from memd.extraction.anthropic_client import MESSAGES, MessagesClient, check, open_clients
from memd.extraction.batch.protocol import BatchState
from memd.extraction.batch.results import BatchResult, parse_line
from memd.extraction.learnt import Learnt
from memd.extraction.prompt import build
from memd.extraction.protocol import Request
from memd.extraction.transport import Pool

BATCHES = f"{MESSAGES}/batches"
_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class AnthropicBatches:
    """The batches of one endpoint. Each method is one call with the deadline of the settings, without retries."""

    def __init__(self, settings: ExtractionSettings, largest: int, learnt: Learnt) -> None:
        """`largest`: requests in one batch; its results may have that many times `max_reply_bytes`.

        `learnt`: what the endpoint was found not to take.

        Opens no connection. Raises ConfigError for a key or address that cannot be sent.
        """
        check(settings)
        self._settings = settings
        self._learnt = learnt
        self._max_bytes = largest * settings.max_reply_bytes
        self._clients: Pool[MessagesClient] | None = None

    def params(self, request: Request) -> dict[str, Any]:
        """The body of one extraction's request, the same as of a single call."""
        prompt = build(request, request.today)
        options = request_options(self._settings, self._learnt.names, request.extras)
        return {**options, "messages": [{"role": "user", "content": prompt}]}

    async def create(self, requests: Sequence[tuple[str, dict[str, Any]]]) -> str:
        """Send (id, params) pairs as one batch; returns the id of the batch. Raises ExtractionFailed."""
        rows = [{"custom_id": request_id, "params": params} for request_id, params in requests]
        return _id_of(_read(await self._send("POST", "", {"requests": rows})))

    async def state(self, batch_id: str) -> BatchState:
        """The state of a batch; `gone` when the endpoint no longer has it or its results. Raises ExtractionFailed."""
        try:
            batch = _read(await self._send("GET", f"/{batch_id}"))
        except ModelUnavailable as error:
            if error.code == failures.NOT_FOUND:
                return "gone"
            raise
        _id_of(batch)
        if batch.get("archived_at") is not None:
            return "gone"
        return "ended" if batch.get("processing_status") == "ended" else "in_progress"

    async def results(self, batch_id: str) -> list[BatchResult]:
        """The readable results of a batch that has ended. Raises ExtractionFailed."""
        answer = await self._send("GET", f"/{batch_id}/results", accept="application/x-jsonl")
        parsed = (parse_line(line, self._settings.max_reply_bytes) for line in answer.content.splitlines() if line)
        return [result for result in parsed if result is not None]

    async def cancel(self, batch_id: str) -> None:
        """Stop processing the batch; the results so far are kept. Raises ExtractionFailed."""
        await self._send("POST", f"/{batch_id}/cancel")

    async def delete(self, batch_id: str) -> None:
        """Delete a batch that has ended, with its requests and results. Raises ExtractionFailed."""
        await self._send("DELETE", f"/{batch_id}")

    async def aclose(self) -> None:
        """Close the connections."""
        if self._clients is not None:
            await self._clients.aclose()

    async def _send(
        self, method: str, path: str, body: object = None, *, accept: str = "application/json"
    ) -> httpx2.Response:
        """One request under the total deadline. The client is opened at its first use: most drains have no batch."""
        if self._clients is None:
            self._clients = open_clients(self._settings, 1, self._max_bytes)
        if self._clients is None:
            raise failures.unreached("no_key")
        deadline_s = self._settings.deadline_s
        async with self._clients.call(deadline_s) as client:
            return await client.send(method, BATCHES + path, deadline_s, body, accept=accept)


def _read(answer: httpx2.Response) -> dict[str, Any]:
    """The JSON object of a response. Raises ExtractionFailed for anything else."""
    return envelope.parse(answer.content, answer.headers.get("content-type", ""))


def _id_of(batch: dict[str, Any]) -> str:
    """The endpoint's id of a batch, checked, as it becomes part of addresses and of Redis names."""
    batch_id = batch.get("id")
    if not isinstance(batch_id, str) or not _ID.fullmatch(batch_id):
        raise failures.unavailable("not_the_api")
    return batch_id
