"""The part of HTTP/1.1 that the model server needs: requests with a length, keep-alive, plain responses."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import NamedTuple

MAX_HEAD = 65_536
MAX_BODY = 67_108_864


class ModelRequest(NamedTuple):
    """One request; header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


async def read_request(reader: asyncio.StreamReader) -> ModelRequest | None:
    """The next request of a connection; None when the client has closed it or sent anything but HTTP."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        method, target, _ = lines[0].split(" ", 2)
        pairs = (line.partition(":") for line in lines[1:] if line)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        length = int(headers.get("content-length", "0"))
        if not 0 <= length <= MAX_BODY:
            return None
        body = await reader.readexactly(length)
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
        return None
    return ModelRequest(method, target.partition("?")[0], headers, body)


def head(status: int, headers: dict[str, str], length: int) -> bytes:
    """The status line and headers of a response with a body of `length` bytes."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    fields = {"content-type": "application/json", **headers, "content-length": str(length)}
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{name}: {value}" for name, value in fields.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
