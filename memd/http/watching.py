"""Status, metrics, and whether this process lives."""

from __future__ import annotations

import asyncio
import time

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from memd.errors import MemdError
from memd.http import metrics
from memd.http.door import Door
from memd.http.endpoint import Call, answer
from memd.inbox.connection import Call as Command
from memd.inbox.connection import connect, send

LOOK_S = 1.0
"""Seconds for which one look at the inbox is good, however many ask."""


async def status(call: Call) -> Response:
    """The figures of `memd status`."""
    return answer(await call.door.run(call.door.inbox, call.door.memd.status))


async def figures(call: Call) -> Response:
    """The same for Prometheus."""
    text = await call.door.run(call.door.inbox, lambda: metrics.render(call.door.memd.status(), call.door.served))
    return Response(text, headers={"cache-control": "no-store"}, media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def openapi(call: Call) -> Response:
    """The OpenAPI document."""
    return Response(call.door.openapi, headers={"cache-control": "no-cache"}, media_type="application/json")


class Health:
    """This process lives when it answers. The inbox may be away: reading goes on without it."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._inbox = ""
        self._good_until = 0.0

    async def __call__(self, call: Call) -> Response:
        """Say so, for anybody."""
        async with self._lock:
            if time.monotonic() >= self._good_until:
                self._inbox = await call.door.run(call.door.inbox, lambda: _look(call.door))
                self._good_until = time.monotonic() + LOOK_S
        return answer({"status": "ok", "inbox": self._inbox})


def _look(door: Door) -> str:
    try:
        with connect(door.settings, retries=0) as client:
            send(client, Command(("PING",), bool))
    except MemdError:  # what it is stands in the log of the parts that need it
        return "unavailable"
    return "ok"
