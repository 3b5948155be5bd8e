"""The application: the table of routes behind the Host check."""

from __future__ import annotations

from collections import defaultdict

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from memd.http.door import Door
from memd.http.endpoint import Endpoint, Operation
from memd.http.guard import Guard
from memd.http.openapi import document
from memd.http.problems import Problem
from memd.http.routes import operations


def build(door: Door) -> ASGIApp:
    """The ASGI application of one door."""
    table = operations()
    door.openapi = document(table, door.settings)
    paths: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in table:
        paths[operation.path].append(operation)
    routes = [Route(path, Endpoint(door, found)) for path, found in paths.items()]
    return Guard(Router(routes, redirect_slashes=False, default=_nowhere), door.settings.http)


async def _nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    response = Problem(404, "E_NO_ROUTE", "there is nothing at this path; see /openapi.json").response()
    await response(scope, receive, send)
