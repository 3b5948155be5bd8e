"""The Host check: a page that made its own name point to this machine is not answered (DNS rebinding)."""

from __future__ import annotations

import ipaddress
import re

from starlette.types import ASGIApp, Receive, Scope, Send

from memd.config import HttpSettings
from memd.http.problems import Problem

_HOST = re.compile(rb"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class Guard:
    """Answers only requests for this machine's own names, `http.hosts`, and the address that it listens on."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        self._app = app
        names = (*_LOCAL, *settings.hosts, *_listened(settings.host))
        self._names = frozenset(name.lower().encode() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            problem = self._wrong(scope["headers"])
            if problem is not None:
                response = problem.response()
                response.headers["connection"] = "close"
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _wrong(self, headers: list[tuple[bytes, bytes]]) -> Problem | None:
        names = [name for name, _ in headers]
        if b"transfer-encoding" in names and b"content-length" in names:
            # A proxy may have believed the other of the two, and taken another part of the bytes for a request.
            return Problem(400, "E_LENGTH", "a body has a length or comes in chunks, not both")
        hosts = [value for name, value in headers if name == b"host"]
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if match is None:
            return Problem(400, "E_HOST", "a request has one Host", field="Host")
        if match[1].lower() not in self._names:
            return Problem(
                421, "E_HOST_FOREIGN", "this Host is not served here; see the setting http.hosts", field="Host"
            )
        return None


def _listened(host: str) -> tuple[str, ...]:
    """The name that clients use for the address listened on; a wildcard is no name."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return (host,)
    if address.is_unspecified:
        return ()
    return (f"[{address}]" if address.version == 6 else str(address),)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name may be anybody's
        return False
