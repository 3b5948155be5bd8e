"""Reading: the document, the block for a prompt, and search."""

from __future__ import annotations

import hashlib

import orjson
from starlette.responses import Response

from memd.http.endpoint import Call, answer

PRIVATE = "private, no-cache"
"""A client may keep it, and asks each time whether it is still the same."""

HIDDEN = ("ledger",)
"""Fields of a document that are memd's own bookkeeping: hashes of messages. An export has them."""


async def memory(call: Call) -> Response:
    """The memory document."""
    user_id, agent_name = call.query.user_id, call.query.agent_name

    def work() -> tuple[bytes, str]:
        document = call.door.memd.document(user_id, agent_name=agent_name)
        data = orjson.dumps({name: value for name, value in document.items() if name not in HIDDEN})
        return data, hashlib.sha256(data).hexdigest()[:32]

    data, version = await call.door.run(call.door.files, work)
    return tagged(call, data, version)


def tagged(call: Call, data: bytes, version: str) -> Response:
    """An answer with an ETag, or only that nothing has changed."""
    tag = f'"{version}"'
    headers = {"etag": tag, "cache-control": PRIVATE}
    if has(call.headers.get("if-none-match"), tag):
        return Response(None, 304, headers)
    return answer(data, headers=headers)


def has(if_none_match: str | None, tag: str) -> bool:
    """Whether a client's list of ETags has this one; weak ones count (RFC 9110, 13.1.2)."""
    if if_none_match is None:
        return False
    tags = (one.strip().removeprefix("W/") for one in if_none_match.split(","))
    return if_none_match.strip() == "*" or tag in tags
