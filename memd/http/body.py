"""Reading a body: JSON only, never more than the limit, never for longer than the limit."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Send

from memd.http.problems import Problem

LINGER_S, LINGER_BYTES = 1.0, 32 * 1024 * 1024
"""How long, and for how much, a client is listened to that was refused before it had sent everything."""

_TYPE = "application/json"


class ClientGone(Exception):
    """The client closed the connection in the middle of its request; nothing was done."""


async def read_body(headers: Headers, receive: Receive, limit: int, timeout_s: float) -> bytes:
    """The bytes of the body. Raises Problem before more than `limit` bytes are held, ClientGone."""
    check_type(headers)
    too_long = Problem(413, "E_BODY_SIZE", f"a body has at most {limit} bytes here", limit=limit)
    declared = headers.get("content-length", "0")
    if not declared.isdigit() or len(declared) > 15 or int(declared) > limit:
        raise too_long
    body = bytearray()
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise ClientGone
                body += message.get("body", b"")
                if len(body) > limit:
                    raise too_long
                if not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        raise Problem(408, "E_BODY_SLOW", f"the body did not arrive within {timeout_s:g} s") from None


def check_type(headers: Headers) -> None:
    """Raises Problem for anything but JSON as it is: a page in a browser cannot send that without being asked first."""
    kind, _, parameter = headers.get("content-type", "").partition(";")
    charset = parameter.strip().lower()
    if kind.strip().lower() != _TYPE or charset not in {"", "charset=utf-8", 'charset="utf-8"'}:
        raise Problem(415, "E_CONTENT_TYPE", f"the body must be {_TYPE} in UTF-8")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "E_CONTENT_ENCODING", "the body must not be compressed")


def has_body(headers: Headers) -> bool:
    """Whether the head announces a body."""
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


async def send_and_close(response: Response, receive: Receive, send: Send) -> None:
    """Answer a request whose body was not read, and close: it may have no end.

    What still comes is dropped for a moment: closed at once, the client would be reset while it sends, and many never
    see the answer then.
    """
    response.headers["connection"] = "close"
    await send({"type": "http.response.start", "status": response.status_code, "headers": response.raw_headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": True})
    left = LINGER_BYTES
    with suppress(TimeoutError):
        async with asyncio.timeout(LINGER_S):
            while left > 0:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    break
                left -= len(message.get("body", b""))
    await send({"type": "http.response.body", "body": b"", "more_body": False})
