"""The party at fault when a call fails: every status, error type and header of the endpoint in one place.

The rule: ModelUnavailable (costs no attempt) when the endpoint is at fault, ContentRefused or ContentTooLong when this
content is. No sentence here repeats text of the request or of the reply.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from memd.errors import ContentRefused, ContentTooLong, ExtractionFailed, ModelUnavailable, NoUpdate, Truncated
from memd.extraction.update import BadReply

RETRY_AFTER_MAX_S = 86_400.0
"""A longer delay is cut to a day: the key may be usable again long before a mistaken date."""

NOT_FOUND = "model_not_found"
"""The code for status 404: of a model, or of a batch."""

REPLY_TOO_LARGE = "the answer exceeds extraction.max_reply_bytes"

_SENTENCES = {
    "unauthorized": "the endpoint refused the key",
    "payment": "the account has no credit left or has reached its spend limit",
    "forbidden": "the key does not permit this model or endpoint",
    NOT_FOUND: "the endpoint does not know this model or address",
    "timeout": "the endpoint did not answer completely in time",
    "conflict": "the endpoint reported a conflict",
    "rate_limited": "the endpoint limits the rate of requests",
    "server_error": "the endpoint failed",
    "overloaded": "the endpoint is overloaded",
    "connection": "the endpoint cannot be reached, or closed the connection early",
    "not_the_api": "the answer does not come from a Messages API",
    "batch_expired": "the batch expired before the endpoint processed this request",
    "batch_canceled": "the batch of this request was canceled",
    "no_key": "no API key is set: set extraction.api_key or ANTHROPIC_API_KEY",
}

_BY_STATUS = {
    401: "unauthorized",
    402: "payment",
    403: "forbidden",
    404: NOT_FOUND,
    408: "timeout",
    409: "conflict",
    429: "rate_limited",
    499: "connection",
    504: "timeout",
    529: "overloaded",
}
_BY_TYPE = {
    "authentication_error": "unauthorized",
    "billing_error": "payment",
    "permission_error": "forbidden",
    "not_found_error": NOT_FOUND,
    "timeout_error": "timeout",
    "conflict_error": "conflict",
    "rate_limit_error": "rate_limited",
    "api_error": "server_error",
    "overloaded_error": "overloaded",
}

# The API also uses 400 for "too long" and, at some gateways, for "no credit", without a code for either. So the words
# of the message decide; they are never repeated.
_TOO_LONG = re.compile(r"too (?:long|large|many (?:input )?tokens)|context (?:length|window)|maximum context", re.I)
_NO_CREDIT = re.compile(r"credit balance|insufficient (?:credit|quota|funds)|spend(?:ing)? limit", re.I)


def unavailable(code: str, retry_after_s: float | None = None) -> ModelUnavailable:
    """The error with this code of the table above."""
    return ModelUnavailable(code, _SENTENCES[code], retry_after_s)


def unreached(code: str) -> ModelUnavailable:
    """The error with this code of the table above, for a call that got no HTTP status."""
    return ModelUnavailable(code, _SENTENCES[code], reached=False)


def from_status(status: int, body: object, headers: Mapping[str, str]) -> ExtractionFailed:
    """The failure behind a status other than 2xx; also used for error bodies that come with status 200."""
    error = _error_of(body)
    retry_after_s = retry_after(headers, datetime.now(UTC))
    if status == 413 or error["type"] == "request_too_large":
        return too_long()
    if error["type"] == "billing_error" or error["code"].endswith("spend_limit_reached"):
        return unavailable("payment", retry_after_s)
    if status in (200, 400, 422):
        return _from_words(error, retry_after_s)
    fallback = "server_error" if status >= 500 else "not_the_api"
    return unavailable(_BY_STATUS.get(status, fallback), retry_after_s)


def too_long() -> ContentTooLong:
    """The error for a request that exceeds the model's context window or the API's size limit."""
    return ContentTooLong("too_long", "the request is too long for the model")


def is_error(body: object) -> bool:
    """Whether a JSON body is the API's error envelope."""
    return isinstance(body, dict) and (body.get("type") == "error" or isinstance(body.get("error"), dict))


def bad_reply(error: BadReply, *, stopped: bool = True) -> NoUpdate | Truncated:
    """The failure behind a text that is not one update. `stopped`: whether the endpoint said why the text ended.

    Without that, a text that breaks off counts as truncated.
    """
    if error.code == "incomplete" and not stopped:
        return Truncated()
    return NoUpdate("bad_reply", f"the answer is not a valid update: {error.sentence}")


def from_stop_reason(reason: object) -> ExtractionFailed | None:
    """The failure behind a stop reason; None when the answer may be whole, which its text then shows.

    Gateways to other APIs pass on their words: `stop`, `length`, `content_filter`, or no reason at all.
    """
    if reason in ("end_turn", "stop_sequence", "stop", None):
        return None
    if reason in ("max_tokens", "length"):
        return Truncated()
    if reason == "model_context_window_exceeded":
        return too_long()
    if reason in ("refusal", "content_filter"):
        return ContentRefused("refusal", "the model refused to answer")
    return NoUpdate("unexpected_stop", "the answer stopped for an unexpected reason")


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds to wait, from `retry-after-ms`, else from `retry-after` in seconds or as a date; None without either."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if math.isfinite(seconds):
            return min(max(seconds, 0.0), RETRY_AFTER_MAX_S)
    return _until(headers.get("retry-after", ""), now)


def _until(text: str, now: datetime) -> float | None:
    try:
        when = parsedate_to_datetime(text)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return min(max((when - now).total_seconds(), 0.0), RETRY_AFTER_MAX_S)


def _from_words(error: dict[str, str], retry_after_s: float | None) -> ExtractionFailed:
    if error["type"] in _BY_TYPE:
        return unavailable(_BY_TYPE[error["type"]], retry_after_s)
    if _NO_CREDIT.search(error["message"]):
        return unavailable("payment", retry_after_s)
    if _TOO_LONG.search(error["message"]):
        return too_long()
    return ContentRefused("bad_request", "the endpoint refused the request as invalid")


def _error_of(body: object) -> dict[str, str]:
    """Type, message and code of an error body; empty when missing."""
    error: Any = body.get("error") if isinstance(body, dict) else None
    error = error if isinstance(error, dict) else {}
    details = error.get("details")
    values = {
        "type": error.get("type"),
        "message": error.get("message"),
        "code": details.get("error_code") if isinstance(details, dict) else None,
    }
    return {name: value if isinstance(value, str) else "" for name, value in values.items()}
