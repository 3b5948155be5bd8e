"""The extractor that asks a Messages API by Anthropic's SDK; `base_url` may point at any server that speaks it.

One call, one answer: no retries here (`max_retries=0`), as the inbox is the only retry authority. A total deadline and
a cap on bytes hold whatever the endpoint sends. Importing this module imports the SDK (a second of CPU).
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anthropic
import httpx2

from memd.config import ExtractionSettings
from memd.errors import ConfigError, ContentRefused, ExtractionFailed
from memd.extraction import envelope, failures
from memd.extraction.prompt import INSTRUCTIONS, PROMPT_VERSION, build
from memd.extraction.protocol import Extraction, Request
from memd.extraction.update import json_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

CALLS_PER_CLIENT = 16
"""A client looks at all of its connections whenever a call begins or ends: calls are spread over several."""

CONNECT_S = 10.0
ERROR_BODY_BYTES = 65_536

_NO_EFFORT = ("claude-haiku-4-5", "claude-sonnet-4-5")
"""Models that answer 400 to `output_config.effort`."""

_THINKING_OFF = ("claude-haiku-5",)
"""Models that think unless told not to, and can be told so at low effort. Others keep their own default."""

# The SDK logs whole requests at debug, and ANTHROPIC_LOG=debug would switch that on.
logging.getLogger("anthropic").setLevel(logging.WARNING)
logging.getLogger("httpx2").setLevel(logging.WARNING)


class _Stopped(Exception):
    """Reading was broken off here; `failure` says what for."""

    def __init__(self, failure: ExtractionFailed) -> None:
        super().__init__()
        self.failure = failure


@dataclass
class _Line:
    """One SDK client and the number of calls on it."""

    client: anthropic.AsyncAnthropic
    busy: int = 0

    @contextmanager
    def taken(self) -> Iterator[anthropic.AsyncAnthropic]:
        self.busy += 1
        try:
            yield self.client
        finally:
            self.busy -= 1


class AnthropicExtractor:
    """Extraction by a model. Safe for many `extract` at once in one event loop. Never shows its key."""

    name = "anthropic"

    def __init__(self, settings: ExtractionSettings, concurrency: int = 32) -> None:
        """Raises ConfigError for a key or address that cannot be sent. Without a key each call is `no_key`."""
        self._settings = settings
        self._options = request_options(settings)
        self._lines = open_lines(settings, concurrency)

    async def extract(self, request: Request) -> Extraction:
        """One call to the model. Raises ModelUnavailable, ContentRefused or ContentTooLong."""
        if not self._lines:
            raise failures.unavailable("no_key")
        deadline_s = min(request.deadline_s, self._settings.deadline_s)
        raw, content_type = await self._ask(build(request, datetime.now(UTC).date()), deadline_s)
        update, usage = envelope.read(raw, content_type, request.messages)
        return Extraction(update, usage, self._settings.model, PROMPT_VERSION)

    async def aclose(self) -> None:
        for line in self._lines:
            await line.client.close()

    async def _ask(self, prompt: str, deadline_s: float) -> tuple[bytes, str]:
        """The answer's body and its content type. A cancelled call stays cancelled."""
        line = min(self._lines, key=lambda each: each.busy)
        try:
            async with asyncio.timeout(deadline_s):
                with line.taken() as client:
                    answer = await client.messages.with_raw_response.create(
                        **self._options,
                        messages=[{"role": "user", "content": prompt}],
                        timeout=httpx2.Timeout(deadline_s, connect=min(CONNECT_S, deadline_s)),
                    )
        except TimeoutError:
            raise failures.unavailable("timeout") from None
        except anthropic.AnthropicError as error:
            raise translated(error) from None
        return answer.http_response.content, answer.headers.get("content-type", "")


async def probe(settings: ExtractionSettings, deadline_s: float) -> ExtractionFailed | None:
    """What is wrong with the endpoint; None when it describes the model. Costs no tokens. Raises ConfigError."""
    lines = open_lines(settings, 1)
    if not lines:
        return failures.unavailable("no_key")
    try:
        async with asyncio.timeout(deadline_s):
            await lines[0].client.models.with_raw_response.retrieve(settings.model, timeout=deadline_s)
    except TimeoutError:
        return failures.unavailable("timeout")
    except anthropic.AnthropicError as error:
        return translated(error)
    finally:
        await lines[0].client.close()
    return None


