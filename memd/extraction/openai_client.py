"""Clients of OpenAI's SDK: address, key and translated errors.

Importing this module imports the SDK (a second of CPU), which is an extra of memd: `memd[openai]`.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from memd.config import ExtractionSettings
from memd.errors import ConfigError
from memd.extraction import failures, transport
from memd.extraction.transport import Errors, Pool, timeouts

try:
    import openai
    import openai.resources.chat.completions  # else the first call of each forked drain loads it
except ImportError:
    raise ConfigError(failures.NO_OPENAI_SDK) from None

OWN_ADDRESS = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent where there is no key: the SDK sends no request without one."""

ERRORS = Errors(openai.OpenAIError, openai.APITimeoutError, openai.APIStatusError)

# The SDK logs whole requests at debug level, and OPENAI_LOG=debug would switch that on.
logging.getLogger("openai").setLevel(logging.WARNING)
logging.getLogger("httpx2").setLevel(logging.WARNING)


def open_clients(settings: ExtractionSettings, concurrency: int) -> Pool[openai.AsyncOpenAI] | None:
    """Clients for up to `concurrency` calls at once; None for OpenAI's own endpoint without a key.

    Other servers are called with NO_KEY then, as many ask for no key. Raises ConfigError, see `check`.
    """
    key, address = _key(settings), _address(settings)
    if not key and address == OWN_ADDRESS:
        return None

    def make(options: dict[str, Any]) -> openai.AsyncOpenAI:
        http = openai.DefaultAsyncHttpxClient(**options)
        return openai.AsyncOpenAI(api_key=key or NO_KEY, base_url=address, max_retries=0, http_client=http)

    return Pool(make, ERRORS, concurrency=concurrency, max_bytes=settings.max_reply_bytes)


async def post(clients: Pool[openai.AsyncOpenAI], body: dict[str, Any], deadline_s: float) -> tuple[bytes, str]:
    """One call of the Chat Completions API: the body of the response and its content type. Raises ExtractionFailed."""
    async with clients.call(deadline_s) as client:
        answer = await client.chat.completions.with_raw_response.create(**body, timeout=timeouts(deadline_s))
    return answer.http_response.content, answer.headers.get("content-type", "")


async def describe(clients: Pool[openai.AsyncOpenAI], model: str, deadline_s: float) -> None:
    """Ask for the description of a model, which costs no tokens. Raises ExtractionFailed."""
    async with clients.call(deadline_s) as client:
        await client.models.with_raw_response.retrieve(model, timeout=deadline_s)


def check(settings: ExtractionSettings) -> None:
    """Raises ConfigError for a key that no request can carry, or for an address that is not an http(s) address."""
    _key(settings)
    _address(settings)


def _address(settings: ExtractionSettings) -> str:
    """The endpoint, with its /v1: the setting, else OPENAI_BASE_URL, else OpenAI's own."""
    address = settings.base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or OWN_ADDRESS
    return transport.checked_address(address)


def _key(settings: ExtractionSettings) -> str:
    given = settings.api_key.reveal().strip() if settings.api_key else ""
    return transport.checked_key(given or os.environ.get("OPENAI_API_KEY", "").strip())
