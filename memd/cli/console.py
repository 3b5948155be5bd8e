"""The way into the console of a running `memd serve`."""

from __future__ import annotations

from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from memd.cli.common import echo, settings, warn
from memd.errors import ConfigError
from memd.http.console import links

TIMEOUT_S = 5.0


def console() -> None:
    """Print a link that opens the console in a browser, once.

    The link works for five minutes. It is for the `memd serve` on this machine that uses this data folder. Whoever
    opens it may do everything; others log in with a token of the scope console.

    Example: memd console
    """
    chosen = settings()
    link = links.make(chosen.data_dir, chosen.http)
    _require_server(link)
    echo(link)
    warn("this link works once, within five minutes")


def _require_server(link: str) -> None:
    """Raises ConfigError unless a console is served where the link leads."""
    place = urlsplit(link)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=TIMEOUT_S)
    try:
        connection.request("HEAD", links.LOGIN)
        status = connection.getresponse().status
    except (OSError, HTTPException):
        status = 0
    finally:
        connection.close()
    if status != HTTPStatus.OK:
        raise ConfigError(
            f"no console is served at {place.netloc}: run `memd up --console`, or `memd serve` with http.console: true"
        )
