"""`memd serve`: what has to be true before it listens, and the server itself."""

from __future__ import annotations

import os

from memd.config import Settings
from memd.errors import ConfigError
from memd.events import Event, logger
from memd.http import keyring
from memd.http.app import build
from memd.http.door import Door
from memd.http.guard import is_loopback
from memd.http.listener import listen, serve


def run(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError before anything is listened on."""
    _require_tokens(settings)
    listener = listen(settings.http.host, settings.http.port, "settings http.host and http.port")
    door = Door(settings)
    host, port = listener.getsockname()[:2]
    log = logger(part="http")
    log.info(Event.HTTP_READY, host=host, port=port, pid=os.getpid(), tokens=settings.http.tokens is not None)
    try:
        serve(build(door), listener, settings.http, "off")
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
