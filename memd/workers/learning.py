"""The worker's side of what an endpoint does not take: read before the first call, kept when it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from memd.errors import MemdError
from memd.events import Event, logger
from memd.extraction import endpoint
from memd.inbox import endpoints
from memd.workers.resources import Resources

T = TypeVar("T")


class Learning:
    """Surrounds the calls of one drain."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._learnt = resources.learnt
        self._endpoint = endpoint(resources.settings.extraction)
        self._known: frozenset[str] | None = None
        """The names that the inbox has; None until they are read."""

        self._reading = asyncio.Lock()

    async def call(self, make: Callable[[], Awaitable[T]]) -> T:
        """Make a call with what is known of the endpoint. What the call finds is kept, however it ends."""
        async with self._reading:
            if self._known is None:
                self._known = await self._read()
        try:
            return await make()
        finally:
            await self._keep()

    async def _read(self) -> frozenset[str]:
        try:
            names = await self._resources.send(endpoints.learnt(self._endpoint))
        except MemdError:  # the endpoint says it again; the parent process logs the outage
            return frozenset()
        self._learnt.add(*names)
        return names

    async def _keep(self) -> None:
        names = self._learnt.names
        if self._known is None or names <= self._known:
            return
        new, self._known = names - self._known, names
        logger().warning(Event.ENDPOINT_LEARNT, names=sorted(new))
        try:
            await self._resources.send(endpoints.learn(self._endpoint, names))
        except MemdError:  # as above
            return
