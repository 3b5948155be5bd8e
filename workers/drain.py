"""The job behind the bell: claims due keys and works on many at once, until nothing is due or its slice is over."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from memd import config
from memd.config import Settings
from memd.context import WIRE_VERSION
from memd.errors import MemdError
from memd.events import Event, logger
from memd.extraction import endpoint, open_batches, open_extractor
from memd.inbox import verbs
from memd.inbox.claim import Claim, Claims
from memd.inbox.connection import connect, send
from memd.memory.gates import orders
from memd.memory.store.json_store import open_store
from memd.push import redaction
from workers.batch.polling import Polling
from workers.life import Life

POLL_S = 0.025
"""How long a drain with room waits at most before it looks again; what is due later is known to the millisecond."""

LOOK_S = 1.0
"""How often a drain looks whether a batch is to be asked for."""

GATHER_S = 0.002
"""How long ended claims are gathered before the drain claims again, so that one call fills many places."""

THREADS = 8
GRACE_S = 2.0
"""How long running commits may take once the drain is told to stop; model calls are ended at once."""

_settings: Settings | None = None


def configure(settings: Settings) -> None:
    """Set the settings that drains of this process (and its forked children) run with."""
    global _settings  # noqa: PLW0603  (RQ calls `drain` with what is stored in Redis; settings do not belong there)
    _settings = settings


def prepare() -> None:
    """Do once what each forked drain would have to do anew: a quarter of a second of patterns to compile."""
    redaction.prepare()
    orders.prepare()


def drain(wire: str) -> None:
    """What a bell runs. `wire`: the inbox version it was rung for; another one is left to its own workers."""
    if wire != str(WIRE_VERSION):
        return
    settings = _settings or config.load().settings
    asyncio.run(Drain(settings).run())


class Drain:
    """One run: `run` returns when nothing is due any more, the slice is over, or it was told to stop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._client = connect(settings)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="drain")
        extractor = open_extractor(settings.extraction, settings.drain.concurrency)
        batches = open_batches(settings.extraction, settings.drain.concurrency)
        self._life = Life(settings, self._client, open_store(settings), extractor, self._threads, batches)
        self._polling = Polling(settings, self._client, batches, self._life.in_thread)
        self._look_s = min(LOOK_S, settings.extraction.batch_poll_s)
        self._looking: asyncio.Task[None] | None = None
        self._looked = -math.inf
        self._running: dict[asyncio.Task[None], Claim] = {}
        self._endpoint = endpoint(settings.extraction)
        self._worker = f"{socket.gethostname()}:{os.getpid()}"
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        """Set when a claim's work has ended, or we are told to stop: looking at each of them would cost more."""
        self._alone = False
        self._log = logger()

    async def run(self) -> None:
        """Claim and work until done; whatever is still in hand at the end is given back."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self._stop)
        leases = asyncio.create_task(self._keep_leases())
        try:
            await self._work()
        except MemdError as error:  # the inbox is out of reach: what runs goes on, and its leases decide
            self._log.warning(Event.DRAIN_ENDED, code=type(error).__name__)
        finally:
            await self._finish()
            leases.cancel()
            await self._life.aclose()
            self._threads.shutdown()
            self._client.close()

    def _stop(self) -> None:
        self._stopping.set()
        self._changed.set()
        self._life.hand_back()

    async def _work(self) -> None:
        started = idle_since = time.monotonic()
        while not self._stopping.is_set() and time.monotonic() - started < self._settings.drain.slice_s:
            self._changed.clear()
            self._look_at_batches()
            claims = await self._top_up()
            if self._running:
                idle_since = time.monotonic()
            elif time.monotonic() - idle_since >= self._settings.drain.linger_s and not self._is_looking():
                return
            await self._wait(claims)

    def _look_at_batches(self) -> None:
        """Ask for batches that are out, beside everything else."""
        if not self._is_looking() and time.monotonic() - self._looked >= self._look_s:
            self._looked = time.monotonic()
            self._looking = asyncio.create_task(self._polling.look())

    def _is_looking(self) -> bool:
        return self._looking is not None and not self._looking.done()

    async def _top_up(self) -> Claims | None:
        """Claim as much as there is room for; None when there is none."""
        room = self._settings.drain.concurrency - len(self._running)
        if room <= 0 or self._alone:
            return None
        call = verbs.claim(self._settings, room, len(self._running), self._worker, self._endpoint)
        loop = asyncio.get_running_loop()
        claims = await loop.run_in_executor(self._threads, send, self._client, call)
        for claim in claims.taken:
            if claims.breaker == "half-open":
                self._life.gate.probe(claim.id)
            task = loop.create_task(self._life.run(claim))
            self._running[task] = claim
            task.add_done_callback(self._ended)
        # A suspect may kill its worker, so it is only claimed by a drain that holds nothing else, nor takes any more.
        self._alone = bool(claims.suspects and self._running) or any(claim.suspect for claim in claims.taken)
        return claims

    def _ended(self, task: asyncio.Task[None]) -> None:
        claim = self._running.pop(task)
        self._changed.set()
        if not self._running:
            self._alone = False
        if not task.cancelled() and (error := task.exception()):
            # `Life.run` settles everything it can; what is left is ours to rescue by the lease.
            self._log.error(Event.CLAIM_LOST, claim=claim.id, exc_info=error)

    async def _wait(self, claims: Claims | None) -> None:
        """Wait until there may be something to claim: room, a due time, or a push that made a key due at once."""
        pause = POLL_S
        if claims and claims.next_due_ms is not None and not claims.suspects and claims.breaker == "closed":
            pause = min(pause, max(0.001, (claims.next_due_ms - claims.now_ms) / 1000))
        if self._running:
            timeout = None if claims is None and not self._stopping.is_set() else pause
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), timeout)
            await asyncio.sleep(GATHER_S)
        else:
            await asyncio.sleep(pause)

    async def _keep_leases(self) -> None:
        """Renew the leases of all claims in hand, every third of a lease."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._settings.drain.lease_s / 3)
            ids = [claim.id for claim in self._running.values()]
            if not ids:
                continue
            try:
                held = await loop.run_in_executor(self._threads, send, self._client, verbs.extend(ids))
            except MemdError as error:  # tried again a third of a lease later; the commit asks once more
                self._log.warning(Event.CLAIM_LOST, code=type(error).__name__)
                continue
            for claim_id, ours in zip(ids, held, strict=True):
                if not ours:
                    self._life.lose(claim_id)

    async def _finish(self) -> None:
        """Let what runs come to its end; told to stop, only commits are waited for, and not for long."""
        if self._looking is not None:
            self._looking.cancel()  # what it has not handed over is asked for again
            await asyncio.gather(self._looking, return_exceptions=True)
        if not self._running:
            return
        timeout = GRACE_S if self._stopping.is_set() else None
        if timeout is None:
            stop = asyncio.ensure_future(self._stopping.wait())
            while self._running and not stop.done():
                await asyncio.wait({*self._running, stop}, return_when=asyncio.FIRST_COMPLETED)
            stop.cancel()
            timeout = GRACE_S
        if self._running:
            await asyncio.wait(set(self._running), timeout=timeout)
