"""The Host check, against DNS rebinding: web pages whose host name resolves to this machine are refused."""

from __future__ import annotations

import ipaddress
import re

from starlette.types import ASGIApp, Receive, Scope, Send

from memd.config import HttpSettings
from memd.http.problems import Problem

_HOST = re.compile(rb"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(:[0-9]{1,5})?")
_LOCAL = ("localhost", "127.0.0.1", "[::1]")


class HostCheck:
    """Passes on only requests for this machine's own names, `http.hosts`, and the address listened on."""

    def __init__(self, app: ASGIApp, settings: HttpSettings) -> None:
        self._app = app
        names = (*_LOCAL, *settings.hosts, *_own_name(settings.host))
        self._names = frozenset(name.lower().encode() for name in names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            problem = self._refusal(scope["headers"])
            if problem is not None:
                response = problem.response()
                response.headers["connection"] = "close"
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, headers: list[tuple[bytes, bytes]]) -> Problem | None:
        names = [name for name, _ in headers]
        if b"transfer-encoding" in names and b"content-length" in names:
            # Request smuggling: a proxy before us may have used the other of the two.
            return Problem(400, "E_LENGTH", "a request must not have both Content-Length and Transfer-Encoding")
        hosts = [value for name, value in headers if name == b"host"]
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if match is None:
            return Problem(400, "E_HOST", "a request must have one valid Host header", field="Host")
        if match[1].lower() not in self._names:
            return Problem(
                421,
                "E_HOST_FOREIGN",
                "this Host is not served here; see the setting http.hosts",
                field="Host",
            )
        return None


def _own_name(host: str) -> tuple[str, ...]:
    """The name by which clients reach the address listened on; empty for a wildcard."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return (host,)
    if address.is_unspecified:
        return ()
    return (f"[{address}]" if address.version == 6 else str(address),)


def is_loopback(host: str) -> bool:
    """Whether the address can be reached only from this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # any other name may resolve to anything
        return False
