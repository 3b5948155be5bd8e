"""Reads one response of the Messages API: the endpoint wrote the envelope, the model wrote the text inside it.

A broken envelope is an outage (ModelUnavailable); a broken text is the fault of this content (ContentRefused).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from memd.context import Message
from memd.errors import NoUpdate
from memd.extraction import failures
from memd.extraction.prompt import unescape
from memd.extraction.protocol import Usage
from memd.extraction.update import BadReply, Evidence, NewFact, Update, decode

_THINKING = ("thinking", "redacted_thinking")


def read(raw: bytes, content_type: str, sent: Sequence[Message]) -> tuple[Update, Usage]:
    """The update and its cost. Raises ExtractionFailed, with `usage` if the endpoint counted the tokens."""
    body = parse(raw, content_type)
    if not isinstance(body.get("content"), list):
        raise failures.unavailable("not_the_api")
    return read_message(body, sent)


def read_message(body: dict[str, Any], sent: Sequence[Message]) -> tuple[Update, Usage]:
    """The same from a parsed message: its content blocks, its stop reason and its usage."""
    cost = usage(body.get("usage"))
    failure = failures.from_stop_reason(body.get("stop_reason"))
    if failure is None:
        try:
            return _unescaped(decode(_text(body["content"])), sent), cost
        except BadReply as error:
            where = f" in {error.field}" if error.field else ""
            failure = NoUpdate("bad_reply", f"the answer is not a valid update ({error.code}{where})")
    failure.usage = cost
    raise failure


def parse(raw: bytes, content_type: str) -> dict[str, Any]:
    """The JSON object of a response. Raises ExtractionFailed for anything else, and for an error body."""
    if content_type.partition(";")[0].strip().lower() not in ("application/json", ""):
        raise failures.unavailable("not_the_api")
    try:
        body = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise failures.unavailable("not_the_api") from None
    if failures.is_error(body):
        raise failures.from_status(200, body, {})
    if not isinstance(body, dict):
        raise failures.unavailable("not_the_api")
    return body


def _text(content: list[Any]) -> str:
    """The only text block. Thinking blocks are skipped; a second text or a tool call is a bad reply."""
    blocks = [block for block in content if not (isinstance(block, dict) and block.get("type") in _THINKING)]
    if len(blocks) != 1:
        raise BadReply("not_one_text")
    block = blocks[0]
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    if not isinstance(text, str):
        raise BadReply("not_one_text")
    return text


def usage(value: object) -> Usage:
    """The tokens that a response reports; anything except a count is 0."""
    fields = value if isinstance(value, dict) else {}

    def count(name: str) -> int:
        number = fields.get(name)
        return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else 0

    return Usage(
        count("input_tokens"),
        count("output_tokens"),
        count("cache_read_input_tokens"),
        count("cache_creation_input_tokens"),
    )


def _unescaped(update: Update, sent: Sequence[Message]) -> Update:
    """Undo the prompt's escaping, which the model copies; drop empty summaries."""
    return replace(
        update,
        summaries={name: unescape(text) for name, text in update.summaries.items() if text.strip()},
        new_facts=tuple(_unescaped_fact(fact, sent) for fact in update.new_facts),
        confirmed_facts=tuple(replace(fact, quote=_quote_in(fact.quote, sent)) for fact in update.confirmed_facts),
        retired_facts=tuple(replace(fact, quote=_quote_in(fact.quote, sent)) for fact in update.retired_facts),
        merged_facts=tuple(replace(fact, content=unescape(fact.content)) for fact in update.merged_facts),
    )


def _unescaped_fact(fact: NewFact, sent: Sequence[Message]) -> NewFact:
    evidence = tuple(
        Evidence(quoted.message, _quote_in(quoted.quote, sent[quoted.message : quoted.message + 1]))
        for quoted in fact.evidence
    )
    return replace(
        fact,
        content=unescape(fact.content),
        evidence=evidence,
        source_error=unescape(fact.source_error) if fact.source_error else None,
        backstory=unescape(fact.backstory) if fact.backstory else None,
    )


def _quote_in(quote: str, messages: Sequence[Message]) -> str:
    """The quote as one of the messages contains it: unchanged if it occurs there, else unescaped."""
    if "&" not in quote or any(quote in message.content for message in messages):
        return quote
    return unescape(quote)
