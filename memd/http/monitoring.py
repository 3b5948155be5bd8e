"""Operations for monitoring: status, Prometheus metrics, health; and the OpenAPI document."""

from __future__ import annotations

import asyncio
import time

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from memd.errors import MemdError
from memd.http import metrics as prometheus
from memd.http.operation import HttpRequest, json_response
from memd.http.service import Service
from memd.inbox.connection import Call, connect, send

CACHE_S = 1.0
"""The inbox is looked at once in this many seconds, however many clients ask."""


async def status(request: HttpRequest) -> Response:
    """The figures of `memd status`."""
    return json_response(await request.service.run(request.service.inbox, request.service.memd.status))


async def metrics(request: HttpRequest) -> Response:
    """The same for Prometheus."""
    service = request.service
    text = await service.run(service.inbox, lambda: prometheus.render(service.memd.status(), service.served))
    return Response(text, headers={"cache-control": "no-store"}, media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def openapi(request: HttpRequest) -> Response:
    """The OpenAPI document."""
    return Response(request.service.openapi, headers={"cache-control": "no-cache"}, media_type="application/json")


class Health:
    """A process that responds is alive. The inbox may be away: memories can still be read."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._inbox = ""
        self._good_until = 0.0

    async def __call__(self, request: HttpRequest) -> Response:
        """Respond to anybody, without a token."""
        async with self._lock:
            if time.monotonic() >= self._good_until:
                self._inbox = await request.service.run(request.service.inbox, lambda: _ping(request.service))
                self._good_until = time.monotonic() + CACHE_S
        return json_response({"status": "ok", "inbox": self._inbox})


def _ping(service: Service) -> str:
    try:
        with connect(service.settings, retries=0) as client:
            send(client, Call(("PING",), bool))
    except MemdError:  # the parts that need the inbox log the error
        return "unavailable"
    return "ok"
