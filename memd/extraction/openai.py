"""The extractor that calls a Chat Completions API with OpenAI's SDK: OpenAI, vLLM, Ollama, LM Studio and others.

The rules are those of `memd.extraction.anthropic`: no retries, a total deadline, a limit on bytes. Importing this
module imports the SDK (a second of CPU).
"""

from __future__ import annotations

from functools import cache
from typing import Any

from memd.config import ExtractionSettings
from memd.extraction import envelope, failures, openai_envelope
from memd.extraction.learnt import LENGTHS, Learnt, schema_in_prompt
from memd.extraction.openai_client import check, describe, open_clients, post
from memd.extraction.prompt import PROMPT_VERSION, build, instructions
from memd.extraction.protocol import Extraction, Request
from memd.extraction.update import PLAIN, Extras, json_schema
from memd.extraction.writing import ModelWriter

__all__ = ["OpenAIExtractor", "check", "describe", "open_clients", "open_extractor", "open_writer"]


class OpenAIExtractor:
    """Extraction by a model. Safe for many `extract` at once in one event loop. Never shows its key."""

    name = "openai"

    def __init__(self, settings: ExtractionSettings, concurrency: int, learnt: Learnt) -> None:
        """`learnt`: what the endpoint was found not to take; the extractor adds to it.

        Raises ConfigError for a key or address that cannot be sent. Without a key every call to OpenAI's own endpoint
        fails with `no_key`; other servers may need none.
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
            body = body_of(self._settings, prompt, left_out, request.extras)
            return await post(clients, body, deadline_s)

        raw, content_type = await self._learnt.ask(
            ["response_format", *LENGTHS], min(request.deadline_s, self._settings.deadline_s), call
        )
        message = openai_envelope.as_message(envelope.parse(raw, content_type))
        reply, usage = self._learnt.noting(lambda: envelope.read_message(message, request.messages))
        return Extraction(reply.update, usage, self._settings.model, PROMPT_VERSION, reply.mended, reply.malformed)

    async def aclose(self) -> None:
        if self._clients is not None:
            await self._clients.aclose()


def open_extractor(settings: ExtractionSettings, concurrency: int, learnt: Learnt) -> OpenAIExtractor:
    """The extractor of this protocol. Raises ConfigError."""
    return OpenAIExtractor(settings, concurrency, learnt)


def open_writer(settings: ExtractionSettings, learnt: Learnt) -> ModelWriter:
    """The writer of this protocol. Raises ConfigError, and ModelUnavailable for OpenAI's own endpoint without a key."""
    if (clients := open_clients(settings, 1)) is None:
        raise failures.unreached("no_key")

    async def send(instructions: str, prompt: str, left_out: frozenset[str], deadline_s: float) -> tuple[bytes, str]:
        return await post(clients, chat_body(settings, instructions, prompt, left_out), deadline_s)

    return ModelWriter(clients, send, LENGTHS, learnt)


def body_of(
    settings: ExtractionSettings, prompt: str, left_out: frozenset[str] = frozenset(), extras: Extras = PLAIN
) -> dict[str, Any]:
    """The body of one request. The prefix is stable, so that servers which cache prefixes can.

    `left_out`: names that the endpoint does not take (`Learnt`).
    """
    prefix = instructions(settings.language, with_schema=schema_in_prompt(left_out), extras=extras)
    body = chat_body(settings, prefix, prompt, left_out)
    if "response_format" not in left_out:
        schema = {"name": "update", "strict": True, "schema": strict_schema(extras)}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def chat_body(
    settings: ExtractionSettings, prefix: str, prompt: str, left_out: frozenset[str] = frozenset()
) -> dict[str, Any]:
    """The model, the two messages and the limit of the reply, for any text that it is to write."""
    messages = [{"role": "system", "content": prefix}, {"role": "user", "content": prompt}]
    body: dict[str, Any] = {"model": settings.model, "messages": messages}
    # The older name first: every server knows it but OpenAI's newest models, which refuse it in a clear error.
    if (limit := next((name for name in LENGTHS if name not in left_out), None)) is not None:
        body[limit] = settings.max_tokens
    return body


@cache
def strict_schema(extras: Extras = PLAIN) -> dict[str, Any]:
    """The update's schema as OpenAI enforces it: every field is required, and what may be missing may be null.

    The same object each time: nobody may change it.
    """
    result: dict[str, Any] = _strict(json_schema(extras))
    return result


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(value) for value in node]
    if not isinstance(node, dict):
        return node
    if not isinstance(node.get("properties"), dict):
        return {name: _strict(value) for name, value in node.items()}
    required = node.get("required", [])
    inner = {name: _strict(value) for name, value in node["properties"].items()}
    properties = {name: value if name in required else _nullable(value) for name, value in inner.items()}
    return {**node, "properties": properties, "required": list(properties)}


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    if node["type"] == "array":  # an empty one says it
        return node
    return {"anyOf": [node, {"type": "null"}]} if node["type"] == "object" else {**node, "type": [node["type"], "null"]}
