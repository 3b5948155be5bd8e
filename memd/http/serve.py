"""`memd serve`: checks the settings, then serves."""

from __future__ import annotations

from memd.config import LoadedSettings, Settings
from memd.errors import ConfigError
from memd.events import Event, logger
from memd.http import keyring
from memd.http.hosts import is_loopback
from memd.http.listener import listen, serve
from memd.http.routes import application
from memd.http.service import Service


def run(found: LoadedSettings) -> None:
    """Serve until SIGTERM or SIGINT. Raises ConfigError before it listens."""
    settings = found.settings
    _require_tokens(settings)
    listener = listen(settings.http.host, settings.http.port, "settings http.host and http.port")
    service = Service(settings, found.origins)
    try:
        tokens = settings.http.tokens is not None
        serve(application(service), listener, settings.http, ready=Event.HTTP_READY, tokens=tokens, lifespan="off")
    finally:
        service.close()
    logger(part="http").info(Event.HTTP_STOPPED)


def _require_tokens(settings: Settings) -> None:
    """Without tokens every client may do anything, so only this machine must reach the port."""
    file = settings.http.tokens
    if file is None:
        if not is_loopback(settings.http.host):
            raise ConfigError(
                "setting http.host: listening beyond this machine needs tokens (http.tokens, `memd token add`)"
            )
    elif not keyring.load(file):
        raise ConfigError(
            "setting http.tokens: the file has no tokens, so every request would be refused; run `memd token add`"
        )
