"""Answers to requests in batches: what one says, whose fault it is, and whether it is about what a claim holds now.

Nothing here needs the SDK: an answer is kept in the inbox as the endpoint gave it, and read when its key is claimed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from memd.context import Message, digest
from memd.errors import ContentRefused, ExtractionFailed, ModelUnavailable
from memd.extraction import envelope, failures
from memd.extraction.prompt import PROMPT_VERSION
from memd.extraction.protocol import Extraction, Usage
from memd.inbox.claim import Answer

TOO_LARGE = "memd_too_large"
"""Stands for the error of an answer that was not kept, as it has too many bytes."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """One line of a batch's results. `body`: the message of one that succeeded, the error of another."""

    request_id: str
    kind: str
    body: dict[str, Any]

    @property
    def failure(self) -> ExtractionFailed | None:
        """Whose fault it is that there is no message; None when there is one, whatever it says."""
        if self.kind == "succeeded":
            return None
        if self.kind == "expired":
            return failures.unavailable("batch_expired")
        if self.kind == "canceled":
            return failures.unavailable("batch_canceled")
        return _failure(self.body)

    @property
    def usage(self) -> Usage:
        """What it has cost: nothing, unless there is a message."""
        return envelope.usage(self.body.get("usage")) if self.kind == "succeeded" else Usage()


def parse_line(line: bytes, max_bytes: int) -> BatchResult | None:
    """One line; None when it is not one of a batch's results. One that is too large is kept as a failure."""
    try:
        row = orjson.loads(line)
        request_id, result = row["custom_id"], row["result"]
        kind = result["type"]
        body = result.get("message") if kind == "succeeded" else result.get("error")
    except (ValueError, TypeError, KeyError, AttributeError):  # asked anew, as no answer has come for it
        return None
    if not isinstance(request_id, str) or kind not in ("succeeded", "errored", "canceled", "expired"):
        return None
    if len(line) > max_bytes:
        return BatchResult(request_id, "errored", {"type": TOO_LARGE})
    return BatchResult(request_id, kind, body if isinstance(body, dict) else {})


def pack(result: BatchResult) -> bytes:
    """An answer as the inbox keeps it."""
    return orjson.dumps({"kind": result.kind, "body": result.body})


def fingerprint(messages: Sequence[Message], model: str) -> str:
    """What a request is about, in one word, by which version of the prompt it asks, and which model."""
    parts = (part for message in messages for part in (message.identity, message.content))
    return f"{digest('asked', *parts)} {PROMPT_VERSION} {model}"


def fits(answer: Answer, messages: Sequence[Message]) -> bool:
    """Whether an answer is about exactly these messages, in this order, with this text."""
    return answer.fingerprint.partition(" ")[0] == fingerprint(messages, "").partition(" ")[0]


def read(answer: Answer, sent: Sequence[Message]) -> Extraction:
    """The extraction that an answer is. Raises ContentRefused or ContentTooLong."""
    packed = orjson.loads(answer.raw)
    _, prompt_version, model = answer.fingerprint.split(" ", 2)
    try:
        if packed["kind"] != "succeeded":
            raise _failure(packed["body"])
        update, usage = envelope.read(orjson.dumps(packed["body"]), "application/json", sent)
    except ModelUnavailable as error:  # no call would mend this answer: it is dropped at the cost of an attempt
        raise ContentRefused(error.code, "the answer is not one of a Messages API") from None
    return Extraction(update, usage, model, prompt_version)


def _failure(body: dict[str, Any]) -> ExtractionFailed:
    if body.get("type") == TOO_LARGE:
        return ContentRefused("reply_too_large", "the answer has more bytes than max_reply_bytes")
    return failures.from_status(200, body, {})
