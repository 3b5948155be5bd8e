"""Reads a request's body: JSON only, up to a size, within a time."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import Receive

from memd.http.problems import Problem

_TYPE = "application/json"


class ClientGone(Exception):
    """The client closed the connection in the middle of its request; nothing was done."""


async def read_body(headers: Headers, receive: Receive, limit: int, timeout_s: float) -> bytes:
    """The bytes of the body. Raises Problem before more than `limit` bytes are held; raises ClientGone."""
    check_type(headers)
    too_long = Problem(413, "E_BODY_SIZE", f"the body must have at most {limit} bytes", limit=limit)
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
    """Raises Problem unless the body is plain JSON, which a browser sends to another site only after asking it."""
    kind, _, parameter = headers.get("content-type", "").partition(";")
    charset = parameter.strip().lower()
    if kind.strip().lower() != _TYPE or charset not in {"", "charset=utf-8", 'charset="utf-8"'}:
        raise Problem(415, "E_CONTENT_TYPE", f"the body must be {_TYPE} in UTF-8")
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "E_CONTENT_ENCODING", "the body must not be compressed")
