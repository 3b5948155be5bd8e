"""Batching: requests of claims that may wait are gathered for a moment and sent as one batch.

Until the batch is made its claims are in hand as in any call. A worker that dies before has lost nothing but time: its
claims come back by their leases, and what the endpoint may answer to a batch that nobody knows of is never read.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import orjson

from memd.config import Settings
from memd.errors import ContentRefused, ContentTooLong
from memd.events import Event, logger
from memd.extraction.protocol import Batches, Request
from memd.inbox.claim import Claim
from workers.gate import Gate

GATHER_S = 0.25
"""How long a request waits for others."""

MAX_BYTES = 64_000_000
"""Of one batch; the endpoint takes four times as much."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    claim_id: str
    params: dict[str, Any]
    size: int
    batch: asyncio.Future[str | None]


class Batching:
    """Gathers requests, and sends them when a moment is over or there is no room for more."""

    def __init__(self, settings: Settings, batches: Batches | None, gate: Gate) -> None:
        self._on = settings.extraction.mode == "batch" and batches is not None
        self._largest = settings.drain.concurrency
        self._batches = batches
        self._gate = gate
        self._waiting: list[_Waiting] = []
        self._sending: set[asyncio.Task[None]] = set()
        self._log = logger()

    def wants(self, claim: Claim) -> bool:
        """Whether a claim goes by batch: not what was asked for now, nor what may kill its worker."""
        return self._on and not claim.urgent and not claim.suspect

    def join(self, claim_id: str, request: Request) -> asyncio.Future[str | None]:
        """Add a request. What comes of it: the id of its batch, None when the batch as a whole was refused, or the
        ExtractionFailed of the call that was to make it."""
        assert self._batches is not None  # noqa: S101 - `wants` has said so
        loop = asyncio.get_running_loop()
        params = self._batches.params(request)
        one = _Waiting(claim_id, params, len(orjson.dumps(params)), loop.create_future())
        if self._waiting and sum(each.size for each in self._waiting) + one.size > MAX_BYTES:
            self._send()
        self._waiting.append(one)
        if len(self._waiting) >= self._largest:
            self._send()
        elif len(self._waiting) == 1:
            loop.call_later(GATHER_S, self._send_if, one)
        return one.batch

    async def aclose(self) -> None:
        """End what is being sent."""
        for task in tuple(self._sending):
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)
        if self._batches is not None:
            await self._batches.aclose()

    def _send_if(self, first: _Waiting) -> None:
        if self._waiting and self._waiting[0] is first:
            self._send()

    def _send(self) -> None:
        gathered, self._waiting = self._waiting, []
        task = asyncio.get_running_loop().create_task(self._make([one for one in gathered if not one.batch.done()]))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _make(self, gathered: list[_Waiting]) -> None:
        """One call for all of them. Whatever comes of it is told to each."""
        if not gathered:
            return
        batches, rows = self._batches, [(one.claim_id, one.params) for one in gathered]
        assert batches is not None  # noqa: S101 - as in `join`
        speaker = next((one.claim_id for one in gathered if self._gate.is_probe(one.claim_id)), gathered[0].claim_id)
        found: str | None = None
        failure: BaseException | None = None
        try:
            found = await self._gate.call(speaker, lambda: batches.create(rows))
            self._log.info(Event.BATCH_SENT, batch=found, requests=len(rows))
        except (ContentRefused, ContentTooLong) as error:  # of one of them, nobody knows which: each is asked alone
            self._log.warning(Event.BATCH_FAILED, code=error.code, requests=len(rows))
        except asyncio.CancelledError as stopped:  # the worker stops: the claims are given back
            failure = stopped
        except Exception as error:  # noqa: BLE001  (what it means is for each claim's life to judge, as of its own call)
            failure = error
        for one in gathered:
            _tell(one.batch, found, failure)


def _tell(future: asyncio.Future[str | None], found: str | None, failure: BaseException | None) -> None:
    if future.done():  # its claim was lost or given back meanwhile
        return
    if isinstance(failure, asyncio.CancelledError):
        future.cancel()
    elif failure is not None:
        future.set_exception(failure)
    else:
        future.set_result(found)
