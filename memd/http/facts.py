"""Operations on facts: those of a person by hand, an agent's notes, and what becomes of doubtful facts."""

from __future__ import annotations

from starlette.responses import Response

from memd.adapters.agent_memory import AgentMemory
from memd.http.fields import AddFact, Approval, Decision, FactEdit, FactsQuery, OneMemory, ProfileSet, ProfileUnset
from memd.http.operation import HttpRequest, json_response
from memd.memory.scoped import Places
from memd.push.validation import thread_of


async def facts(request: HttpRequest) -> Response:
    """The facts of a memory, in the order they came."""
    query: FactsQuery = request.query
    thread_id = None if query.thread_id is None else thread_of(query.thread_id, request.token.app)
    filters = query.filters
    if "person" not in request.token.scopes or thread_id or query.project_id:
        filters["places"] = Places(thread_id, query.project_id)
    rows = await request.service.run(
        request.service.files, lambda: request.service.memd.facts(query.user_id, query.agent_name, **filters)
    )
    return json_response({"facts": rows})


async def add_note(request: HttpRequest) -> Response:
    """Add a fact in the name of an agent; it passes the gates, and the model may change it."""
    body: AddFact = request.body
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
