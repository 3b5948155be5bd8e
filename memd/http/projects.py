"""Operations on projects. The token names the user who asks, and the user's role decides; see docs/projects.md."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

from starlette.responses import Response

from memd.errors import Rejected
from memd.http.operation import HttpRequest, json_response
from memd.http.paging import page
from memd.http.project_fields import (
    MemberRole,
    MyProjects,
    NewProject,
    NewProjectFact,
    OneMember,
    OneProject,
    ProjectFactEdit,
    ProjectFacts,
    ProjectPeriod,
    ProjectProfileSet,
    ProjectProfileUnset,
)
from memd.projects.project import Project

T = TypeVar("T")

UNKNOWN = "E_PROJECT_UNKNOWN"
REFUSAL_S = 0.05
"""Seconds that the refusal of a project takes at least: to read the document of one that exists takes a few
milliseconds, which would tell that it does."""


async def listed(request: HttpRequest) -> Response:
    """The projects of a user."""
    query: MyProjects = request.query
    memd, app = request.service.memd, request.token.app or None
    rows = await request.service.run(request.service.files, lambda: memd.projects(query.user_id, app=app))
    return json_response({"projects": [row._asdict() for row in rows]})


async def make(request: HttpRequest) -> Response:
    """Make a project of the token's app."""
    body: NewProject = request.body
    memd, app = request.service.memd, request.token.app
    await request.service.run(request.service.files, lambda: memd.project(body.project_id).make(body.user_id, app=app))
    return json_response({"id": body.project_id}, 201)


async def close(request: HttpRequest) -> Response:
    """Close a project for good."""
    await _with(request, request.query, Project.close)
    return _done()


async def members(request: HttpRequest) -> Response:
    """The members of a project."""
    found = await _with(request, request.query, Project.members)
    return json_response({"members": [{"user_id": user, **one._asdict()} for user, one in found.items()]})


async def set_member(request: HttpRequest) -> Response:
    """Add a member, or give one another role."""
    body: MemberRole = request.body
    await _with(request, body, lambda project: project.set_member(body.member, body.role))
    return json_response({"user_id": body.member, "role": body.role})


async def remove_member(request: HttpRequest) -> Response:
    """Remove a member."""
    query: OneMember = request.query
    await _with(request, query, lambda project: project.remove_member(query.member))
    return _done()


async def facts(request: HttpRequest) -> Response:
    """The facts that the asker may read."""
    query: ProjectFacts = request.query
    rows = await _with(request, query, lambda project: project.facts(**query.filters))
    shown, following = page(rows, query.after, query.limit)
    return json_response({"facts": [_without_messages(row) for row in shown], "next": following})


async def why(request: HttpRequest) -> Response:
    """Where a fact comes from; turns only with the scope `said`."""
    found = await _with(request, request.query, lambda project: project.why(request.path["fact_id"]))
    kept = ("by", "quote", "saidAt", *(("thread", "turn") if "said" in request.token.scopes else ()))
    found["evidence"] = [{name: entry[name] for name in kept if name in entry} for entry in found["evidence"]]
    told = {name: [_without_messages(fact) for fact in found[name]] for name in ("disputes", "replaced")}
    return json_response({**found, **told, "fact": _without_messages(found["fact"])})


async def timeline(request: HttpRequest) -> Response:
    """Decisions, events and goals by day."""
    query: ProjectPeriod = request.query
    found = await _with(
        request, query, lambda project: project.timeline(since=query.since or "", until=query.until or "")
    )
    shown, following = page(found, query.after, query.limit)
    return json_response({"timeline": [moment._asdict() for moment in shown], "next": following})


async def add_fact(request: HttpRequest) -> Response:
    """Add a fact by hand."""
    body: NewProjectFact = request.body
    fact_id = await _with(request, body, lambda project: project.add_fact(body.content, category=body.category))
    return json_response({"id": fact_id}, 201)


async def edit_fact(request: HttpRequest) -> Response:
    """Change a fact."""
    body: ProjectFactEdit = request.body
    fact_id = request.path["fact_id"]
    await _with(
        request,
        body,
        lambda project: project.edit_fact(
            fact_id, content=body.content, category=body.category, visibility=body.visibility
        ),
    )
    return json_response({"id": fact_id})


async def remove_fact(request: HttpRequest) -> Response:
    """Remove a fact for good."""
    await _with(request, request.query, lambda project: project.remove_fact(request.path["fact_id"]))
    return _done()


async def profile(request: HttpRequest) -> Response:
    """The project's profile, with its key decisions."""
    return json_response({"profile": await _with(request, request.query, Project.profile)})


async def set_profile(request: HttpRequest) -> Response:
    """Set a field of the project's profile."""
    body: ProjectProfileSet = request.body
    await _with(request, body, lambda project: project.set_profile(body.field, body.value))
    return json_response({"field": body.field})


async def unset_profile(request: HttpRequest) -> Response:
    """Take a field out of the project's profile."""
    query: ProjectProfileUnset = request.query
    await _with(request, query, lambda project: project.unset_profile(query.field))
    return _done()


async def publish(request: HttpRequest) -> Response:
    """Share a fact that the asker alone knows."""
    return await _moved(request, lambda project: project.publish(request.path["fact_id"]))


async def hide(request: HttpRequest) -> Response:
    """Take a fact back that the asker alone has said."""
    return await _moved(request, lambda project: project.hide(request.path["fact_id"]))


async def decide(request: HttpRequest) -> Response:
    """Settle a dispute for a fact."""
    await _with(request, request.body, lambda project: project.decide(request.path["fact_id"]))
    return json_response({"id": request.path["fact_id"]})


async def _moved(request: HttpRequest, act: Callable[[Project], str]) -> Response:
    return json_response({"id": await _with(request, request.body, act)})


async def _with(request: HttpRequest, named: OneProject, act: Callable[[Project], T]) -> T:
    """Do something with the project that a request names, as the user it names, by the token's app."""
    memd, app = request.service.memd, request.token.app or None

    def work() -> T:
        return act(memd.project(named.project_id, as_user=named.user_id, app=app))

    began = time.monotonic()
    try:
        return await request.service.run(request.service.files, work)
    except Rejected as error:
        if error.code == UNKNOWN:
            await asyncio.sleep(max(0.0, REFUSAL_S - (time.monotonic() - began)))
        raise


def _without_messages(fact: dict[str, Any]) -> dict[str, Any]:
    """A fact as clients get it: its quotes with who said them, and nothing that names a message."""
    evidence = fact.get("evidence")
    if not isinstance(evidence, list):
        return fact
    shown = [{name: entry[name] for name in ("by", "quote", "saidAt") if name in entry} for entry in evidence]
    return {**fact, "evidence": shown}


def _done() -> Response:
    return Response(None, 204, {"cache-control": "no-store"})
