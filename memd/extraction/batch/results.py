"""Results of batches: parses a result, finds who is at fault when it has no message, checks that it fits a claim.

Nothing here needs the SDK. The inbox keeps each answer unchanged until its key is claimed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import orjson

from memd.context import Message, digest
from memd.errors import ContentRefused, ExtractionFailed, ModelUnavailable, Truncated
from memd.extraction import envelope, failures
from memd.extraction.prompt import PROMPT_VERSION
from memd.extraction.protocol import Extraction, Usage
from memd.extraction.update import Update
from memd.inbox.claim import PaidAnswer

TOO_LARGE = "memd_too_large"
"""The error type kept in place of an answer with too many bytes."""

KEPT = "kept"
"""The kind of a paid answer that could not be stored."""

PIECES = "pieces"
"""The kind of paid answers to pieces of a message, of which others have none yet."""


@dataclass(frozen=True, slots=True)
class BatchResult:
    """One line of a batch's results. `body`: the message when `kind` is `succeeded`, the error when it is `errored`."""

    request_id: str
    kind: str
    body: dict[str, Any]

    @property
    def failure(self) -> ExtractionFailed | None:
        """The reason why there is no message; None when there is a message, even an unusable one."""
        if self.kind == "succeeded":
            return None
        if self.kind == "expired":
            return failures.unavailable("batch_expired")
        if self.kind == "canceled":
            return failures.unavailable("batch_canceled")
        return _failure(self.body)

    @property
    def usage(self) -> Usage:
        """The tokens it cost; zero without a message."""
        return envelope.usage(self.body.get("usage")) if self.kind == "succeeded" else Usage()


def parse_line(line: bytes, max_bytes: int) -> BatchResult | None:
    """Parse one line; None when it is not a result. A line over `max_bytes` becomes an `errored` result."""
    try:
        row = orjson.loads(line)
        request_id, result = row["custom_id"], row["result"]
        kind = result["type"]
        body = result.get("message") if kind == "succeeded" else result.get("error")
    except (ValueError, TypeError, KeyError, AttributeError):  # its request stays unanswered and is sent again
        return None
    if not isinstance(request_id, str) or kind not in ("succeeded", "errored", "canceled", "expired"):
        return None
    if len(line) > max_bytes:
        return BatchResult(request_id, "errored", {"type": TOO_LARGE})
    return BatchResult(request_id, kind, body if isinstance(body, dict) else {})


_AT_ONCE = 50
"""The smallest bound of a list in an update."""


def pack(result: BatchResult) -> bytes:
    """The answer as the inbox keeps it."""
    return orjson.dumps({"kind": result.kind, "body": result.body})


def keep(extraction: Extraction, sent: Sequence[Message]) -> PaidAnswer:
    """The answer to a call as the inbox keeps it until its update can be stored."""
    name = fingerprint(sent, extraction.model, extraction.prompt_version)
    return PaidAnswer(name, orjson.dumps({"kind": KEPT, **_packed(extraction)}))


def keep_pieces(pieces: Mapping[str, Extraction | None], whole: Sequence[Message], model: str) -> PaidAnswer:
    """The answers to pieces of a message, by `asked`, as the inbox keeps them until the others have one, too.

    None stands for a piece whose reply was too long.
    """
    body = {name: _packed(extraction) if extraction else None for name, extraction in pieces.items()}
    return PaidAnswer(fingerprint(whole, model), orjson.dumps({"kind": PIECES, "body": body}))


def kept(answer: PaidAnswer, sent: Sequence[Message]) -> Extraction | None:
    """The extraction of these messages in an answer packed by `keep` or `keep_pieces`; its usage is counted already.

    None when the answer holds nothing for them, and for a batch's answer. Answers that an older version kept say
    nothing about their form.
    Raises Truncated for messages, and for a piece, whose reply was too long.
    """
    packed, whole = orjson.loads(answer.raw), fits(answer, sent)
    if packed["kind"] == PIECES:
        pieces, name = packed["body"], asked(sent)
        if whole or (name in pieces and pieces[name] is None):
            raise Truncated
        packed = pieces.get(name)
    elif packed["kind"] != KEPT or not whole:
        packed = None
    if packed is None:
        return None
    _, prompt_version, model = answer.fingerprint.split(" ", 2)
    update, malformed = _update(packed["body"]), tuple(packed.get("malformed", ()))
    return Extraction(
        update, Usage(), model, prompt_version, packed.get("mended", {}), malformed, packed.get("over", 0)
    )


def _packed(extraction: Extraction) -> dict[str, Any]:
    body = msgspec.to_builtins(extraction.update)
    return {"body": body, "mended": dict(extraction.mended), "malformed": extraction.malformed, "over": extraction.over}


def _update(body: dict[str, Any]) -> Update:
    """A kept update. That of a message which was asked about in pieces may have more items than one reply may."""
    longest = max((len(value) for value in body.values() if isinstance(value, list)), default=0)
    first, *others = [
        msgspec.convert(
            {name: value[at : at + _AT_ONCE] if isinstance(value, list) else value for name, value in body.items()},
            Update,
        )
        for at in range(0, max(longest, 1), _AT_ONCE)
    ]
    lists = (name for name in Update.__struct_fields__ if isinstance(getattr(first, name), tuple))
    return msgspec.structs.replace(
        first, **{name: tuple(item for part in (first, *others) for item in getattr(part, name)) for name in lists}
    )


def fingerprint(messages: Sequence[Message], model: str, prompt_version: str = PROMPT_VERSION) -> str:
    """Identifies a request: a digest of its messages, the version of the prompt, and the model."""
    parts = (part for message in messages for part in (message.identity, message.content))
    return f"{digest('asked', *parts)} {prompt_version} {model}"


def asked(messages: Sequence[Message]) -> str:
    """The part of a fingerprint that stands for the messages."""
    return fingerprint(messages, "").partition(" ")[0]


def fits(answer: PaidAnswer, messages: Sequence[Message]) -> bool:
    """Whether the request of this answer had exactly these messages, in this order, with this text."""
    return answer.fingerprint.partition(" ")[0] == asked(messages)


def read(answer: PaidAnswer, sent: Sequence[Message]) -> Extraction:
    """The extraction in an answer. Raises ContentRefused or ContentTooLong."""
    packed = orjson.loads(answer.raw)
    _, prompt_version, model = answer.fingerprint.split(" ", 2)
    try:
        if packed["kind"] != "succeeded":
            raise _failure(packed["body"])
        reply, usage = envelope.read(orjson.dumps(packed["body"]), "application/json", sent)
    except ModelUnavailable as error:  # waiting would not change this answer: discarding it costs an attempt
        raise ContentRefused(error.code, "the answer does not come from a Messages API") from None
    return Extraction(reply.update, usage, model, prompt_version, reply.mended, reply.malformed)


def _failure(body: dict[str, Any]) -> ExtractionFailed:
    if body.get("type") == TOO_LARGE:
        return ContentRefused("reply_too_large", failures.REPLY_TOO_LARGE)
    return failures.from_status(200, body, {})
