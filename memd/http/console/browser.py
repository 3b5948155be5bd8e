"""The parts of a browser's request that the console reads."""

from __future__ import annotations

from functools import cached_property
from urllib.parse import parse_qsl

from starlette.datastructures import Headers
from starlette.types import Scope

from memd.http.problems import Problem

HOME = "/console"
MAX_FIELDS = 2_000
LIVE = "memd-live"
"""The header of a request that only refreshes the values of an open page."""


class BrowserRequest:
    """The parts of a request that the console reads."""

    def __init__(self, scope: Scope) -> None:
        self.method: str = scope["method"]
        self.path: str = scope["path"].rstrip("/") or "/"
        self.headers = Headers(scope=scope)
        self._query: bytes = scope["query_string"]
        self.by_itself = LIVE in self.headers
        self.origin = self.headers.get("origin", "")

    @property
    def target(self) -> str:
        """The address as it was asked for."""
        return f"{self.path}?{self._query.decode('latin-1')}" if self._query else self.path

    @cached_property
    def query(self) -> dict[str, list[str]]:
        """The fields of the address. Raises Problem."""
        return fields_of(self._query)

    def cookies(self, name: str) -> list[str]:
        """The values of the cookies with this name: another program on this host may have set one, too.

        http.cookies gives up at the first cookie that it cannot read, and takes minutes for one of 60 KB.
        """
        pairs = (pair.strip().partition("=") for pair in self.headers.get("cookie", "").split(";"))
        return [value for found, _, value in pairs if found == name]

    @property
    def is_from_here(self) -> bool:
        """Whether a browser says that a page of this server has sent it."""
        scheme, _, host = self.origin.partition("://")
        return scheme in ("http", "https") and host.lower() == self.headers.get("host", "").lower()

    @property
    def referer(self) -> str:
        """The page of ours from which this request came, if the browser says so."""
        host = self.headers.get("host", "")
        for scheme in ("http", "https"):
            start = f"{scheme}://{host}"
            if self.headers.get("referer", "").startswith(f"{start}{HOME}"):
                return self.headers["referer"].removeprefix(start)
        return HOME


def fields_of(raw: bytes) -> dict[str, list[str]]:
    """The fields of a query or a form, those that are empty left out. Raises Problem."""
    try:
        pairs = parse_qsl(raw.decode("ascii"), max_num_fields=MAX_FIELDS, errors="strict", separator="&")
    except (UnicodeDecodeError, ValueError):
        raise Problem(400, "E_FORM", "the fields cannot be read") from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return found
