"""Clients of Anthropic's SDK: address, key, connections, limits on the size of a response, and translated errors.

Importing this module imports the SDK (a second of CPU).
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import anthropic
import httpx2

from memd.config import ExtractionSettings
from memd.errors import ConfigError, ContentRefused, ExtractionFailed
from memd.extraction import failures

CALLS_PER_CLIENT = 16
"""A client scans all its connections whenever a call begins or ends, so calls are spread over several clients."""

CONNECT_S = 10.0
ERROR_BODY_BYTES = 65_536

# The SDK logs whole requests at debug level, and ANTHROPIC_LOG=debug would switch that on.
logging.getLogger("anthropic").setLevel(logging.WARNING)
logging.getLogger("httpx2").setLevel(logging.WARNING)


@dataclass
class SharedClient:
    """One SDK client and the number of calls on it."""

    client: anthropic.AsyncAnthropic
    calls: int = 0

    @contextmanager
    def call(self) -> Iterator[anthropic.AsyncAnthropic]:
        """The client, counted as in use for the length of the block."""
        self.calls += 1
        try:
            yield self.client
        finally:
            self.calls -= 1


def open_clients(settings: ExtractionSettings, concurrency: int, max_bytes: int | None = None) -> list[SharedClient]:
    """Clients for up to `concurrency` calls at once; no client without a key.

    `max_bytes`: limit on the body of a response, `max_reply_bytes` by default. Raises ConfigError, see `check`.
    """
    credential = _credential(settings)
    if not any(credential):
        return []
    address = _address(settings)
    count = math.ceil(concurrency / CALLS_PER_CLIENT)
    context = httpx2.create_ssl_context() if count > 1 else True  # shared: each costs memory and 10 ms
    limit = max_bytes or settings.max_reply_bytes
    return [SharedClient(_client(limit, address, credential, context)) for _ in range(count)]


def check(settings: ExtractionSettings) -> None:
    """Raises ConfigError when no request can carry the key, or when the address is not an http(s) address."""
    _credential(settings)
    _address(settings)


def timeouts(deadline_s: float) -> httpx2.Timeout:
    """The client's own timeouts under a total deadline."""
    return httpx2.Timeout(deadline_s, connect=min(CONNECT_S, deadline_s))


@asynccontextmanager
async def within(deadline_s: float) -> AsyncIterator[None]:
    """A total deadline for the block; a timeout or an error of the SDK becomes an ExtractionFailed."""
    try:
        async with asyncio.timeout(deadline_s):
            yield
    except TimeoutError:
        raise failures.unreached("timeout") from None
    except anthropic.AnthropicError as error:
        raise _translated(error) from None


def _address(settings: ExtractionSettings) -> str:
    """The endpoint: the setting, else ANTHROPIC_BASE_URL, else Anthropic's own."""
    address = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or "https://api.anthropic.com"
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError("setting extraction.base_url is not an http(s) address")
    return address


def _credential(settings: ExtractionSettings) -> tuple[str | None, str | None]:
    """(API key, bearer token); at most one is set."""
    given = settings.api_key.reveal().strip() if settings.api_key else ""
    key = given or os.environ.get("ANTHROPIC_API_KEY", "").strip()
    token = "" if key else os.environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
    for value in (key, token):
        if not (value.isascii() and (value.isprintable() or not value)):
            raise ConfigError("setting extraction.api_key contains a character that no HTTP header can carry")
    return key or None, token or None


def _client(
    max_bytes: int,
    address: str,
    credential: tuple[str | None, str | None],
    context: ssl.SSLContext | bool,
) -> anthropic.AsyncAnthropic:
    http = anthropic.DefaultAsyncHttpxClient(
        limits=httpx2.Limits(
            max_connections=2 * CALLS_PER_CLIENT, max_keepalive_connections=CALLS_PER_CLIENT, keepalive_expiry=30
        ),
        follow_redirects=False,  # a redirect would carry the conversation to a host that nobody configured
        headers={"accept-encoding": "identity"},  # so that the bytes counted are the bytes held
        event_hooks={"response": [_limiter(max_bytes)]},
        verify=context,
    )
    key, token = credential
    return anthropic.AsyncAnthropic(api_key=key, auth_token=token, base_url=address, max_retries=0, http_client=http)


class _Aborted(Exception):
    """Reading a response was aborted; `failure` is the reason."""

    def __init__(self, failure: ExtractionFailed) -> None:
        super().__init__()
        self.failure = failure


def _limiter(max_bytes: int) -> Any:
    """A response hook that reads at most `max_bytes` of a body, and no compressed body at all."""

    async def hook(response: httpx2.Response) -> None:
        failed = response.status_code >= 400
        encoded = response.headers.get("content-encoding", "identity").lower() != "identity"
        if encoded and not failed:
            raise _Aborted(failures.unavailable("not_the_api"))
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            allowed = (0 if encoded else ERROR_BODY_BYTES) if failed else max_bytes
            response.stream = _LimitedStream(stream, allowed, truncate=failed)

    return hook


class _LimitedStream(httpx2.AsyncByteStream):
    """A body that fails at `limit` bytes, or is truncated there: the status of an error says enough."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int, *, truncate: bool) -> None:
        self._stream = stream
        self._left = limit
        self._truncate = truncate

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                if self._truncate:
                    return
                raise _Aborted(ContentRefused("reply_too_large", failures.REPLY_TOO_LARGE))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def _translated(error: anthropic.AnthropicError) -> ExtractionFailed:
    """memd's error for an error of the SDK, without its text."""
    if isinstance(error, anthropic.APIStatusError):
        return failures.from_status(error.status_code, error.body, error.response.headers)
    if isinstance(error, anthropic.APITimeoutError):
        return failures.unreached("timeout")
    if isinstance(error.__cause__, _Aborted):
        return error.__cause__.failure
    return failures.unreached("connection")
