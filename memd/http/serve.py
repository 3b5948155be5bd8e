"""`memd serve`: what has to be true before it listens, and the server itself."""

from __future__ import annotations

import logging
import os
import signal
import socket

import uvicorn

from memd.config import HttpSettings, Settings
from memd.errors import ConfigError
from memd.events import Event, logger
from memd.http import keyring
from memd.http.app import build
from memd.http.connections import Connection, Server
from memd.http.door import Door
from memd.http.guard import is_loopback

BACKLOG = 1024
STOP_S = 5
"""Seconds that running requests get at the end; the supervisor kills after ten."""

MAX_HEAD_BYTES = 64 * 1024


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError before anything is listened on."""
    _require_tokens(settings)
    listener = listen(settings.http)
    door = Door(settings)
    _quiet()
    for number in (signal.SIGTERM, signal.SIGINT):  # uvicorn puts its own in place, and raises again what it got
        signal.signal(number, lambda _number, _frame: None)
    host, port = listener.getsockname()[:2]
    log = logger(part="http")
    log.info(Event.HTTP_READY, host=host, port=port, pid=os.getpid(), tokens=settings.http.tokens is not None)
    try:
        Server(_config(door)).run([listener])
    finally:
        door.close()
    log.info(Event.HTTP_STOPPED)


def _require_tokens(settings: Settings) -> None:
    """Without tokens anybody who reaches the port may do anything: only this machine may reach it then."""
    file = settings.http.tokens
    if file is None:
        if not is_loopback(settings.http.host):
            raise ConfigError(
                "setting http.host: to listen beyond this machine takes tokens (http.tokens, `memd token add`)"
            )
    elif not keyring.load(file):
        raise ConfigError(
            "setting http.tokens: the file has no tokens, nobody could get in; `memd token add` makes one"
        )


def listen(settings: HttpSettings) -> socket.socket:
    """A listening socket. Raises ConfigError.

    It names TCP as its protocol: only then asyncio switches Nagle's algorithm off, without which a body waits up to
    40 ms for the acknowledgement of its head.
    """
    listener = None
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        if listener is not None:
            listener.close()
        raise ConfigError(f"settings http.host and http.port: cannot listen there ({error.strerror})") from None
    return listener


def _config(door: Door) -> uvicorn.Config:
    settings = door.settings.http
    kind = type(
        "Timed",
        (Connection,),
        {"read_timeout_s": settings.read_timeout_s, "request_timeout_s": settings.request_timeout_s},
    )
    return uvicorn.Config(
        build(door),
        http=kind,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=settings.max_connections,
        backlog=BACKLOG,
        timeout_keep_alive=settings.keep_alive_s,
        timeout_graceful_shutdown=STOP_S,
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
    )


def _quiet() -> None:
    """uvicorn's lines about what clients do wrong would let any of them fill the log."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    logging.getLogger("uvicorn.access").handlers.clear()
    logging.getLogger("uvicorn.access").propagate = False
