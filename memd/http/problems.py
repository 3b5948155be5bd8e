"""Refusals as RFC 9457 problem details: status, code, a sentence, the field and the limit; never a value."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson
from starlette.responses import Response

from memd.errors import (
    Conflict,
    DocumentDamaged,
    FactUnknown,
    InboxFull,
    InboxUnavailable,
    MemdError,
    NotReady,
    OtherStore,
    Rejected,
    StoreUnavailable,
)

MEDIA_TYPE = "application/problem+json"
RETRY_S = 5
"""`Retry-After`, in seconds, when something is full or cannot be reached."""

_FORM = frozenset({"E_JSON", "E_UTF8", "E_SURROGATE", "E_DUPLICATE_KEY", "E_NUMBER", "E_DEPTH"})
"""Codes of malformed JSON: 400. Valid JSON with invalid content is 422."""

_OF_RIGHTS = {"E_PROJECT_UNKNOWN": 404, "E_FORBIDDEN": 403, "E_PROJECT_EXISTS": 409, "E_PROJECT_CLOSED": 409}
"""Codes of what the asker may not do, or nobody any more, by status."""

_UNAVAILABLE: tuple[tuple[type[MemdError], str], ...] = (
    (InboxFull, "E_INBOX_FULL"),
    (NotReady, "E_INBOX_NOT_READY"),
    (InboxUnavailable, "E_INBOX_UNAVAILABLE"),
    (StoreUnavailable, "E_STORE_UNAVAILABLE"),
)


class Problem(Exception):
    """A refusal, raised to be sent to the client."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        field: str = "",
        limit: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})
        body: dict[str, Any] = {
            "type": f"urn:memd:problem:{code}",
            "title": HTTPStatus(status).phrase,
            "status": status,
            "detail": detail,
            "code": code,
        }
        if field:
            body["field"] = field
        if limit is not None:
            body["limit"] = limit
        self.body = orjson.dumps(body)

    def response(self) -> Response:
        """The HTTP response."""
        return Response(self.body, self.status, {"cache-control": "no-store", **self.headers}, MEDIA_TYPE)


def not_found() -> Problem:
    """The same refusal for missing items and for items hidden from this token, so that it reveals nothing."""
    return Problem(404, "E_NOT_FOUND", "not found, or not visible to this token")


def unauthorized() -> Problem:
    """The same refusal for a missing, malformed, revoked or wrong token."""
    challenge = {"www-authenticate": 'Bearer realm="memd"'}
    return Problem(401, "E_TOKEN", "send a valid token: Authorization: Bearer …", headers=challenge)


def unavailable(code: str, detail: str) -> Problem:
    """A temporary refusal: the client may repeat the request, which is safe for every operation."""
    return Problem(503, code, detail, headers={"retry-after": str(RETRY_S)})


def internal() -> Problem:
    """A bug, or an error that a client should not see."""
    return Problem(500, "E_INTERNAL", "memd failed to do this; see the server's log")


def problem_of(error: MemdError) -> Problem:
    """The refusal for an error of the library."""
    if isinstance(error, FactUnknown):
        return not_found()
    if isinstance(error, Rejected):
        if error.code in _OF_RIGHTS:
            return Problem(_OF_RIGHTS[error.code], error.code, _sentence(error), field=error.field)
        status = 413 if error.code == "E_PUSH_SIZE" else 400 if error.code in _FORM else 422
        return Problem(status, error.code, _sentence(error), field=error.field, limit=error.limit)
    if isinstance(error, Conflict):
        return Problem(409, "E_CONFLICT", "this memory was changed at the same time; try again")
    for kind, code in _UNAVAILABLE:
        if isinstance(error, kind):
            return unavailable(code, _sentence(error))
    if isinstance(error, OtherStore):
        return Problem(500, "E_OTHER_STORE", "memd's inbox belongs to another store; nothing was done")
    if isinstance(error, DocumentDamaged):
        return Problem(500, "E_DOCUMENT", _sentence(error))
    return internal()


def _sentence(error: MemdError) -> str:
    """An error's message without its code, and without the address of the server behind us."""
    text = error.for_clients if isinstance(error, InboxUnavailable) else str(error)
    code, colon, sentence = text.partition(": ")
    return sentence if colon and code.startswith("E_") and code.isupper() else text
