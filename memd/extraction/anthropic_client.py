"""Clients of an endpoint that speaks the Messages API: address, key, headers and translated errors.

What a call needs of Anthropic's SDK is an address and five headers, so memd sends it itself: importing the SDK takes
a second and 50 MB, and each call half as much again (docs/decisions/0010). A test compares both, byte for byte.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import httpx2
import orjson

from memd.config import ExtractionSettings
from memd.errors import ConfigError
from memd.extraction import transport
from memd.extraction.transport import Errors, Pool, timeouts

API_VERSION = "2026-10-21"
"""The version of the API that requests are written for and replies are read by."""

MESSAGES = "/v1/messages"
MODELS = "/v1/models"

ERRORS = Errors(httpx2.HTTPError, httpx2.TimeoutException, httpx2.HTTPStatusError)

CUSTOM_HEADERS = "ANTHROPIC_CUSTOM_HEADERS"
"""The variable with further headers, one `name: value` a line, which Anthropic's SDKs read too: gateways ask for some.
They replace memd's own of the same name."""

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")

logging.getLogger("httpx2").setLevel(logging.WARNING)  # it logs every address


class MessagesClient:
    """The connections to one endpoint. Never shows its key."""

    def __init__(self, http: httpx2.AsyncClient, address: str) -> None:
        self._http = http
        self._address = address

    async def send(
        self, method: str, path: str, deadline_s: float, body: object = None, *, accept: str = "application/json"
    ) -> httpx2.Response:
        """One request: the response, read whole. Raises httpx2.HTTPError, also for a status other than 2xx."""
        headers = {"accept": accept}
        if method != "GET":
            headers["content-type"] = "application/json"
        response = await self._http.request(
            method,
            self._address + path,
            content=None if body is None else orjson.dumps(body),
            headers=headers,
            timeout=timeouts(deadline_s),
        )
        return response.raise_for_status()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


def open_clients(
    settings: ExtractionSettings, concurrency: int, max_bytes: int | None = None
) -> Pool[MessagesClient] | None:
    """Clients for up to `concurrency` calls at once; None without a key.

    `max_bytes`: limit on the body of a response, `max_reply_bytes` by default. Raises ConfigError, see `check`.
    """
    credential = _credential(settings)
    if not credential:
        return None
    address = _address(settings).rstrip("/")
    own = {
        "authorization": f"Bearer {credential}",
        "anthropic-version": API_VERSION,
        "user-agent": "memd",
    }
    own |= _custom_headers()

    def make(options: dict[str, Any]) -> MessagesClient:
        return MessagesClient(httpx2.AsyncClient(**{**options, "headers": {**options["headers"], **own}}), address)

    return Pool(make, ERRORS, concurrency=concurrency, max_bytes=max_bytes or settings.max_reply_bytes)


async def post(clients: Pool[MessagesClient], body: Mapping[str, Any], deadline_s: float) -> tuple[bytes, str]:
    """One call of the Messages API: the body of the response and its content type. Raises ExtractionFailed."""
    async with clients.call(deadline_s) as client:
        answer = await client.send("POST", MESSAGES, deadline_s, body)
    return answer.content, answer.headers.get("content-type", "")


async def describe(clients: Pool[MessagesClient], model: str, deadline_s: float) -> None:
    """Ask for the description of a model, which costs no tokens. Raises ExtractionFailed."""
    async with clients.call(deadline_s) as client:
        await client.send("GET", f"{MODELS}/{quote(model, safe='')}", deadline_s)


def check(settings: ExtractionSettings) -> None:
    """Raises ConfigError when no request can carry the key or a header, or the address is not an http(s) address."""
    _credential(settings)
    _address(settings)
    _custom_headers()


def _address(settings: ExtractionSettings) -> str:
    """The endpoint: the setting, else ANTHROPIC_BASE_URL, else Anthropic's own."""
    address = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or "https://api.anthropic.com"
    return transport.checked_address(address)


def _credential(settings: ExtractionSettings) -> str:
    """The API key, else the bearer token of the environment; both are sent alike. Empty for neither."""
    given = settings.api_key.reveal().strip() if settings.api_key else ""
    key = given or os.environ.get("ANTHROPIC_API_KEY", "").strip()
    return transport.checked_key(key or os.environ.get("ANTHROPIC_AUTH_TOKEN", "").strip())


def _custom_headers() -> dict[str, str]:
    """The headers that the environment adds, names in lower case. Raises ConfigError, which repeats none of them."""
    found: dict[str, str] = {}
    for line in os.environ.get(CUSTOM_HEADERS, "").split("\n"):
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not colon:
            continue
        if not _HEADER_NAME.fullmatch(name) or not value.isascii() or not (value.isprintable() or not value):
            raise ConfigError(f"variable {CUSTOM_HEADERS} contains a header that no request can carry")
        found[name.lower()] = value
    return found
