"""What only a token with the scope admin may do: take a user's whole memory out, and forget it."""

from __future__ import annotations

from dataclasses import asdict

import orjson
from starlette.responses import Response

from memd.http.endpoint import Call, answer


async def export(call: Call) -> Response:
    """All that is kept of a user: every agent's memory, or only that of one."""
    wanted = call.query

    def work() -> bytes:
        return orjson.dumps(call.door.memd.export(wanted.user_id, agent_name=wanted.agent_name))

    return answer(await call.door.run(call.door.long, work))


async def forget(call: Call) -> Response:
    """Forget a user, or what one agent knows of them. 202: a worker does the rest when the inbox is back."""
    wanted = call.body
    found = await call.door.run(
        call.door.long,
        lambda: call.door.memd.forget(wanted.user_id, agent_name=wanted.agent_name, dry_run=wanted.dry_run),
    )
    return answer({"dry_run": wanted.dry_run, **asdict(found)}, 200 if found.complete else 202)
