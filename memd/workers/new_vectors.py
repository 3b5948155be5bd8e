"""New vectors: those of the facts of a commit, made when its claim has ended. They never cost a fact, nor hold one up.

What fails is logged with its reason, and made up for by the bucket's next commit, by a scheduler within the hour, or by
`memd vectors rebuild`.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress

from memd.context import Bucket
from memd.errors import MemdError
from memd.events import Event, logger
from memd.recall.embedded import Embedded, Made
from memd.workers.resources import Resources

BATCHES = 1
"""Batches that follow a commit at most: a memory without any vectors is a scheduler's work."""


class NewVectors:
    """Makes vectors in threads that nobody waits for when the worker stops. Raises ConfigError as `Embedded` does."""

    def __init__(self, resources: Resources) -> None:
        settings, store = resources.settings, resources.store
        self._store = store
        self._embedded = Embedded(settings, store) if settings.vectors.url is not None else None

    async def make(self, bucket: Bucket) -> None:
        """Make the vectors of a memory's new facts. Raises nothing."""
        if self._embedded is None:
            return
        loop, ended = asyncio.get_running_loop(), asyncio.Event()

        def work() -> None:
            self._try(bucket)
            with suppress(RuntimeError):  # the worker has stopped meanwhile
                loop.call_soon_threadsafe(ended.set)

        # No thread of the pool, which waits for its threads at its end. Killed at any point, nothing is torn.
        threading.Thread(target=work, name="vectors", daemon=True).start()
        await ended.wait()

    def _try(self, bucket: Bucket) -> None:
        log = logger(bucket=self._store.pseudonym(bucket.hash))
        try:
            made = self._embedded.make(bucket, most=BATCHES) if self._embedded is not None else Made()
        except MemdError as error:
            log.warning(Event.VECTORS_DELAYED, code=code_of(error))
        except Exception as error:
            log.error(Event.VECTORS_DELAYED, exc_info=error)
        else:
            if made.refused:
                log.warning(Event.VECTORS_DELAYED, code="E_EMBEDDER_REFUSED", facts=made.refused)


def code_of(error: MemdError) -> str:
    """The code that an error's sentence begins with; else its class. Neither holds a text of a user."""
    code, colon, _ = str(error).partition(":")
    return code if colon and code.startswith("E_") else type(error).__name__
