"""The job behind the bell: claims due keys and works on many at once, until nothing is due or its slice is over."""

from __future__ import annotations

import asyncio
import gc
import math
import signal
import time
from contextlib import suppress
from functools import cache

from memd import config
from memd.config import Settings
from memd.context import FUNCTIONS_VERSION
from memd.errors import MemdError
from memd.events import Event, logger
from memd.extraction import endpoint
from memd.inbox import verbs
from memd.inbox.claim import Claim, Claims
from memd.inbox.workers import own_name
from memd.push import patterns
from memd.push.signals import shared_patterns
from memd.workers.batch.collect import BatchCollector
from memd.workers.remember import Remembering
from memd.workers.resources import Resources
from memd.workers.tracing import exporting

POLL_S = 0.025
"""Most seconds that a drain with room waits before it claims again."""

COLLECT_S = 1.0
"""How often a drain looks for batches whose poll is due."""

GATHER_S = 0.002
"""How long ended claims are gathered before the drain claims again, so that one call fills many places."""

GATHER_A_PLACE_S = 0.0001
"""The same for each place of a drain of which more than half are taken: at most POLL_S, a hundredth of a slow call."""

GRACE_S = 2.0
"""How long running commits may take once the drain is told to stop; model calls are cancelled at once."""

_settings: Settings | None = None
_worker = ""


def configure(settings: Settings, worker: str) -> None:
    """Set the settings and the worker's name for drains of this process and its forked children."""
    global _settings, _worker
    _settings, _worker = settings, worker


@cache
def prepare() -> None:
    """Compile all patterns once, in the parent of the forked drains: in each of these it would cost a second.

    What the parent has loaded is taken from its garbage collector. A drain whose collector looked at all of it would
    copy it, page by page: 50 to 150 ms. Raises ConfigError for patterns of signals that cannot be read.
    """
    shared_patterns(_settings.signals.folder if _settings else None).prepare()
    patterns.prepare()
    gc.collect()
    gc.freeze()


def drain(version: str) -> None:
    """The function of a bell. `version`: of the inbox functions that its worker must know; others leave it alone."""
    if version != str(FUNCTIONS_VERSION):
        return
    settings = _settings or config.load().settings
    with exporting(settings):
        asyncio.run(Drain(settings, _worker or own_name()).run())


class Drain:
    """Claims and works until nothing is due, the slice is over, or it is told to stop."""

    def __init__(self, settings: Settings, worker: str) -> None:
        self._settings = settings
        self._resources = Resources.open(settings)
        self._remembering = Remembering(self._resources)
        self._collector = BatchCollector(self._resources)
        self._collect_s = min(COLLECT_S, settings.extraction.batch_poll_s)
        self._collecting: asyncio.Task[None] | None = None
        self._collected = -math.inf
        self._running: dict[asyncio.Task[None], Claim] = {}
        self._endpoint = endpoint(settings.extraction)
        self._worker = worker
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        """Set when a claim has ended or the drain has to stop. Waiting for each task would cost more."""
        self._alone = False
        self._log = logger()

    async def run(self) -> None:
        """Claim and work until done; claims still held at the end are released."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        leases = asyncio.create_task(self._keep_leases())
        try:
            await self._work()
        except MemdError as error:  # the inbox is unreachable: held claims go on and depend on their leases
            self._log.warning(Event.DRAIN_ENDED, code=type(error).__name__)
        finally:
            await self._finish()
            leases.cancel()
            await self._remembering.asking.aclose()
            await self._resources.aclose()

    def _stop(self) -> None:
        self._stopping.set()
        self._changed.set()
        self._remembering.asking.stop()

    async def _work(self) -> None:
        started = idle_since = time.monotonic()
        while not self._stopping.is_set() and time.monotonic() - started < self._settings.drain.slice_s:
            self._changed.clear()
            self._collect_batches()
            claims = await self._top_up()
            if self._running:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since >= self._settings.drain.linger_s and not self._is_collecting():
                return
            await self._wait(claims)

    def _collect_batches(self) -> None:
        """Start to collect batches in a task of its own, unless one is running."""
        if not self._is_collecting() and time.monotonic() - self._collected >= self._collect_s:
            self._collected = time.monotonic()
            self._collecting = asyncio.create_task(self._collector.collect())

    def _is_collecting(self) -> bool:
        return self._collecting is not None and not self._collecting.done()

    async def _top_up(self) -> Claims | None:
        """Claim as much as there is room for; None when there is no room."""
        room = self._settings.drain.concurrency - len(self._running)
        if room <= 0 or self._alone:
            return None
        claims = await self._resources.send(
            verbs.claim(self._settings, room, len(self._running), self._worker, self._endpoint)
        )
        for claim in claims.taken:
            if claims.breaker == "half-open":
                self._remembering.asking.circuit.probe(claim.id)
            task = asyncio.create_task(self._remembering.run(claim))
            self._running[task] = claim
            task.add_done_callback(self._ended)
        # A suspect may kill its worker, so a drain claims it only when it holds no other claim, and then no more.
        self._alone = bool(claims.suspects and self._running) or any(claim.suspect for claim in claims.taken)
        return claims

    def _ended(self, task: asyncio.Task[None]) -> None:
        claim = self._running.pop(task)
        self._changed.set()
        if not self._running:
            self._alone = False
        if not task.cancelled() and (error := task.exception()):  # a bug of ours: the lease brings the claim back
            self._log.error(Event.CLAIM_LOST, claim=claim.id, exc_info=error)

    async def _wait(self, claims: Claims | None) -> None:
        """Wait until a claim may succeed: there is room, a due time has come, or a push made a key due at once."""
        pause = POLL_S
        if claims and claims.next_due_ms is not None and not claims.suspects and claims.breaker == "closed":
            pause = min(pause, max(0.001, (claims.next_due_ms - claims.now_ms) / 1000))
        if self._running:
            timeout = None if claims is None and not self._stopping.is_set() else pause
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout)
            await asyncio.sleep(self._gather_s())
        else:
            await asyncio.sleep(pause)

    def _gather_s(self) -> float:
        places = self._settings.drain.concurrency
        return min(POLL_S, places * GATHER_A_PLACE_S) if len(self._running) > places / 2 else GATHER_S

    async def _keep_leases(self) -> None:
        """Renew the leases of all claims in hand, every third of a lease."""
        lease_s = self._settings.drain.lease_s
        while True:
            with suppress(MemdError):
                lease_s = await self._resources.send(verbs.lease_s()) or lease_s
            await asyncio.sleep(lease_s / 3)
            ids = [claim.id for claim in self._running.values()]
            if not ids:
                continue
            try:
                held = await self._resources.send(verbs.extend(ids))
            except MemdError as error:  # tried again a third of a lease later; the commit asks once more
                self._log.warning(Event.CLAIM_LOST, code=type(error).__name__)
                continue
            for claim_id, ours in zip(ids, held, strict=True):
                if not ours:
                    self._remembering.asking.lose(claim_id)

    async def _finish(self) -> None:
        """Let running claims end. After a stop request, wait only for commits, at most GRACE_S."""
        if self._collecting is not None:
            self._collecting.cancel()  # batches not handed over yet are polled again later
            await asyncio.gather(self._collecting, return_exceptions=True)
        stop = asyncio.ensure_future(self._stopping.wait())
        while self._running and not stop.done():
            await asyncio.wait({*self._running, stop}, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if self._running:
            await asyncio.wait(set(self._running), timeout=GRACE_S)
