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

NO_OPENAI_SDK = "extraction.extractor is openai, and its SDK is not installed: pip install 'memd[openai]'"

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
    "not_the_api": "the answer does not come from the API that extraction.extractor names",
    "batch_expired": "the batch expired before the endpoint processed this request",
    "batch_canceled": "the batch of this request was canceled",
    "no_key": "no API key is set: set extraction.api_key, or ANTHROPIC_API_KEY or OPENAI_API_KEY for your extractor",
    "max_tokens": "the model cannot write as many tokens as extraction.max_tokens says: set a lower number",
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
    "insufficient_quota": "payment",
    "server_error": "server_error",
}
_OUTAGES = ("overloaded_error", "rate_limit_error", "timeout_error")
"""Types that say of a 5xx that the server, and not a field of the request, is at fault."""

_BY_CODE = {
    "billing_hard_limit_reached": "payment",
    "billing_not_active": "payment",
    "credit_balance_exhausted": "payment",
    "insufficient_quota": "payment",
    "invalid_api_key": "unauthorized",
    "model_not_found": NOT_FOUND,
    "organization_spend_limit_exceeded": "payment",
    "organization_usage_limit_exceeded": "payment",
    "project_spend_limit_exceeded": "payment",
    "rate_limit_exceeded": "rate_limited",
    "slow_down": "rate_limited",
}
"""The codes of OpenAI's errors. The type of an error says less, and its status sometimes another thing."""

_TOO_LONG_CODES = ("context_length_exceeded", "string_above_max_length")
_FILTERED_CODES = ("content_filter", "content_policy_violation")

# The API also uses 400 for "too long" and, at some gateways, for "no credit", without a code for either. So the words
# of the message decide; they are never repeated.
_TOO_LONG = re.compile(r"too (?:long|large|many (?:input )?tokens)|context (?:length|window)|maximum context", re.I)
_TOO_LARGE_A_RATE = re.compile(r"request too large", re.I)
_NO_CREDIT = re.compile(r"credit balance|insufficient (?:credit|quota|funds)|spend(?:ing)? limit", re.I)


_FORMAT = re.compile(
    r"response[_ ]format|output_config|json[_ ]schema|structured[_ ]output|guided[_ ]"
    r"|(?:pars|compil)\w* (?:a |the )?(?:json )?grammar",
    re.I,
)
_LENGTH = re.compile(r"max_(?:completion_)?tokens|in the completion|requested \d+ output tokens", re.I)
_CONTEXT = re.compile(r"maximum context length (?:is |of )?(\d+)", re.I)
_ASKED = re.compile(r"(\d+) in the completion|requested (\d+) output tokens|too large: (\d+)", re.I)
_NO_ROOM = re.compile(r"must be at least 1, got -?\d+", re.I)
MESSAGE_CHARS = 2_000
"""No more of an error's message is looked at."""

FORMAT, LENGTH = "response_format", "max_tokens"
"""The request fields that endpoints refuse: the schema, and the limit of the reply."""


class FieldRefused(ContentRefused):
    """The endpoint refused a field of the request, FORMAT or LENGTH, whatever its name is in the protocol.

    `final`: the failure where the field cannot be left out. `sure`: whether the status says so, too. A server that
    fails may only have failed: then the field is at fault if the same request passes without it.
    """

    def __init__(self, field: str, final: ExtractionFailed, *, sure: bool = True) -> None:
        super().__init__("bad_request", "the endpoint refused a field of the request")
        self.field = field
        self.final = final
        self.sure = sure


def unavailable(code: str, retry_after_s: float | None = None) -> ModelUnavailable:
    """The error with this code of the table above."""
    return ModelUnavailable(code, _SENTENCES[code], retry_after_s)


def unreached(code: str) -> ModelUnavailable:
    """The error with this code of the table above, for a call that got no HTTP status."""
    return ModelUnavailable(code, _SENTENCES[code], reached=False)


