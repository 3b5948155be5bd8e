"""Refusals as RFC 9457 has them: status, code, a sentence, the field and the limit; never a value."""

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
    Rejected,
    StoreUnavailable,
)

MEDIA_TYPE = "application/problem+json"
RETRY_S = 5
"""Seconds after which it is worth asking again when something is out of reach or full."""

_FORM = frozenset({"E_JSON", "E_UTF8", "E_SURROGATE", "E_DUPLICATE_KEY", "E_NUMBER", "E_DEPTH"})
"""Codes of what is no JSON that memd reads: 400. What is read and refused for what it says is 422."""

_UNAVAILABLE: tuple[tuple[type[MemdError], str], ...] = (
    (InboxFull, "E_INBOX_FULL"),
    (NotReady, "E_INBOX_NOT_READY"),
    (InboxUnavailable, "E_INBOX_UNAVAILABLE"),
    (StoreUnavailable, "E_STORE_UNAVAILABLE"),
)


class Problem(Exception):
    """A refusal on its way to the client."""

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
        """The answer that says so."""
        return Response(self.body, self.status, {"cache-control": "no-store", **self.headers}, MEDIA_TYPE)


def not_found() -> Problem:
    """One answer for what is not there and for what this token may not see, so that it tells nothing."""
    return Problem(404, "E_NOT_FOUND", "there is nothing here that this token may see")


def unauthorized() -> Problem:
    """One answer for no token, a malformed one, one taken away and one with a wrong secret."""
    challenge = {"www-authenticate": 'Bearer realm="memd"'}
    return Problem(401, "E_TOKEN", "a valid token is needed: Authorization: Bearer …", headers=challenge)


def unavailable(code: str, detail: str) -> Problem:
    """Not now: the same request may be sent again, as every one of memd's may."""
    return Problem(503, code, detail, headers={"retry-after": str(RETRY_S)})


def problem_of(error: MemdError) -> Problem:
    """What an error of the library is to a client."""
    if isinstance(error, FactUnknown):
        return not_found()
    if isinstance(error, Rejected):
        status = 413 if error.code == "E_PUSH_SIZE" else 400 if error.code in _FORM else 422
        return Problem(status, error.code, _sentence(error), field=error.field, limit=error.limit)
    if isinstance(error, Conflict):
        return Problem(409, "E_CONFLICT", "somebody else changed this memory at the same time; ask again")
    for kind, code in _UNAVAILABLE:
        if isinstance(error, kind):
            return unavailable(code, _sentence(error))
    if isinstance(error, DocumentDamaged):
        return Problem(500, "E_DOCUMENT", _sentence(error))
    return Problem(500, "E_INTERNAL", "memd could not do this; its log says why")


def _sentence(error: MemdError) -> str:
    """The words of an error without the code before them."""
    code, colon, sentence = str(error).partition(": ")
    return sentence if colon and code.startswith("E_") and code.isupper() else str(error)
