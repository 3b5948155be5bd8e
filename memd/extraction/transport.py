"""HTTP below both protocols: addresses, keys, connections, a total deadline, and limits on the size of a response.

Importing this module imports httpx2, as OpenAI's SDK does.
"""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit

import httpx2

from memd.errors import ConfigError, ContentRefused, ExtractionFailed
from memd.extraction import failures

CALLS_PER_CLIENT = 16
"""A client scans all its connections whenever a call begins or ends, so calls are spread over several clients."""

CONNECT_S = 10.0
ERROR_BODY_BYTES = 65_536


class Client(Protocol):
    """The client of a protocol: memd's own, or an SDK's."""

    async def close(self) -> None:
        """Close its connections."""
        ...


C = TypeVar("C", bound=Client)


class Errors(NamedTuple):
    """The errors of a client: their base, that of a call without an answer in time, and that of a status."""

    base: type[Exception]
    timeout: type[Exception]
    status: type[Any]


class Pool(Generic[C]):
    """Clients of one kind for up to `concurrency` calls at once. A call takes the client with the fewest calls."""

    def __init__(
        self, make: Callable[[dict[str, Any]], C], errors: Errors, *, concurrency: int, max_bytes: int
    ) -> None:
        """`make`: a client with these options of its HTTP client. `max_bytes`: limit on the body of a response."""
        self._errors = errors
        count = math.ceil(concurrency / CALLS_PER_CLIENT)
        self._clients = [make(_http_options(max_bytes)) for _ in range(count)]
        self._calls = [0] * count

    @asynccontextmanager
    async def call(self, deadline_s: float) -> AsyncIterator[C]:
        """The least used client, for one call with a total deadline.

        A timeout or an error of the client becomes an ExtractionFailed. A cancelled call stays cancelled.
        """
        place = self._calls.index(min(self._calls))
        self._calls[place] += 1
        try:
            async with asyncio.timeout(deadline_s):
                yield self._clients[place]
        except TimeoutError:
            raise failures.unreached("timeout") from None
        except Aborted as aborted:
            raise aborted.failure from None
        except self._errors.base as error:
            raise _translated(error, self._errors) from None
        finally:
            self._calls[place] -= 1

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients:
            await client.close()


@cache
def tls() -> ssl.SSLContext:
    """The certificates that all clients trust: read once a process and its children, which costs 30 ms and memory."""
    return httpx2.create_ssl_context()


def timeouts(deadline_s: float) -> httpx2.Timeout:
    """The client's own timeouts under a total deadline."""
    return httpx2.Timeout(deadline_s, connect=min(CONNECT_S, deadline_s))


def _translated(error: Any, errors: Errors) -> ExtractionFailed:
    """memd's error for an error of a client, without its text."""
    if isinstance(error, errors.status):
        return _of_status(error.response)
    return failures.unreached("timeout" if isinstance(error, errors.timeout) else "connection")


def _of_status(response: httpx2.Response) -> ExtractionFailed:
    """The failure behind a response with a status other than 2xx."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError, httpx2.StreamError):  # a page of a proxy, or a body that was not read
        body = None
    return failures.from_status(response.status_code, body, response.headers)


def checked_address(address: str) -> str:
    """The address, if it is an http(s) address. Raises ConfigError, which does not repeat it."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
        httpx2.URL(address)
    except (ValueError, httpx2.InvalidURL):
        usable = False
    if not usable:
        raise ConfigError("setting extraction.base_url is not an http(s) address")
    return address


def checked_key(key: str) -> str:
    """The key, if a header can carry it. Raises ConfigError, which does not repeat it."""
    if not (key.isascii() and (key.isprintable() or not key)):
        raise ConfigError("setting extraction.api_key contains a character that no HTTP header can carry")
    return key


class Aborted(Exception):
    """Reading a response was aborted; `failure` is the reason."""

    def __init__(self, failure: ExtractionFailed) -> None:
        super().__init__()
        self.failure = failure


def _http_options(max_bytes: int) -> dict[str, Any]:
    return {
        "limits": httpx2.Limits(
            max_connections=2 * CALLS_PER_CLIENT, max_keepalive_connections=CALLS_PER_CLIENT, keepalive_expiry=30
        ),
        "follow_redirects": False,  # a redirect would carry the conversation to a host that nobody configured
        "headers": {"accept-encoding": "identity"},  # so that the bytes counted are the bytes held
        "event_hooks": {"response": [_limiter(max_bytes)]},
        "verify": tls(),
    }


def _limiter(max_bytes: int) -> Any:
    """A response hook that reads at most `max_bytes` of a body, and no compressed body at all."""

    async def hook(response: httpx2.Response) -> None:
        failed = response.status_code >= 400
        encoded = response.headers.get("content-encoding", "identity").lower() != "identity"
        if encoded and not failed:
            raise Aborted(failures.unavailable("not_the_api"))
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
                raise Aborted(ContentRefused("reply_too_large", failures.REPLY_TOO_LARGE))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
