"""Reads one response of the Messages API: the endpoint wrote the envelope, the model wrote the text inside it.

A broken envelope is an outage (ModelUnavailable); a text that is no update is a fault of this content (ContentRefused).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from memd.context import Message
from memd.errors import Truncated
from memd.extraction import failures
from memd.extraction.protocol import Usage
from memd.extraction.reply import BadReply, ReadReply, read_object
from memd.extraction.reply import read as read_text
from memd.extraction.reply.escaping import unescaped
from memd.extraction.reply.lenient_json import decoder

_USUAL = ("end_turn", "stop_sequence", "tool_use")
"""Reasons with which the Messages API ends a whole answer."""

_NONE = ("no_object", "no_update")
"""The codes of a text or a call that has nothing to do with an update."""


def read(raw: bytes, content_type: str, sent: Sequence[Message]) -> tuple[ReadReply, Usage]:
    """The reply to these messages and its cost. Raises ExtractionFailed, with `usage` if the endpoint counted it."""
    body = parse(raw, content_type)
    if not isinstance(body.get("content"), list):
        raise failures.unavailable("not_the_api")
    return read_message(body, sent)


def read_message(body: dict[str, Any], sent: Sequence[Message]) -> tuple[ReadReply, Usage]:
    """The same from a parsed message: its content blocks, its stop reason and its usage."""
    cost, content, reason = usage(body.get("usage")), body["content"], body.get("stop_reason")
    called = any(isinstance(block, dict) and block.get("type") == "tool_use" for block in content)
    failure = None if called and reason == "tool_use" else failures.from_stop_reason(reason)
    try:
        if failure is None:
            reply = unescaped(_reply(content, reason, sent), sent)
            if not reply.over:
                return reply, cost
            failure = Truncated(reply.update, reply.over)
        elif isinstance(failure, Truncated):
            reply = unescaped(_reply(content, reason, sent, partial=True), sent)
            failure.complete, failure.over = reply.update, reply.over
    except BadReply as error:  # of a truncated reply nothing is complete
        failure = failure or failures.bad_reply(error, stopped=reason is not None)
    failure.usage = cost
    raise failure


def parse(raw: bytes, content_type: str) -> dict[str, Any]:
    """The JSON object of a response. Raises ExtractionFailed for anything else, and for an error body."""
    if content_type.partition(";")[0].strip().lower() not in ("application/json", ""):
        raise failures.unavailable("not_the_api")
    try:
        body = decoder(Counter()).decode(raw.decode())  # a tool's input may have a key twice
    except (ValueError, RecursionError):
        raise failures.unavailable("not_the_api") from None
    if failures.is_error(body):
        raise failures.from_status(200, body, {})
    if not isinstance(body, dict):
        raise failures.unavailable("not_the_api")
    return body


def _reply(content: list[Any], reason: object, sent: Sequence[Message], *, partial: bool = False) -> ReadReply:
    """The update in the blocks: their joined text, or a tool call. Thinking and other blocks are skipped.

    Raises BadReply, also when a text and a tool call say different things.
    """
    blocks = [block for block in content if isinstance(block, dict)]
    texts = [
        text for block in blocks if block.get("type", "text") == "text" and isinstance(text := block.get("text"), str)
    ]
    counted = Counter(blocks=int(sum(map(bool, map(str.strip, texts))) > 1), stop_reason=int(reason not in _USUAL))
    replies = list(_calls(blocks, sent))
    counted["tool_call"] = len(replies)
    try:
        replies.append(read_text("".join(texts), _said(sent), partial=partial))
    except BadReply as error:  # a remark beside a tool call
        if not replies or error.code not in _NONE:
            raise
    first = replies[0]
    if any(reply.update != first.update for reply in replies):
        raise BadReply("two_objects")
    return replace(first, mended={**first.mended, **{kind: count for kind, count in counted.items() if count}})


def _calls(blocks: list[dict[str, Any]], sent: Sequence[Message]) -> Iterator[ReadReply]:
    """The updates that are the inputs of tool calls, as objects or as JSON text. Raises BadReply."""
    for block in blocks:
        if block.get("type") == "tool_use":
            try:
                given = block.get("input")
                yield read_text(given, _said(sent)) if isinstance(given, str) else read_object(given)
            except BadReply as error:
                if error.code not in _NONE:
                    raise


def _said(sent: Sequence[Message]) -> Iterator[str]:
    return (message.content for message in sent)


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
