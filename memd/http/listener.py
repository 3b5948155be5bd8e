"""The listener that `memd serve` and `memd mcp --http` share: one socket, one configuration of uvicorn."""

from __future__ import annotations

import logging
import os
import signal
import socket
from functools import partial
from typing import Literal

import uvicorn
from starlette.types import ASGIApp

from memd.config import HttpSettings
from memd.errors import ConfigError
from memd.events import Event, logger
from memd.http.connections import MAX_HEAD_BYTES, Connection, Exchanges
from memd.http.crowd import Crowd

BACKLOG = 1024
STOP_S = 5
"""Seconds that running requests get at the end; the supervisor kills after ten."""


def listen(host: str, port: int, names: str) -> socket.socket:
    """A listening socket. `names`: the settings or flags of host and port, for the error. Raises ConfigError.

    The socket names TCP as its protocol: only then asyncio switches Nagle's algorithm off, with which a response waits
    up to 40 ms for an acknowledgement.
    """
    listener = None
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise ConfigError(f"{names}: cannot listen there ({error.strerror})") from None
    return listener


def serve(
    app: ASGIApp,
    listener: socket.socket,
    settings: HttpSettings,
    *,
    ready: Event,
    tokens: bool,
    lifespan: Literal["on", "off"],
) -> None:
    """Serve the application until SIGTERM or SIGINT.

    `ready`: the event to log. `tokens`: whether clients need tokens, for that event. `lifespan`: whether the
    application handles ASGI's lifespan events.
    """
    _quiet()
    config = uvicorn.Config(
        Exchanges(app),
        http=partial(Connection, settings, Crowd(settings.max_connections)),  # type: ignore[arg-type]  # uvicorn only calls it: a factory will do
        ws="none",
        loop="asyncio",
        lifespan=lifespan,
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=settings.max_connections + 1,  # uvicorn counts the connection that asks
        backlog=BACKLOG,
        timeout_keep_alive=settings.keep_alive_s,
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )
    server = uvicorn.Server(config)
    for number in (
        signal.SIGTERM,
        signal.SIGINT,
    ):  # until uvicorn installs its own handlers, and when it raises them again
        signal.signal(number, lambda _number, _frame: setattr(server, "should_exit", True))
    host, port = listener.getsockname()[:2]
    logger(part=ready.partition("_")[0]).info(ready, host=host, port=port, pid=os.getpid(), tokens=tokens)
    server.run([listener])


def _quiet() -> None:
    """Silence uvicorn's warnings about clients, because any client could fill the log with them."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    logging.getLogger("uvicorn.access").handlers.clear()
    logging.getLogger("uvicorn.access").propagate = False
