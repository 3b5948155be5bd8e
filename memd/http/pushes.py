"""Operations on pushes: push, receipt, flush."""

from __future__ import annotations

import threading
from dataclasses import replace

from msgspec import structs
from starlette.responses import Response

from memd.http.fields import FlushBody, PendingQuery
from memd.http.operation import HttpRequest, json_response
from memd.http.problems import not_found
from memd.inbox.flush import FlushProgress, FlushResult
from memd.inbox.keys import PendingKey
from memd.push.trace_parent import check_trace
from memd.push.validation import in_namespace, thread_of

MARGIN_S = 5.0
"""A flush that waits responds this many seconds before `http.request_timeout_s` ends."""


async def push(request: HttpRequest) -> Response:
    """Merge a push at once, or refuse it."""
    own = in_namespace(request.body, request.token.app)
    if not own.trace and (header := request.headers.get("traceparent")):
        own = structs.replace(own, trace=check_trace(header))
    receipt = await request.service.run(request.service.inbox, lambda: request.service.memd.push_parsed(own))
    return json_response(receipt, 202 if receipt.id else 200)


async def receipt(request: HttpRequest) -> Response:
    """The state of a push. A push of another user gets the same 404 as one that does not exist."""
    receipt_id, user_id = request.path["receipt_id"], request.query.user_id
    outcome = await request.service.run(
        request.service.inbox, lambda: request.service.memd.receipt(receipt_id, user_id=user_id)
    )
    if outcome.state == "unknown":
        raise not_found()
    return json_response(outcome)


async def pending(request: HttpRequest) -> Response:
    """The keys of a user that have not ended: those of the token's app, under the names that it gave them."""
    query: PendingQuery = request.query
    page = await request.service.run(
        request.service.inbox,
        lambda: request.service.memd.pending(user_id=query.user_id, after=query.after, limit=query.limit),
    )
    app = request.token.app
    return json_response(replace(page, keys=tuple(_own(key, app) for key in page.keys if _is_own(key, app))))


def _is_own(key: PendingKey, app: str) -> bool:
    return key.thread_id.startswith(thread_of("", app))


def _own(key: PendingKey, app: str) -> PendingKey:
    """A key under the names that its app gave it, without its worker, which does not concern the app."""
    if not app:
        return key
    return replace(key, thread_id=key.thread_id.removeprefix(thread_of("", app)), claimed_by=None)


async def flush(request: HttpRequest) -> Response:
    """Make keys due now; with `wait`, respond when their pushes have ended."""
    body: FlushBody = request.body
    thread_id = body.thread_id if body.thread_id is None else thread_of(body.thread_id, request.token.app)
    timeout_s = min(body.timeout_s, max(0.0, request.service.settings.http.request_timeout_s - MARGIN_S))
    gone = threading.Event()

    def progress(_: FlushProgress) -> None:
        if gone.is_set():
            raise TimeoutError  # nobody waits for the result; the keys are due all the same

    def work() -> FlushResult:
        return request.service.memd.flush(
            user_id=body.user_id,
            agent_name=body.agent_name,
            thread_id=thread_id,
            wait=body.wait,
            timeout_s=timeout_s,
            progress=progress,
        )

    try:
        pool = request.service.long if body.wait else request.service.inbox
        return json_response(await request.service.run(pool, work))
    finally:
        gone.set()
