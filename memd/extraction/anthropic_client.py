"""Clients of Anthropic's SDK: address, key and translated errors.

Importing this module imports the SDK (a second of CPU).
"""

from __future__ import annotations

import logging
import os
from typing import Any

import anthropic

from memd.config import ExtractionSettings
from memd.extraction import transport
from memd.extraction.transport import Errors, Pool, timeouts

ERRORS = Errors(anthropic.AnthropicError, anthropic.APITimeoutError, anthropic.APIStatusError)

# The SDK logs whole requests at debug level, and ANTHROPIC_LOG=debug would switch that on.
logging.getLogger("anthropic").setLevel(logging.WARNING)
logging.getLogger("httpx2").setLevel(logging.WARNING)


def open_clients(
    settings: ExtractionSettings, concurrency: int, max_bytes: int | None = None
) -> Pool[anthropic.AsyncAnthropic] | None:
    """Clients for up to `concurrency` calls at once; None without a key.

    `max_bytes`: limit on the body of a response, `max_reply_bytes` by default. Raises ConfigError, see `check`.
    """
    key, token = _credential(settings)
    if not (key or token):
        return None
    address = _address(settings)

    def make(options: dict[str, Any]) -> anthropic.AsyncAnthropic:
        http = anthropic.DefaultAsyncHttpxClient(**options)
        return anthropic.AsyncAnthropic(
            api_key=key, auth_token=token, base_url=address, max_retries=0, http_client=http
        )

    return Pool(make, ERRORS, concurrency=concurrency, max_bytes=max_bytes or settings.max_reply_bytes)


async def post(clients: Pool[anthropic.AsyncAnthropic], body: dict[str, Any], deadline_s: float) -> tuple[bytes, str]:
    """One call of the Messages API: the body of the response and its content type. Raises ExtractionFailed."""
    async with clients.call(deadline_s) as client:
        answer = await client.messages.with_raw_response.create(**body, timeout=timeouts(deadline_s))
    return answer.http_response.content, answer.headers.get("content-type", "")


def check(settings: ExtractionSettings) -> None:
    """Raises ConfigError when no request can carry the key, or when the address is not an http(s) address."""
    _credential(settings)
    _address(settings)


def _address(settings: ExtractionSettings) -> str:
    """The endpoint: the setting, else ANTHROPIC_BASE_URL, else Anthropic's own."""
    address = settings.base_url or os.environ.get("ANTHROPIC_BASE_URL", "").strip() or "https://api.anthropic.com"
    return transport.checked_address(address)


def _credential(settings: ExtractionSettings) -> tuple[str | None, str | None]:
    """(API key, bearer token); at most one is set."""
    given = settings.api_key.reveal().strip() if settings.api_key else ""
    key = given or os.environ.get("ANTHROPIC_API_KEY", "").strip()
    token = "" if key else os.environ.get("ANTHROPIC_AUTH_TOKEN", "").strip()
    return transport.checked_key(key) or None, transport.checked_key(token) or None
