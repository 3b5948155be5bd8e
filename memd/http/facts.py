"""Operations on facts: those of a person by hand, an agent's notes, and what becomes of doubtful facts."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from memd.adapters.agent_memory import AgentMemory
from memd.http.fact_fields import ArchiveQuery, FactPlace, Restoration
from memd.http.fields import (
    AddFact,
    AddNote,
    Approval,
    Decision,
    FactEdit,
    FactsQuery,
    OneMemory,
    ProfileSet,
    ProfileUnset,
)
from memd.http.operation import HttpRequest, json_response
from memd.http.paging import page
from memd.memory.scoped import Places
from memd.push.validation import thread_of


async def facts(request: HttpRequest) -> Response:
    """The facts of a memory, in the order they came."""
    query: FactsQuery = request.query
    filters = query.filters
    filters["places"] = _places(request, query.thread_id, query.project_id)
    rows = await request.service.run(
        request.service.files, lambda: request.service.memd.facts(query.user_id, query.agent_name, **filters)
    )
    shown, following = page(rows, query.after, query.limit)
    return json_response({"facts": shown, "next": following})


async def archived(request: HttpRequest) -> Response:
    """The archived facts of a memory, the latest last, each with the reason."""
    query: ArchiveQuery = request.query
    filters = query.filters
    filters["places"] = _places(request, query.thread_id, query.project_id)
    find = request.service.memd.archived
    rows = await request.service.run(
        request.service.files, lambda: find(query.user_id, query.agent_name, reason=query.reason, **filters)
    )
    shown, following = page(rows, query.after, query.limit)
    return json_response({"facts": shown, "next": following})


async def why(request: HttpRequest) -> Response:
    """Where a fact comes from. The turns around its quotes only with the scope `said`."""
    query: FactPlace = request.query
    thread_id, tell = _thread(request, query.thread_id), request.service.memd.why
    account = await request.service.run(
        request.service.files,
        lambda: tell(
            query.user_id,
            request.path["fact_id"],
            agent_name=query.agent_name,
            thread_id=thread_id,
            project_id=query.project_id,
        ),
    )
    return json_response(account if "said" in request.token.scopes else without_turns(account))


def without_turns(account: dict[str, Any]) -> dict[str, Any]:
    """The result of `why` without the turns around the quotes of any version."""
    found = {**account, "earlier": [_quotes_only(version) for version in account["earlier"]]}
    return _quotes_only(found)


def _quotes_only(version: dict[str, Any]) -> dict[str, Any]:
    quotes = [{name: value for name, value in entry.items() if name != "turns"} for entry in version["evidence"]]
    return {**version, "evidence": quotes}


def _places(request: HttpRequest, thread_id: str | None, project_id: str | None) -> Places | None:
    """The places whose facts a list has; None: all of them, for a person who names none."""
    if "person" in request.token.scopes and thread_id is None and project_id is None:
        return None
    return Places(_thread(request, thread_id), project_id)


def _thread(request: HttpRequest, thread_id: str | None) -> str | None:
    """The stored name of a thread of the token's app."""
    return None if thread_id is None else thread_of(thread_id, request.token.app)


async def withheld(request: HttpRequest) -> Response:
    """What is held back until a person decides."""
    query: OneMemory = request.query
    rows = await request.service.run(
        request.service.files, lambda: request.service.memd.withheld(query.user_id, query.agent_name)
    )
    return json_response({"withheld": rows})


async def restore_fact(request: HttpRequest) -> Response:
    """Take a suspended fact back."""
    fact_id = request.path["fact_id"]
    body: Restoration = request.body
    restore = request.service.memd.restore_fact
    await request.service.run(request.service.files, lambda: restore(body.user_id, fact_id, agent_name=body.agent_name))
    return json_response({"id": fact_id})


async def add_note(request: HttpRequest) -> Response:
    """Add a fact in the name of an agent; it passes the gates, and the model may change it."""
    body: AddNote = request.body
    settings = request.service.settings
    fact_id = await request.service.run(
        request.service.files,
        lambda: AgentMemory(settings, body.user_id, body.agent_name).save(body.content, body.category),
    )
    return json_response({"id": fact_id}, 201)


async def add_fact(request: HttpRequest) -> Response:
    """Add a fact by hand."""
    body: AddFact = request.body
    add = request.service.memd.add_fact
    fact_id = await request.service.run(
        request.service.files,
        lambda: add(body.user_id, body.content, category=body.category, agent_name=body.agent_name),
    )
    return json_response({"id": fact_id}, 201)


async def edit_fact(request: HttpRequest) -> Response:
    """Change a fact's content, its category, or both."""
    fact_id = request.path["fact_id"]
    body: FactEdit = request.body
    edit = request.service.memd.edit_fact
    await request.service.run(
        request.service.files,
        lambda: edit(body.user_id, fact_id, content=body.content, category=body.category, agent_name=body.agent_name),
    )
    return json_response({"id": fact_id})


async def remove_fact(request: HttpRequest) -> Response:
    """Remove a fact for good."""
    fact_id = request.path["fact_id"]
    query: OneMemory = request.query
    await request.service.run(
        request.service.files,
        lambda: request.service.memd.remove_fact(query.user_id, fact_id, agent_name=query.agent_name),
    )
    return Response(None, 204, {"cache-control": "no-store"})


async def profile(request: HttpRequest) -> Response:
    """The user's profile."""
    query: OneMemory = request.query
    read = request.service.memd.profile
    found = await request.service.run(request.service.files, lambda: read(query.user_id, agent_name=query.agent_name))
    return json_response({"profile": found})


async def set_profile(request: HttpRequest) -> Response:
    """Set a field of the profile by hand."""
    body: ProfileSet = request.body
    change = request.service.memd.set_profile
    await request.service.run(
        request.service.files, lambda: change(body.user_id, body.field, body.value, agent_name=body.agent_name)
    )
    return json_response({"field": body.field})


async def unset_profile(request: HttpRequest) -> Response:
    """Take a field out of the profile."""
    query: ProfileUnset = request.query
    change = request.service.memd.unset_profile
    await request.service.run(
        request.service.files, lambda: change(query.user_id, query.field, agent_name=query.agent_name)
    )
    return Response(None, 204, {"cache-control": "no-store"})


async def doubtful(request: HttpRequest) -> Response:
    """The facts that a person has to decide on."""
    query: OneMemory = request.query
    rows = await request.service.run(
        request.service.files, lambda: request.service.memd.doubtful(query.user_id, agent_name=query.agent_name)
    )
    return json_response({"facts": rows})


async def approve_fact(request: HttpRequest) -> Response:
    """Make a doubtful fact a fact of the memory."""
    fact_id = request.path["fact_id"]
    body: Approval = request.body
    approve, by = request.service.memd.approve_fact, request.token.app or "person"
    await request.service.run(
        request.service.files,
        lambda: approve(body.user_id, fact_id, agent_name=body.agent_name, by=by, anyway=body.anyway),
    )
    return json_response({"id": fact_id})


async def drop_fact(request: HttpRequest) -> Response:
    """Take a doubtful fact out for good."""
    fact_id = request.path["fact_id"]
    body: Decision = request.body
    drop = request.service.memd.drop_fact
    await request.service.run(request.service.files, lambda: drop(body.user_id, fact_id, agent_name=body.agent_name))
    return Response(None, 204, {"cache-control": "no-store"})
