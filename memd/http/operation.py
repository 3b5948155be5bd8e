"""One request, step by step, the same for every route: authenticate, parse, authorize, run, respond."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memd.errors import MemdError
from memd.events import Event, logger
from memd.http import fields, problems
from memd.http.fields import MAX_BODY_BYTES, Fields, NoFields
from memd.http.keyring import ANYBODY, Token
from memd.http.keyring import Scope as TokenScope
from memd.http.problems import Problem, problem_of
from memd.http.request_body import ClientGone, Place, read_body
from memd.http.service import Service
from memd.push.validation import RawPush, parse_push

CACHED_QUERY_BYTES = 512
"""Query strings up to this length are cached once parsed; longer ones are parsed each time."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request that has passed all checks."""

    service: Service
    token: Token
    query: Any
    body: Any
    path: Mapping[str, str]
    headers: Headers


class Tag(NamedTuple):
    """A group of operations, and what it is about."""

    name: str
    about: str


NO_TAG = Tag("", "")


@dataclass(frozen=True, slots=True)
class Operation:
    """One method on one path, as it is served and documented.

    `lists_users`: where the request names no user, it shows what is of the token's users. `tag`: its group.

    `scope` None: needs no token. `body` RawPush: a push, in the format of the raw list. `responses`: by status, the
    type or JSON schema of the body, a media type, or None. `refusals`: statuses besides those that every operation has.
    """

    method: str
    path: str
    name: str
    summary: str
    scope: TokenScope | None
    run: Callable[[HttpRequest], Awaitable[Response]]
    responses: Mapping[int, Any]
    query: type[Fields] = NoFields
    body: type[Fields] | type[RawPush] | None = None
    etag: bool = False
    refusals: tuple[int, ...] = ()
    lists_users: bool = False
    tag: Tag = field(default=NO_TAG, kw_only=True)
    description: str = field(default="", kw_only=True)


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response; no cache stores it unless `headers` say so."""
    data = value if isinstance(value, bytes) else orjson.dumps(value, option=orjson.OPT_UTC_Z)
    return Response(data, status, {"cache-control": "no-store"} if headers is None else headers, "application/json")


class Resource:
    """All operations of one path, as an ASGI application."""

    def __init__(self, service: Service, operations: list[Operation]) -> None:
        self._service = service
        self._path = operations[0].path
        self._operations = {operation.method: operation for operation in operations}
        if "GET" in self._operations:
            self._operations["HEAD"] = self._operations["GET"]
        self._timeout_s = service.settings.http.request_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request, whatever goes wrong."""
        began = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout_s):
                response = await self._respond(scope, receive)
        except ClientGone:
            return
        except Problem as problem:
            response = problem.response()
        except MemdError as error:
            response = problem_of(error).response()
        except TimeoutError:  # work started in a thread runs to completion; repeating the request does no harm
            detail = f"not done within {self._timeout_s:g} s; try again"
            response = problems.unavailable("E_TIMEOUT", detail).response()
        except Exception as error:  # noqa: BLE001  (a bug of ours: the log gets its place, the client no details)
            logger(part="http").error(Event.HTTP_FAILED, route=self._path, exc_info=error)
            response = problems.internal().response()
        self._service.served.count(self._path, response.status_code, time.perf_counter() - began)
        await response(scope, receive, send)

    async def _respond(self, scope: Scope, receive: Receive) -> Response:
        headers = Headers(scope=scope)
        operation = self._operations.get(scope["method"])
        if operation is None:
            raise self._no_such_method()
        token = self._authenticate(operation, headers)
        with Place(self._service.large_bodies) as place:
            raw = b"" if operation.body is None else await self._read(operation.body, headers, receive, place)
            return await operation.run(await self._checked(operation, token, scope, headers, raw))

    def _authenticate(self, operation: Operation, headers: Headers) -> Token:
        if operation.scope is None:
            return ANYBODY
        return self._service.authenticate(headers.get("authorization"), operation.scope)

    async def _read(
        self, kind: type[Fields] | type[RawPush], headers: Headers, receive: Receive, place: Place
    ) -> bytes:
        settings = self._service.settings
        limit = kind.max_bytes if issubclass(kind, Fields) else settings.client.read_bytes
        return await read_body(headers, receive, limit, settings.http.read_timeout_s, place)

    async def _checked(
        self, operation: Operation, token: Token, scope: Scope, headers: Headers, raw: bytes
    ) -> HttpRequest:
        query = _parse_query(operation.query, scope["query_string"])
        body = await self._parse_body(operation.body, raw) if operation.body is not None else None
        if operation.scope not in (None, "status"):
            user_id = _user_of(query, body)
            if user_id or not operation.lists_users or self._service.settings.store.shared:
                self._service.authorize_user(token, user_id)
        return HttpRequest(self._service, token, query, body, scope["path_params"], headers)

    async def _parse_body(self, kind: type[Fields] | type[RawPush], raw: bytes) -> Fields | RawPush:
        if issubclass(kind, Fields) and len(raw) <= MAX_BODY_BYTES:
            return fields.parse_body(kind, raw)
        # Parsing a large body takes tens of milliseconds, too long for the event loop.
        if issubclass(kind, Fields):
            return await self._service.run(self._service.inbox, lambda: fields.parse_body(kind, raw))
        return await self._service.run(self._service.inbox, lambda: parse_push(raw, self._service.settings.client))

    def _no_such_method(self) -> Problem:
        allowed = ", ".join(sorted(self._operations))
        return Problem(405, "E_METHOD", f"the methods of this path are {allowed}", headers={"allow": allowed})


def _parse_query(model: type[Fields], raw: bytes) -> Fields:
    return _cached_query(model, raw) if len(raw) <= CACHED_QUERY_BYTES else fields.parse_query(model, raw)


_cached_query = lru_cache(maxsize=4096)(fields.parse_query)


def _user_of(query: Fields, body: Fields | RawPush | None) -> str | None:
    """The user that a request names, in its query or in its body; None: all users."""
    if body is None:
        return query.user
    return body.key.user_id if isinstance(body, RawPush) else body.user
