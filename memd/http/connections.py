"""Connections: time-outs and byte limits around uvicorn's parser, which has neither.

`Connection` is the asyncio protocol that uvicorn creates for each connection. It hands everything on to uvicorn's own
protocol, and cuts the connection when a head is too long or when the client sends or reads too slowly. `Exchanges`
wraps the application and tells the connection when a request begins and when its response ends. Both parsers that
uvicorn may use (httptools where it is installed, else h11) are treated alike, through asyncio's and ASGI's interfaces.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from contextlib import suppress
from typing import Any, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from memd.config import HttpSettings
from memd.http.crowd import Crowd
from memd.http.problems import Problem

MAX_HEAD_BYTES = 64 * 1024
MAX_HEADERS = 100

CLOSE_S = 5.0
"""Seconds in which a client must have read the end of its last response."""

GRACE_S = 2.0
"""Seconds beyond `request_timeout_s` in which the refusal of a request that took too long can still be sent."""

LINGER_S, LINGER_BYTES = 1.0, 32 * 1024 * 1024
"""Seconds and bytes for which memd goes on reading from a client that it refused in the middle of its request.

Closing at once would reset the connection while the client sends, and many clients then never see the response.
"""

_STATE = "memd.connection"
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: on, for zero seconds."""

_TOO_LONG = Problem(
    431, "E_HEAD", f"the head of a request has at most {MAX_HEAD_BYTES} bytes and {MAX_HEADERS} headers"
)


class Connection(asyncio.Protocol):
    """The limits of one connection, around uvicorn's protocol for it."""

    def __init__(
        self,
        settings: HttpSettings,
        crowd: Crowd,
        *,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        **uvicorn: Any,
    ) -> None:
        self._settings = settings
        self._crowd = crowd
        self._loop = _loop or asyncio.get_running_loop()
        make: Any = AutoHTTPProtocol  # typed as asyncio's base class, which takes no arguments
        self._uvicorn = make(app_state={**app_state, _STATE: self}, _loop=_loop, **uvicorn)
        self._timer: asyncio.TimerHandle | None = None
        self._phase: Literal["idle", "head", "request", "refused", "turned_away"] = "head"
        self._received = 0
        """Bytes of the head or body received that the application has not read yet."""
        self._tail = b""
        self._lines = 0
        """Lines of the head received. uvicorn's parsers keep forty times the bytes of a very short header."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # TCP's kind
        """Start the deadline for the head of the first request."""
        self._transport = transport
        if not self._crowd.admits(self):
            self._phase = "turned_away"
            self._cut()
            return
        self._cut_after(self._settings.read_timeout_s)
        self._uvicorn.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the deadlines; the connection has ended."""
        self._stop_timer()
        self._crowd.leaves(self)
        if self._phase != "turned_away":
            self._uvicorn.connection_lost(exc)

    def eof_received(self) -> bool | None:
        """The client has closed its sending side."""
        end: bool | None = self._uvicorn.eof_received()
        return end

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self._uvicorn.pause_writing()

    def resume_writing(self) -> None:
        """The client reads again."""
        self._uvicorn.resume_writing()

    def data_received(self, data: bytes) -> None:
        """Count the bytes. A head's deadline runs from its first byte, and further bytes do not extend it."""
        if self._transport.is_closing():  # another connection took its place just as these bytes came
            return
        self._crowd.works(self)
        if self._phase == "idle":
            self._phase = "head"
            self._cut_after(self._settings.read_timeout_s)
        if self._phase == "head" and self._head_is_too_long(data):
            self._refuse()
        elif self._phase == "request" and self._received > MAX_HEAD_BYTES:
            self._cut()  # no body, since uvicorn reads less than this ahead: trailers, or the next head
        elif self._phase != "refused":
            self._received += len(data)
            self._uvicorn.data_received(data)

    def request_begins(self) -> None:
        """The head is complete, and the application has started."""
        self._phase = "request"
        self.body_taken()
        self._cut_after(self._settings.request_timeout_s + GRACE_S)

    def body_taken(self) -> None:
        """The application has taken all of the body that was received."""
        self._received = 0

    def response_ends(self) -> None:
        """The response was handed to the transport. The client has a deadline for reading the rest of it."""
        self._phase = "idle"
        self._received, self._tail, self._lines = 0, b"", 0
        self._stop_timer()
        if self._transport.is_closing():
            self._cut_after(CLOSE_S)
            return
        self._crowd.rests(self)
        if not self._all_sent():
            self._timer = self._loop.call_later(self._settings.request_timeout_s, self._cut_unless_sent)

    def close_idle(self) -> bool:
        """Close the connection, unless the client is still reading its last response."""
        if not self._all_sent():
            return False
        self._transport.close()
        return True

    def _head_is_too_long(self, data: bytes) -> bool:
        end = (self._tail + data).find(b"\r\n\r\n")
        size = len(data) if end < 0 else end - len(self._tail)
        self._tail = data[-3:]
        self._lines += data.count(b"\n", 0, max(0, size))
        return self._received + size > MAX_HEAD_BYTES or self._lines > MAX_HEADERS + 1  # the first is the request's

    def _refuse(self) -> None:
        """Respond 431, and read on for a moment so that the client sees the response."""
        self._phase = "refused"
        head = f"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: {len(_TOO_LONG.body)}\r\n"
        kind = f"content-type: {_TOO_LONG.response().media_type}\r\nconnection: close\r\n\r\n"
        self._transport.write(f"{head}{kind}".encode() + _TOO_LONG.body)
        self._transport.write_eof()
        self._cut_after(LINGER_S)

    def _cut_after(self, seconds: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, self._cut)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_unless_sent(self) -> None:
        if not self._all_sent():
            self._cut()

    def _cut(self) -> None:
        """Reset the connection. After a plain close the kernel would go on offering its unsent bytes for minutes."""
        self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self._transport.abort()

    def _all_sent(self) -> bool:
        return self._transport.get_write_buffer_size() == 0


class Exchanges:
    """An application whose connections know when a request begins and when its response ends."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it when it has too many headers."""
        if scope["type"] != "http":  # the application's start and stop
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send)
        app = self._app if len(scope["headers"]) <= MAX_HEADERS else _TOO_LONG.response()
        await app(scope, exchange.receive, exchange.send)


class _Exchange:
    """One request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._connection: Connection = scope["state"].pop(_STATE)
        self._receive = receive
        self._send = send
        self._unread = any(map(_announces_body, scope["headers"]))
        self._connection.request_begins()

    async def receive(self) -> Message:
        """The next part of the body."""
        message = await self._receive()
        self._connection.body_taken()
        self._unread = message.get("more_body", False)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the response. If the body was not read, the connection ends: the body may have no end."""
        if message["type"] == "http.response.start":
            if self._unread:
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
        elif not message.get("more_body", False):
            if self._unread:
                await self._send({**message, "more_body": True})
                await self._drop_body()
                message = {**message, "body": b""}
            await self._send(message)
            self._connection.response_ends()
            return
        await self._send(message)

    async def _drop_body(self) -> None:
        left = LINGER_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(LINGER_S):
                while self._unread and left > 0:
                    left -= len((await self.receive()).get("body", b""))


def _announces_body(header: tuple[bytes, bytes]) -> bool:
    name, value = header
    return name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
