"""Operations on memories: the document, the block for a prompt, search, export and forget."""

from __future__ import annotations

import hashlib
from dataclasses import asdict

import orjson
from starlette.responses import Response

from memd.client import Memd
from memd.context import Bucket
from memd.http.admin_fields import ImportBody
from memd.http.fields import Export, Forget, Inject, InjectQuery, SearchBody, ThreadQuery, UsersQuery
from memd.http.operation import HttpRequest, json_response
from memd.push.validation import thread_of
from memd.recall.inject import Injection
from memd.recall.search import Found, Hits

PRIVATE = "private, no-cache"
"""A client may store the response, but must revalidate it each time."""

HIDDEN = ("ledger", "said", "doubtful", "refused", "outbox")
"""Fields of a document that its readers do not get: hashes of messages, a file, what no prompt may have, and what waits
for a project."""


async def document(request: HttpRequest) -> Response:
    """The memory document."""
    query: ThreadQuery = request.query

    def work() -> tuple[bytes, str]:
        memd, thread = request.service.memd, _thread(request, query.thread_id)
        if query.at is None:
            tree = memd.seen_document(query.user_id, agent_name=query.agent_name, thread_id=thread)
        else:
            past = memd.past(query.user_id, query.at, agent_name=query.agent_name, thread_id=thread)
            tree = {**past.document, "asOf": query.at, "missing": past.missing}
        data = orjson.dumps({name: value for name, value in tree.items() if name not in HIDDEN})
        return data, hashlib.sha256(data).hexdigest()[:32]

    data, version = await request.service.run(request.service.files, work)
    return _tagged(request, data, version)


async def inject(request: HttpRequest) -> Response:
    """The block for a prompt. The cached block of an unchanged memory is returned without a thread."""
    query: InjectQuery = request.query
    if query.query is None and not query.include_pending and query.project_id is None:
        bucket, thread = Bucket(query.user_id, query.agent_name), _thread(request, query.thread_id)
        cached = request.service.memd.injection_at_hand(bucket, max_tokens=query.max_tokens, thread_id=thread)
        if cached is not None:
            return _tagged_block(request, cached)
    return _tagged_block(request, await _injection(request, query))


async def inject_for(request: HttpRequest) -> Response:
    """The block for a prompt, with the fields in a body."""
    block = await _injection(request, request.body)
    return json_response(_block(block))


async def _injection(request: HttpRequest, fields: InjectQuery | Inject) -> Injection:
    def work() -> Injection:
        return request.service.memd.injection(
            fields.user_id,
            agent_name=fields.agent_name,
            max_tokens=fields.max_tokens,
            query=fields.query,
            thread_id=_thread(request, fields.thread_id),
            project_id=fields.project_id,
            app=request.token.app or None,
            include_pending=fields.include_pending,
            include_said="said" in request.token.scopes,
        )

    pool = request.service.inbox if fields.include_pending else request.service.files
    return await request.service.run(pool, work)


async def search(request: HttpRequest) -> Response:
    """The facts that match, best first."""
    body: SearchBody = request.body

    def work() -> Hits:
        return request.service.memd.search(
            body.user_id,
            body.query,
            agent_name=body.agent_name,
            limit=body.limit,
            categories=body.categories,
            scopes=body.scopes,
            member=body.member,
            since=body.since,
            until=body.until,
            by=body.by,
            thread_id=_thread(request, body.thread_id),
            project_id=body.project_id,
            app=request.token.app or None,
            include_pending=body.include_pending,
            include_said="said" in request.token.scopes,
        )

    results = await request.service.run(request.service.inbox if body.include_pending else request.service.files, work)
    rows = [_row(result, explain=body.explain) for result in results]
    return json_response({"found": rows, **_said(results.words_only)})


def _thread(request: HttpRequest, thread_id: str | None) -> str | None:
    """The stored name of a thread of the token's app."""
    return None if thread_id is None else thread_of(thread_id, request.token.app)


async def users(request: HttpRequest) -> Response:
    """The users that have a memory and that the token names."""
    query: UsersQuery = request.query
    page = await request.service.run(
        request.service.long,
        lambda: request.service.memd.users(
            by=query.by,
            after=query.after,
            limit=query.limit,
            find=query.find,
            visible=request.token.users.__contains__,
        ),
    )
    return json_response(page)


async def export(request: HttpRequest) -> Response:
    """Everything memd keeps about a user: every agent's memory, or that of one agent.

    Messages, refused facts and sessions need the scope said.
    """
    query: Export = request.query

    def work() -> bytes:
        include_said = "said" in request.token.scopes
        return exported(request.service.memd, query.user_id, query.agent_name, include_said=include_said)

    return json_response(await request.service.run(request.service.long, work))


def exported(memd: Memd, user_id: str, agent_name: str | None, *, include_said: bool) -> bytes:
    """An export as JSON. Without `include_said` it has no messages, no refused facts and no sessions."""
    found = memd.export(user_id, agent_name=agent_name)
    if not include_said:
        del found["sessions"]
        for memory in found["memories"]:
            for name in ("said", "refused"):
                memory.pop(name, None)
    return orjson.dumps(found)


async def import_memory(request: HttpRequest) -> Response:
    """Merge an export into a user's memories."""
    body: ImportBody = request.body
    merge = request.service.memd.import_memory
    found = await request.service.run(
        request.service.long,
        lambda: merge(
            body.user_id,
            body.document,
            agent_name=body.agent_name,
            format=body.format,
            best=body.best,
            conversations=body.conversations,
            dry_run=body.dry_run,
        ),
    )
    return json_response({"dry_run": body.dry_run, **asdict(found)})


async def forget(request: HttpRequest) -> Response:
    """Forget a user, or one agent's memory of them. 202: a worker completes it when the inbox is back."""
    body: Forget = request.body
    forgotten = await request.service.run(
        request.service.long,
        lambda: request.service.memd.forget(body.user_id, agent_name=body.agent_name, dry_run=body.dry_run),
    )
    return json_response({"dry_run": body.dry_run, **asdict(forgotten)}, 200 if forgotten.complete else 202)


def _row(result: Found, *, explain: bool) -> dict[str, object]:
    row: dict[str, object] = {
        "fact": result.fact,
        "score": result.score,
        "kind": result.kind,
        "pending": result.pending,
        "agent_name": result.agent_name,
    }
    if explain:
        row["explain"] = {"similarity": result.similarity, "confidence": result.confidence, "scope": result.scope}
    return row


def _tagged_block(request: HttpRequest, block: Injection) -> Response:
    return _tagged(request, orjson.dumps(_block(block)), block.version)


def _block(block: Injection) -> dict[str, str]:
    return {"text": block.text, "version": block.version, **_said(block.words_only)}


def _said(words_only: str) -> dict[str, str]:
    """Why a search went by words alone, if it did against the settings."""
    return {"words_only": words_only} if words_only else {}


def _tagged(request: HttpRequest, data: bytes, version: str) -> Response:
    """A response with an ETag; 304 without a body when the client has this version."""
    tag = f'"{version}"'
    headers = {"etag": tag, "cache-control": PRIVATE}
    if _matches(request.headers.get("if-none-match"), tag):
        return Response(None, 304, headers)
    return json_response(data, headers=headers)


def _matches(if_none_match: str | None, tag: str) -> bool:
    """Whether a client's list of ETags has this one; weak ones count (RFC 9110, 13.1.2)."""
    if if_none_match is None:
        return False
    tags = (entry.strip().removeprefix("W/") for entry in if_none_match.split(","))
    return if_none_match.strip() == "*" or tag in tags