def check(settings: ExtractionSettings) -> None:
    """Raises ConfigError when the address or the key is none that could ever be sent."""
    _credential(settings)
    _address(settings)


def request_options(settings: ExtractionSettings) -> dict[str, Any]:
    """What is the same in each request: the model, its options and the cached prefix."""
    output: dict[str, Any] = {"format": {"type": "json_schema", "schema": json_schema()}}
    if not settings.model.startswith(_NO_EFFORT):
        output["effort"] = "low"
    options: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": settings.max_tokens,
        # An hour, as conversations of one deployment are rarely five minutes apart for long.
        "system": [{"type": "text", "text": INSTRUCTIONS, "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "output_config": output,
    }
    if settings.model.startswith(_THINKING_OFF):
        options["thinking"] = {"type": "disabled"}
    return options


def open_lines(settings: ExtractionSettings, concurrency: int, max_bytes: int | None = None) -> list[_Line]:
    """Clients for up to `concurrency` calls at once, none without a key; an answer has `max_bytes` at most."""
    limit = max_bytes or settings.max_reply_bytes
    credential = _credential(settings)
    if not any(credential):
        return []
    address = _address(settings)
    count = math.ceil(concurrency / CALLS_PER_CLIENT)
    context = httpx2.create_ssl_context() if count > 1 else True  # one for all: a context costs memory and 10 ms
    return [_Line(_client(limit, address, credential, context)) for _ in range(count)]


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
        headers={"accept-encoding": "identity"},  # so that bytes counted are bytes held
        event_hooks={"response": [_capped(max_bytes)]},
        verify=context,
    )
    key, token = credential
    return anthropic.AsyncAnthropic(api_key=key, auth_token=token, base_url=address, max_retries=0, http_client=http)


def _credential(settings: ExtractionSettings) -> tuple[str | None, str | None]:
    """The API key or the bearer token, whichever is set; both None when there is neither."""
    given = settings.api_key.reveal().strip() if settings.api_key else ""
    key = given or os.environ.get("ANTHROPIC_API_KEY", "").strip()
    token = "" if key else os.environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
    for value in (key, token):
        if not (value.isascii() and (value.isprintable() or not value)):
            raise ConfigError("setting extraction.api_key has a character that no header can carry")
    return key or None, token or None


def _capped(limit: int) -> Any:
    """A response hook: let no more than `limit` bytes of a body in, and no compressed body at all."""

    async def hook(response: httpx2.Response) -> None:
        failed = response.status_code >= 400
        encoded = response.headers.get("content-encoding", "identity").lower() != "identity"
        if encoded and not failed:
            raise _Stopped(failures.unavailable("not_the_api"))
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            allowed = (0 if encoded else ERROR_BODY_BYTES) if failed else limit
            response.stream = _CappedStream(stream, allowed, cut=failed)

    return hook


class _CappedStream(httpx2.AsyncByteStream):
    """A body that ends (`cut`: an error's status says enough) or fails at `limit` bytes."""

    def __init__(self, stream: httpx2.AsyncByteStream, limit: int, *, cut: bool) -> None:
        self._stream = stream
        self._left = limit
        self._cut = cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            if self._left < 0:
                if self._cut:
                    return
                raise _Stopped(ContentRefused("reply_too_large", "the answer has more bytes than max_reply_bytes"))
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def translated(error: anthropic.AnthropicError) -> ExtractionFailed:
    """The SDK's error in memd's words, without its text."""
    if isinstance(error, anthropic.APIStatusError):
        return failures.from_status(error.status_code, error.body, error.response.headers)
    if isinstance(error, anthropic.APITimeoutError):
        return failures.unavailable("timeout")
    if isinstance(error.__cause__, _Stopped):
        return error.__cause__.failure
    return failures.unavailable("connection")