def from_status(status: int, body: object, headers: Mapping[str, str]) -> ExtractionFailed:
    """The failure behind a status other than 2xx; also used for error bodies that come with status 200."""
    error = _error_of(body)
    status = _status_inside(body) if status == 200 else status
    retry_after_s = retry_after(headers, datetime.now(UTC))
    if status == 413 or error["type"] == "request_too_large" or error["code"] in _TOO_LONG_CODES:
        return _refused_field(error) or too_long()
    if status == 429 and _TOO_LARGE_A_RATE.search(error["message"]):  # alone it exceeds a minute's tokens
        return too_long()
    if error["type"] == "billing_error" or error["code"].endswith("spend_limit_reached"):
        return unavailable("payment", retry_after_s)
    if code := _BY_CODE.get(error["code"]) or _BY_CODE.get(error["type"]):
        return unavailable(code, retry_after_s)
    if status in (200, 400, 422):
        return _from_words(error, retry_after_s)
    if status == 501 and (refused := _refused_field(error)):
        return refused
    failure = unavailable(_BY_STATUS.get(status, "server_error" if status >= 500 else "not_the_api"), retry_after_s)
    if failure.code == "server_error" and error["type"] not in _OUTAGES and _names_format(error):
        return FieldRefused(FORMAT, failure, sure=False)
    return failure


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
    if error["code"] in _FILTERED_CODES:
        return ContentRefused("refusal", "the endpoint's filter refused the content")
    if refused := _refused_field(error):
        return refused
    if _NO_CREDIT.search(error["message"]):
        return unavailable("payment", retry_after_s)
    if _TOO_LONG.search(error["message"]):
        return too_long()
    return ContentRefused("bad_request", "the endpoint refused the request as invalid")


def _status_inside(body: object) -> int:
    """The status that a router puts into the body where its own was 200 already."""
    error = body.get("error") if isinstance(body, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 200


def _names_format(error: dict[str, str]) -> bool:
    return _FORMAT.search(f"{error['param']} {error['message']}") is not None


def _refused_field(error: dict[str, str]) -> FieldRefused | None:
    """The field that the endpoint refused, by the error's `param` or by its message."""
    words = f"{error['param']} {error['message']}"
    if _names_format(error):
        return FieldRefused(FORMAT, ContentRefused("bad_request", "the endpoint refused the request as invalid"))
    if not _LENGTH.search(words):
        return None
    context, asked = _CONTEXT.search(words), _ASKED.search(words)
    short = context is not None and (asked is None or 2 * int(next(filter(None, asked.groups()))) < int(context[1]))
    return FieldRefused(LENGTH, too_long() if short or _NO_ROOM.search(words) else unavailable("max_tokens"))


def _error_of(body: object) -> dict[str, str]:
    """Type, message, code and `param` of an error body, in the forms that servers give it; empty when missing.

    `{"error": {...}}` (Anthropic, OpenAI), `{"error": "..."}` (LM Studio), the fields without an envelope (vLLM),
    `{"detail": ...}` (FastAPI, which names the field in `loc`).
    """
    if not isinstance(body, dict):
        return _texts({})
    error: Any = body.get("error", body)
    if isinstance(error, str):
        return _texts({"message": error})
    error = error if isinstance(error, dict) else {}
    if (detail := error.get("detail")) is not None:
        rows = [row for row in detail if isinstance(row, dict)] if isinstance(detail, list) else []
        said = [f"{row.get('loc')} {row.get('msg')}" for row in rows] or [detail if isinstance(detail, str) else ""]
        return _texts({"message": "; ".join(said)})
    details = error.get("details")
    inner = details.get("error_code") if isinstance(details, dict) else None
    return _texts({**error, "code": error.get("code") if inner is None else inner})


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    values = {name: fields.get(name) for name in ("type", "message", "code", "param")}
    return {name: value[:MESSAGE_CHARS] if isinstance(value, str) else "" for name, value in values.items()}
