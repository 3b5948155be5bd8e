"""The extractor that calls a Messages API; `base_url` may name any server that speaks this API.

One call per extraction, without retries: the inbox is the only retry authority. A total deadline and a limit on bytes
hold whatever the endpoint sends. Importing this module imports httpx2 (a tenth of a second of CPU).
"""

from __future__ import annotations

from typing import Any

from memd.config import ExtractionSettings
from memd.extraction import envelope, failures
from memd.extraction.anthropic_client import check, describe, open_clients, post
from memd.extraction.learnt import Learnt, schema_in_prompt
from memd.extraction.prompt import PROMPT_VERSION, build, instructions
from memd.extraction.protocol import Extraction, Request
from memd.extraction.update import PLAIN, Extras, json_schema
from memd.extraction.writing import ModelWriter

__all__ = [
    "AnthropicExtractor",
    "check",
    "describe",
    "open_clients",
    "open_extractor",
    "open_writer",
    "request_options",
]

_NO_EFFORT = ("claude-haiku-4-5", "claude-sonnet-4-5")
"""Models that refuse `output_config.effort` with status 400."""

_THINKING_OFF = ("claude-haiku-5",)
"""Models that think by default and accept `disabled` at low effort. Other models keep their own default."""


class AnthropicExtractor:
    """Extraction by a model. Safe for many `extract` at once in one event loop. Never shows its key."""

    name = "anthropic"

    def __init__(self, settings: ExtractionSettings, concurrency: int, learnt: Learnt) -> None:
        """`learnt`: what the endpoint was found not to take; the extractor adds to it.

        Raises ConfigError for a key or address that cannot be sent. Without a key every call fails with `no_key`.
        """
        self._settings = settings
        self._learnt = learnt
        self._clients = open_clients(settings, concurrency)

    async def extract(self, request: Request) -> Extraction:
        """One call to the model. Raises ModelUnavailable, ContentRefused or ContentTooLong."""
        if self._clients is None:
            raise failures.unreached("no_key")
        clients, prompt = self._clients, build(request, request.today)

        async def call(left_out: frozenset[str], deadline_s: float) -> tuple[bytes, str]:
            options = request_options(self._settings, left_out, request.extras)
            return await post(clients, {**options, "messages": [{"role": "user", "content": prompt}]}, deadline_s)

        raw, content_type = await self._learnt.ask(
            ["output_config"], min(request.deadline_s, self._settings.deadline_s), call
        )
        reply, usage = self._learnt.noting(lambda: envelope.read(raw, content_type, request.messages))
        return Extraction(reply.update, usage, self._settings.model, PROMPT_VERSION, reply.mended, reply.malformed)

    async def aclose(self) -> None:
        if self._clients is not None:
            await self._clients.aclose()


def open_extractor(settings: ExtractionSettings, concurrency: int, learnt: Learnt) -> AnthropicExtractor:
    """The extractor of this protocol. Raises ConfigError."""
    return AnthropicExtractor(settings, concurrency, learnt)


def open_writer(settings: ExtractionSettings, learnt: Learnt) -> ModelWriter:
    """The writer of this protocol. Raises ConfigError, and ModelUnavailable without a key."""
    if (clients := open_clients(settings, 1)) is None:
        raise failures.unreached("no_key")

    async def send(instructions: str, prompt: str, left_out: frozenset[str], deadline_s: float) -> tuple[bytes, str]:
        messages = [{"role": "user", "content": prompt}]
        body = {**model_options(settings, left_out), "system": instructions, "messages": messages}
        return await post(clients, body, deadline_s)

    return ModelWriter(clients, send, ["output_config"], learnt)


def request_options(
    settings: ExtractionSettings, left_out: frozenset[str] = frozenset(), extras: Extras = PLAIN
) -> dict[str, Any]:
    """The part that all requests share: the model, its options and the cached prefix.

    `left_out`: names that the endpoint does not take (`Learnt`).
    """
    options = model_options(settings, left_out)
    if "output_config" not in left_out:
        schema = {"type": "json_schema", "schema": json_schema(extras)}
        options["output_config"] = {"format": schema, **options.get("output_config", {})}
    text = instructions(settings.language, with_schema=schema_in_prompt(left_out), extras=extras)
    # One hour: a deployment's conversations seldom follow each other within five minutes for long.
    options["system"] = [{"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    return options


def model_options(settings: ExtractionSettings, left_out: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The model and its options, for any text that it is to write. `left_out`: as above."""
    options: dict[str, Any] = {"model": settings.model, "max_tokens": settings.max_tokens}
    if "output_config" not in left_out and not settings.model.startswith(_NO_EFFORT):
        options["output_config"] = {"effort": "low"}
    if settings.model.startswith(_THINKING_OFF):
        options["thinking"] = {"type": "disabled"}
    return options
