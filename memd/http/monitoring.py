"""Operations for monitoring: status, Prometheus metrics, health, readiness; and the OpenAPI document."""

from __future__ import annotations

import asyncio
import time
from importlib import import_module
from typing import Any

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from memd.context import Bucket
from memd.errors import MemdError, NotReady
from memd.http import metrics as prometheus
from memd.http.admin_fields import CostQuery
from memd.http.operation import HttpRequest, json_response
from memd.http.service import Service
from memd.inbox import library
from memd.inbox.connection import Call, connect, send
from memd.memory.store.json_store import open_store

CACHE_S = 1.0
"""Inbox and store are checked at most once in this many seconds, however many clients ask."""

PROBED = Bucket("ready", "")
"""The bucket of the write probe. The probe leaves nothing behind."""


async def status(request: HttpRequest) -> Response:
    """The figures of `memd status`."""
    return json_response(await request.service.run(request.service.inbox, request.service.memd.status))


async def cost(request: HttpRequest) -> Response:
    """The figures of `memd status --cost`."""
    query: CostQuery = request.query
    return json_response(
        await request.service.run(request.service.inbox, lambda: request.service.memd.cost(days=query.days))
    )


async def hours(request: HttpRequest) -> Response:
    """The figures of `memd status --hours`."""
    return json_response({"hours": await request.service.run(request.service.inbox, request.service.memd.hours)})


async def metrics(request: HttpRequest) -> Response:
    """The figures for Prometheus."""
    service = request.service
    text = await service.run(service.inbox, lambda: prometheus.render(service.memd.status(), service.served))
    return Response(text, headers={"cache-control": "no-store"}, media_type=CONTENT_TYPE_PLAIN_0_0_4)


async def openapi(request: HttpRequest) -> Response:
    """The OpenAPI document."""
    return Response(request.service.openapi, headers={"cache-control": "no-cache"}, media_type="application/json")


class Docs:
    """The OpenAPI document as a page, made when somebody first asks for it."""

    def __init__(self) -> None:
        self._page: Any = None

    async def __call__(self, request: HttpRequest) -> Response:
        """Respond to anybody, without a token."""
        if self._page is None:  # its templates are not for every server
            make = import_module("memd.http.docs_page").DocsPage
            self._page = await request.service.run(request.service.pages, lambda: make(request.service.openapi))
        return Response(self._page.body, headers=self._page.headers, media_type="text/html")


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


class Ready:
    """Whether requests can be served in full: the inbox takes pushes, and the store takes a write."""

    def __init__(self) -> None:
        self._check: asyncio.Future[MemdError | None] | None = None
        self._check_at = 0.0

    async def __call__(self, request: HttpRequest) -> Response:
        """Respond to anybody, without a token. Raises InboxUnavailable, NotReady, StoreUnavailable."""
        error = await self._result(request.service)
        if error is not None:
            raise error
        return json_response({"status": "ok", "inbox": "ok", "store": "ok"})

    async def _result(self, service: Service) -> MemdError | None:
        """The error of the last check, which is at most CACHE_S old.

        A hanging check is never started twice, because it would use up the threads of other requests.
        """
        if self._check is None or (self._check.done() and time.monotonic() >= self._check_at):
            self._check_at = time.monotonic() + CACHE_S
            self._check = asyncio.ensure_future(service.run(service.long, lambda: _unready(service)))
        return await asyncio.shield(self._check)


def _unready(service: Service) -> MemdError | None:
    try:
        with connect(service.settings, retries=0) as client:
            if not library.installed(client):
                return NotReady("memd has not been started on this server yet: start memd up or memd scheduler")
        open_store(service.settings).probe(PROBED)
    except MemdError as error:
        return error
    return None


def _ping(service: Service) -> str:
    try:
        with connect(service.settings, retries=0) as client:
            send(client, Call(("PING",), bool))
    except MemdError:  # the parts that need the inbox log the error
        return "unavailable"
    return "ok"
