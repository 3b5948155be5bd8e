"""Sending batches: requests of claims that may wait are gathered for a moment and sent to the endpoint as one batch.

Until the batch is created, the worker holds its claims, as during a call. A worker that dies before that loses only
time: the claims return when their leases expire, and the results of an unrecorded batch are never read.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson

from memd.errors import ContentRefused, ContentTooLong
from memd.events import Event, logger
from memd.extraction.batch.protocol import Batches
from memd.extraction.protocol import Request
from memd.inbox.claim import Claim
from memd.workers.circuit import Circuit
from memd.workers.resources import Resources

GATHER_S = 0.25
"""Seconds that a request waits for others."""

MAX_BYTES = 64_000_000
"""Bytes of one batch; the endpoint accepts four times as much."""


@dataclass(frozen=True, slots=True)
class AskAlone:
    """The endpoint refused the batch because of one request without naming it: each request becomes a call."""


@dataclass(frozen=True, slots=True)
class _Gathered:
    claim_id: str
    params: dict[str, Any]
    size: int
    sent: asyncio.Future[str | AskAlone]


class BatchSender:
    """Gathers requests, and sends them when GATHER_S is over or the batch is full."""

    def __init__(self, resources: Resources, circuit: Circuit) -> None:
        self._on = resources.settings.extraction.mode == "batch" and resources.batches is not None
        self._largest = resources.settings.drain.concurrency
        self._batches = resources.batches
        self._circuit = circuit
        self._gathered: list[_Gathered] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._log = logger()

    def wants(self, claim: Claim) -> bool:
        """Whether a claim joins a batch: not if it is urgent, may kill its worker, or had a reply that is no update."""
        return self._on and not claim.urgent and not claim.suspect and not claim.formless

    def join(self, claim_id: str, request: Request) -> asyncio.Future[str | AskAlone]:
        """Add a request. The future's result is the id of its batch; it raises the error of the endpoint's call."""
        assert self._batches is not None  # noqa: S101  (`wants` says so)
        loop = asyncio.get_running_loop()
        params = self._batches.params(request)
        joined = _Gathered(claim_id, params, len(orjson.dumps(params)), loop.create_future())
        if self._gathered and sum(row.size for row in self._gathered) + joined.size > MAX_BYTES:
            self._send()
        self._gathered.append(joined)
        if len(self._gathered) >= self._largest:
            self._send()
        elif len(self._gathered) == 1:
            loop.call_later(GATHER_S, self._send_if_first, joined)
        return joined.sent

    async def aclose(self) -> None:
        """Cancel the batches that are being sent."""
        for task in tuple(self._sending):
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    def _send_if_first(self, joined: _Gathered) -> None:
        if self._gathered and self._gathered[0] is joined:
            self._send()

    def _send(self) -> None:
        gathered, self._gathered = self._gathered, []
        rows = [row for row in gathered if not row.sent.done()]
        if not rows:
            return
        assert self._batches is not None  # noqa: S101  (as in `join`)
        task = asyncio.get_running_loop().create_task(self._create(self._batches, rows))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _create(self, batches: Batches, rows: list[_Gathered]) -> None:
        """Create one batch of all rows, and end the future of each."""
        caller = next((row.claim_id for row in rows if self._circuit.is_probe(row.claim_id)), rows[0].claim_id)
        requests = [(row.claim_id, row.params) for row in rows]
        sent: str | AskAlone | BaseException
        try:
            sent = await self._circuit.call(caller, lambda: batches.create(requests))
            self._log.info(Event.BATCH_SENT, batch=sent, requests=len(rows))
        except (ContentRefused, ContentTooLong) as error:
            sent = AskAlone()
            self._log.warning(Event.BATCH_FAILED, code=error.code, requests=len(rows))
        except (asyncio.CancelledError, Exception) as error:  # noqa: BLE001  (each claim's life judges it as its own)
            sent = error
        for row in rows:
            _end(row.sent, sent)


def _end(future: asyncio.Future[str | AskAlone], sent: str | AskAlone | BaseException) -> None:
    if future.done():  # its claim was lost or released meanwhile
        return
    if isinstance(sent, asyncio.CancelledError):  # the worker stops: the claims go back
        future.cancel()
    elif isinstance(sent, BaseException):
        future.set_exception(sent)
    else:
        future.set_result(sent)
