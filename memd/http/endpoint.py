"""The way of one request: token, input, whose it is, the work, the answer. The same for every route."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from memd.errors import MemdError
from memd.events import Event, logger
from memd.http import inputs, problems
from memd.http.body import ClientGone, read_body
from memd.http.door import Door
from memd.http.inputs import MAX_BODY_BYTES, Input, Nothing
from memd.http.keyring import EVERYBODY, Token
from memd.http.keyring import Scope as TokenScope
from memd.http.problems import Problem, problem_of
from memd.push.validation import RawPush, parse_push

KEPT_QUERY_BYTES = 512
"""Longer query strings are read anew each time; of the others the last ones are kept as they were understood."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request that was let in: what it asks for, and by whom."""

    door: Door
    token: Token
    query: Any
    body: Any
    path: Mapping[str, str]
    headers: Headers


Run = Callable[[Call], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Operation:
    """One verb on one path. `scope` None: needs no token. `body` RawPush: in the format of the raw door."""

    method: str
    path: str
    name: str
    summary: str
    scope: TokenScope | None
    run: Run
    answers: Mapping[int, Any]
    query: type[Input] = Nothing
    body: type[Input] | type[RawPush] | None = None
    etag: bool = False
    refusals: tuple[int, ...] = ()
    about: str = field(default="", kw_only=True)


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; nobody on the way keeps it unless `headers` say so."""
    data = value if isinstance(value, bytes) else orjson.dumps(value, option=orjson.OPT_UTC_Z)
    return Response(data, status, {"cache-control": "no-store"} if headers is None else headers, "application/json")


class Endpoint:
    """All operations of one path, as an ASGI application."""

    def __init__(self, door: Door, operations: list[Operation]) -> None:
        self._door = door
        self._path = operations[0].path
        self._operations = {operation.method: operation for operation in operations}
        if "GET" in self._operations:
            self._operations["HEAD"] = self._operations["GET"]
        self._time_s = door.settings.http.request_timeout_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; whatever goes wrong is answered too."""
        began = time.perf_counter()
        headers = Headers(scope=scope)
        operation = self._operations.get(scope["method"])
        try:
            if operation is None:
                raise self._no_such_method()
            async with asyncio.timeout(self._time_s):
                token = self._token(operation, headers)
                raw = b""
                if operation.body is not None:
                    raw = await self._read(operation.body, headers, receive)
                response = await operation.run(await self._let_in(operation, token, scope, headers, raw))
        except ClientGone:
            return
        except Problem as problem:
            response = problem.response()
        except MemdError as error:
            response = problem_of(error).response()
        except TimeoutError:  # what a thread had begun it ends; asking again does no harm
            response = problems.unavailable("E_TIMEOUT", f"not done within {self._time_s:g} s; ask again").response()
        except Exception as error:  # noqa: BLE001  (a fault of ours: said in the log, by its place only)
            logger(part="http").error(Event.HTTP_FAILED, route=self._path, exc_info=error)
            response = Problem(500, "E_INTERNAL", "memd could not do this; its log says why").response()
        self._door.served.count(self._path, response.status_code, time.perf_counter() - began)
        await response(scope, receive, send)

    def _token(self, operation: Operation, headers: Headers) -> Token:
        if operation.scope is None:
            return EVERYBODY
        return self._door.token(headers.get("authorization"), operation.scope)

    async def _read(self, kind: type[Input] | type[RawPush], headers: Headers, receive: Receive) -> bytes:
        settings = self._door.settings
        limit = MAX_BODY_BYTES if issubclass(kind, Input) else settings.client.max_push_bytes
        return await read_body(headers, receive, limit, settings.http.read_timeout_s)

    async def _let_in(self, operation: Operation, token: Token, scope: Scope, headers: Headers, raw: bytes) -> Call:
        query = _query(operation.query, scope["query_string"])
        body = await self._body(operation.body, raw) if operation.body is not None else None
        if operation.scope not in (None, "status"):
            self._door.check_user(token, _whose(query, body))
        return Call(self._door, token, query, body, scope["path_params"], headers)

    async def _body(self, kind: type[Input] | type[RawPush], raw: bytes) -> Input | RawPush:
        if issubclass(kind, Input):
            return inputs.parse_body(kind, raw)
        # Of a large push the reading alone takes tens of milliseconds, in which the loop has others to answer.
        return await self._door.run(self._door.inbox, lambda: parse_push(raw, self._door.settings.client))

    def _no_such_method(self) -> Problem:
        allowed = ", ".join(sorted(self._operations))
        return Problem(405, "E_METHOD", f"here are {allowed}", headers={"allow": allowed})


def _query(model: type[Input], raw: bytes) -> Input:
    return _kept_query(model, raw) if len(raw) <= KEPT_QUERY_BYTES else inputs.parse_query(model, raw)


_kept_query = lru_cache(maxsize=4096)(inputs.parse_query)


def _whose(query: Input, body: Input | RawPush | None) -> str | None:
    """The user that a request names, wherever it does."""
    if body is None:
        return query.whose
    return body.key.user_id if isinstance(body, RawPush) else body.whose
