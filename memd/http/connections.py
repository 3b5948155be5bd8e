"""Connections that are slow: to send a request, or to read its answer. Each wait has an end, after which they are cut.

uvicorn itself only ends connections that are idle between two requests.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol as Protocol
else:  # httptools where it is installed: half the work, the same interface
    Protocol = AutoHTTPProtocol

CLOSE_S = 5.0
"""Seconds in which a client must have read the end of its last answer."""

GRACE_S = 2.0
"""Seconds beyond a request's own time, in which its refusal can still be sent."""

SWEEP_TICKS = 5
"""uvicorn ticks ten times a second; connections are looked at twice a second."""

_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER, on, for no seconds."""


class Connection(Protocol):
    """A connection that knows until when it may go on as it is; None: for as long as uvicorn lets it idle."""

    read_timeout_s = 10.0
    request_timeout_s = 30.0
    """Set once by `Server`."""

    until: float | None = None
    _answering: Any = None
    _in_head = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """The head of the first request is due."""
        super().connection_made(transport)
        self.until = self.loop.time() + self.read_timeout_s
        self._in_head = True

    def data_received(self, data: bytes) -> None:
        """Something of a request: the clock of its head runs from the first byte, whatever comes in between."""
        if not self._in_head and self._idle():
            self._in_head = True
            self.until = self.loop.time() + self.read_timeout_s
        super().data_received(data)
        self._see()

    def on_response_complete(self) -> None:
        """An answer is out, or at least on its way: what is not sent yet has its time, too."""
        self.until = None
        if self.transport.is_closing():
            self.until = self.loop.time() + CLOSE_S
        elif not self._all_sent():
            self.until = self.loop.time() + self.request_timeout_s
        super().on_response_complete()
        self._see()

    def timeout_keep_alive_handler(self) -> None:
        """uvicorn closes an idle connection, which waits for what was not read yet."""
        self.until = self.loop.time() + CLOSE_S
        super().timeout_keep_alive_handler()

    def cut_when_over(self, now: float) -> None:
        """Cut the connection, whatever is on its way, when its time is over."""
        if self.until is None or now <= self.until:
            return
        if self._idle() and not self._in_head and not self.transport.is_closing() and self._all_sent():
            self.until = None  # an answer that took long, but was read
        else:
            # A reset: else the kernel goes on offering what it still holds for minutes, to who does not take it.
            self.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
            self.transport.abort()

    def _all_sent(self) -> bool:
        return self.transport.get_write_buffer_size() == 0

    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _see(self) -> None:
        """Whether a head has become a request."""
        if not self._idle() and self.cycle is not self._answering:
            self._answering = self.cycle
            self._in_head = False
            self.until = self.loop.time() + self.request_timeout_s + GRACE_S


class Server(uvicorn.Server):
    """uvicorn's server, which looks at its connections now and then."""

    async def on_tick(self, counter: int) -> bool:
        """uvicorn's own duties, and the slow connections."""
        if counter % SWEEP_TICKS == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.cut_when_over(now)
        return await super().on_tick(counter)
