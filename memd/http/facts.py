"""Facts by hand: list, add, edit, remove."""

from __future__ import annotations

from starlette.responses import Response

from memd.http.endpoint import Call, answer
from memd.http.inputs import FactEdit, NewFact, Whose


async def listed(call: Call) -> Response:
    """The facts of a memory, in the order they came."""
    whose: Whose = call.query
    found = await call.door.run(
        call.door.files, lambda: call.door.memd.facts(whose.user_id, agent_name=whose.agent_name)
    )
    return answer({"facts": found})


async def add(call: Call) -> Response:
    """Add a fact, or make one that says the same a person's word."""
    new: NewFact = call.body
    fact_id = await call.door.run(
        call.door.files,
        lambda: call.door.memd.add_fact(new.user_id, new.content, category=new.category, agent_name=new.agent_name),
    )
    return answer({"id": fact_id}, 201)


async def edit(call: Call) -> Response:
    """Change a fact's words, its category, or both."""
    fact_id, to = call.path["fact_id"], call.body
    await call.door.run(call.door.files, lambda: _edit(call, fact_id, to))
    return answer({"id": fact_id})


def _edit(call: Call, fact_id: str, to: FactEdit) -> None:
    call.door.memd.edit_fact(to.user_id, fact_id, content=to.content, category=to.category, agent_name=to.agent_name)


async def remove(call: Call) -> Response:
    """Remove a fact for good."""
    fact_id, whose = call.path["fact_id"], call.query
    await call.door.run(
        call.door.files,
        lambda: call.door.memd.remove_fact(whose.user_id, fact_id, agent_name=whose.agent_name),
    )
    return Response(None, 204, {"cache-control": "no-store"})
