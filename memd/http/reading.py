"""Reading: the document, the block for a prompt, and search."""

from __future__ import annotations

import hashlib

import orjson
from starlette.responses import Response

from memd.context import Bucket
from memd.http.endpoint import Call, answer
from memd.http.inputs import Inject, InjectQuery, Search
from memd.recall.inject import Injection
from memd.recall.search import Found

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


async def inject(call: Call) -> Response:
    """The block for a prompt. One that was made before, of a memory that has not changed, takes no thread."""
    wanted = call.query
    if wanted.query is None and not wanted.include_pending:
        bucket = Bucket(wanted.user_id, wanted.agent_name)
        block = call.door.memd.injection_at_hand(bucket, max_tokens=wanted.max_tokens)
        if block is not None:
            return _block(call, block)
    return _block(call, await _injection(call, wanted))


async def inject_for(call: Call) -> Response:
    """The same, asked for in a body."""
    found = await _injection(call, call.body)
    return answer({"text": found.text, "version": found.version})


async def _injection(call: Call, wanted: InjectQuery | Inject) -> Injection:
    def work() -> Injection:
        return call.door.memd.injection(
            wanted.user_id,
            agent_name=wanted.agent_name,
            max_tokens=wanted.max_tokens,
            query=wanted.query,
            include_pending=wanted.include_pending,
        )

    return await call.door.run(call.door.inbox if wanted.include_pending else call.door.files, work)


def _block(call: Call, block: Injection) -> Response:
    return tagged(call, orjson.dumps({"text": block.text, "version": block.version}), block.version)


async def search(call: Call) -> Response:
    """The facts that answer, best first."""
    wanted: Search = call.body

    def work() -> list[Found]:
        return call.door.memd.search(
            wanted.user_id,
            wanted.query,
            agent_name=wanted.agent_name,
            limit=wanted.limit,
            categories=wanted.categories,
            since=wanted.since,
            until=wanted.until,
            include_pending=wanted.include_pending,
        )

    found = await call.door.run(call.door.inbox if wanted.include_pending else call.door.files, work)
    return answer({"found": [_row(one, explain=wanted.explain) for one in found]})


def _row(found: Found, *, explain: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "fact": found.fact,
        "score": found.score,
        "pending": found.pending,
        "agent_name": found.agent_name,
    }
    if explain:
        row["explain"] = {"similarity": found.similarity, "confidence": found.confidence, "scope": found.scope}
    return row


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
