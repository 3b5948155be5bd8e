"""Reads a request's body: of one type only, up to a size, within a time, and only few large ones at once."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from starlette.datastructures import Headers
from starlette.types import Receive

from memd.http.problems import Problem

SMALL_BYTES, MOST_LARGE = 1024 * 1024, 4
"""A body above so many bytes is large. So many large ones are held at once, with what is made of them, so that hundreds
of connections cannot fill the memory; the others wait, half read, for `http.request_timeout_s` at most."""

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


class ClientGone(Exception):
    """The client closed the connection in the middle of its request; nothing was done."""


class LargeBodies:
    """The places for large bodies of one server."""

    def __init__(self) -> None:
        self.free = asyncio.Semaphore(MOST_LARGE)


class Place:
    """The place that a request takes when its body turns out to be large, and keeps until it has its response."""

    def __init__(self, bodies: LargeBodies) -> None:
        self._free = bodies.free
        self._taken = False

    async def take(self) -> None:
        """Wait for a free place, unless this request has one."""
        if not self._taken:
            await self._free.acquire()
            self._taken = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._taken:
            self._free.release()


async def read_body(
    headers: Headers, receive: Receive, limit: int, timeout_s: float, place: Place, kind: str = JSON
) -> bytes:
    """The bytes of the body. Raises Problem before more than `limit` bytes are held; raises ClientGone."""
    check_type(headers, kind)
    too_long = Problem(413, "E_BODY_SIZE", f"the body must have at most {limit} bytes", limit=limit)
    declared = headers.get("content-length", "0")
    if not declared.isdigit() or len(declared) > 15 or int(declared) > limit:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s) as deadline:
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                body += message.get("body", b"")
                if len(body) > limit:
                    raise too_long
                if len(body) > SMALL_BYTES:
                    await _wait_for(place, deadline)
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Problem(408, "E_BODY_SLOW", f"the body did not arrive within {timeout_s:g} s") from None


async def _wait_for(place: Place, deadline: asyncio.Timeout) -> None:
    """Take the place. The wait for it is not the client's time."""
    clock, until = asyncio.get_running_loop().time, deadline.when()
    began = clock()
    deadline.reschedule(None)
    await place.take()
    deadline.reschedule(None if until is None else until + clock() - began)


def check_type(headers: Headers, wanted: str = JSON) -> None:
    """Raises Problem unless the body is of this type. JSON a browser sends to another site only after asking it."""
    kind, _, parameter = headers.get("content-type", "").partition(";")
    charset = parameter.strip().lower()
    if kind.strip().lower() != wanted or charset not in {"", "charset=utf-8", 'charset="utf-8"'}:
        raise Problem(415, "E_CONTENT_TYPE", f"the body must be {wanted} in UTF-8")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "E_CONTENT_ENCODING", "the body must not be compressed")
