"""The resources that all steps of a drain share: opened once, closed once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import redis

from memd.config import Settings
from memd.extraction import Learnt, open_batches, open_extractor
from memd.extraction.batch.protocol import Batches
from memd.extraction.protocol import Extractor
from memd.inbox.connection import Call, connect, send
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Store
from memd.push.signals import Patterns, shared_patterns
from memd.workers.tracing import UNTRACED, Tracing, open_tracing

T = TypeVar("T")

THREADS = 12
"""Of which COMMITS may be in commits."""

COMMITS = 8
"""Commits at a time; the other threads are left to loads, acks and new claims. Where a burst of answers took all of
them, no new call began before the last commit, and all claims went through their steps in step: with 256 calls of 2 s
in flight a worker reached 0.74 of the bare SDK loop, now 0.92. So many, since one that waits for a locked bucket keeps
its place."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Settings and open resources. Blocking calls run in `threads`, so that the event loop only waits for models."""

    settings: Settings
    client: redis.Redis
    store: Store
    extractor: Extractor
    threads: Executor
    patterns: Patterns
    """Finds signals in what users say."""

    batches: Batches | None = None
    """The endpoint's batches; None for an endpoint without them."""

    learnt: Learnt = field(default_factory=Learnt)
    """What the endpoint was found not to take; the extractor and the batches share it."""

    tracing: Tracing = UNTRACED
    """The spans of claims."""

    @classmethod
    def open(cls, settings: Settings) -> Resources:
        """Open everything that these settings name. Raises ConfigError."""
        learnt = Learnt()
        return cls(
            settings,
            connect(settings),
            open_store(settings),
            open_extractor(settings.extraction, settings.drain.concurrency, learnt),
            ThreadPoolExecutor(THREADS, thread_name_prefix="drain"),
            shared_patterns(settings.signals.folder),
            open_batches(settings.extraction, settings.drain.concurrency, learnt),
            learnt,
            open_tracing(settings),
        )

    async def in_thread(self, step: Callable[..., T], *arguments: object) -> T:
        """Run a blocking step in a thread."""
        return await asyncio.get_running_loop().run_in_executor(self.threads, step, *arguments)

    async def send(self, call: Call[T]) -> T:
        """Send a call to the inbox, in a thread. Raises as `connection.send` does."""
        sent: T = await self.in_thread(send, self.client, call)
        return sent

    async def aclose(self) -> None:
        """Close everything; running threads end first."""
        await self.extractor.aclose()
        if self.batches is not None:
            await self.batches.aclose()
        self.threads.shutdown()
        self.client.close()
