"""Reading one answer of the Messages API: the envelope is the endpoint's, the text inside it is the model's.

A broken envelope is an outage (ModelUnavailable); a broken text is this content's (ContentRefused).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from memd.context import Message
from memd.errors import ContentRefused
from memd.extraction import failures
from memd.extraction.prompt import unescape
from memd.extraction.protocol import Usage
from memd.extraction.update import BadReply, Evidence, NewFact, Update, decode


def read(raw: bytes, content_type: str, sent: Sequence[Message]) -> tuple[Update, Usage]:
    """The update and the cost. Raises ExtractionFailed, which then carries the cost as `usage`."""
    body = _body(raw, content_type)
    cost = usage(body.get("usage"))
    failure = failures.from_stop_reason(body.get("stop_reason"))
    if failure is None:
        try:
            return _as_said(decode(_text(body["content"])), sent), cost
        except BadReply as error:
            where = f" in {error.field}" if error.field else ""
            failure = ContentRefused("bad_reply", f"the answer is not one update ({error.code}{where})")
    failure.usage = cost
    raise failure


def _body(raw: bytes, content_type: str) -> dict[str, Any]:
    if content_type.partition(";")[0].strip().lower() not in ("application/json", ""):
        raise failures.unavailable("not_the_api")
    try:
        body = json.loads(raw.decode())
    except (ValueError, RecursionError):
        raise failures.unavailable("not_the_api") from None
    if failures.is_error(body):
        raise failures.from_status(200, body, {})
    if not isinstance(body, dict) or not isinstance(body.get("content"), list):
        raise failures.unavailable("not_the_api")
    return body


def _text(content: list[Any]) -> str:
    """The one text block; thinking may stand around it, a second text or a tool call may not."""
    blocks = [block for block in content if not (isinstance(block, dict) and block.get("type") in _THINKING)]
    if len(blocks) != 1:
        raise BadReply("not_one_text")
    block = blocks[0]
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    if not isinstance(text, str):
        raise BadReply("not_one_text")
    return text


_THINKING = ("thinking", "redacted_thinking")


def usage(value: object) -> Usage:
    """The tokens that an answer says it has cost; what is no count is none."""
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


def _as_said(update: Update, sent: Sequence[Message]) -> Update:
    """Undo the prompt's escaping in what the model repeats from it."""
    return replace(
        update,
        summaries={name: unescape(text) for name, text in update.summaries.items() if text.strip()},
        new_facts=tuple(_fact_as_said(fact, sent) for fact in update.new_facts),
        confirmed_facts=tuple(replace(fact, quote=_quote_in(fact.quote, sent)) for fact in update.confirmed_facts),
        retired_facts=tuple(replace(fact, quote=_quote_in(fact.quote, sent)) for fact in update.retired_facts),
        merged_facts=tuple(replace(fact, content=unescape(fact.content)) for fact in update.merged_facts),
    )


def _fact_as_said(fact: NewFact, sent: Sequence[Message]) -> NewFact:
    evidence = tuple(
        Evidence(piece.message, _quote_in(piece.quote, sent[piece.message : piece.message + 1]))
        for piece in fact.evidence
    )
    return replace(
        fact,
        content=unescape(fact.content),
        evidence=evidence,
        source_error=unescape(fact.source_error) if fact.source_error else None,
        backstory=unescape(fact.backstory) if fact.backstory else None,
    )


def _quote_in(quote: str, messages: Sequence[Message]) -> str:
    """The quote as it stands in one of the messages: as given if it does, else unescaped."""
    if "&" not in quote or any(quote in message.content for message in messages):
        return quote
    return unescape(quote)
