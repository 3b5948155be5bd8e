"""Pushes, and what becomes of them."""

from __future__ import annotations

import threading

from msgspec.structs import replace
from starlette.responses import Response

from memd.errors import Rejected
from memd.http.endpoint import Call, answer
from memd.http.inputs import MAX_THREAD_BYTES
from memd.http.problems import not_found
from memd.inbox.flush import FlushProgress, FlushResult
from memd.push.validation import RawPush

MARGIN_S = 5.0
"""Seconds before the request's own time is over at which a waiting flush answers."""


async def push(call: Call) -> Response:
    """Merge a push at once, or say why not."""
    mine = in_namespace(call.body, call.token.app)
    receipt = await call.door.run(call.door.inbox, lambda: call.door.memd.push_parsed(mine))
    return answer(receipt, 202 if receipt.id else 200)


def in_namespace(push: RawPush, app: str) -> RawPush:
    """The push with its thread in the namespace of the app, so that no app can change what another has pending."""
    if not app:
        return push
    size = len(push.key.thread_id.encode())
    if size > MAX_THREAD_BYTES:
        sentence = f"thread_id must have 1 to {MAX_THREAD_BYTES} bytes where there are tokens, it has {size}"
        raise Rejected("E_THREAD_ID_LENGTH", sentence, "thread_id", MAX_THREAD_BYTES)
    return replace(push, key=push.key._replace(thread_id=thread_of(push.key.thread_id, app)))


def thread_of(thread_id: str, app: str) -> str:
    """How a thread of an app is called where all apps meet; an app's name has no slash."""
    return f"{app}/{thread_id}" if app else thread_id


async def receipt(call: Call) -> Response:
    """Where a push stands or how it ended; of a push of another user as of none."""
    receipt_id, user_id = call.path["receipt_id"], call.query.user_id
    outcome = await call.door.run(call.door.inbox, lambda: call.door.memd.receipt(receipt_id, user_id=user_id))
    if outcome.state == "unknown":
        raise not_found()
    return answer(outcome)


async def flush(call: Call) -> Response:
    """Make keys due now, and wait for their end when asked to."""
    wanted = call.body
    thread_id = wanted.thread_id if wanted.thread_id is None else thread_of(wanted.thread_id, call.token.app)
    timeout_s = min(wanted.timeout_s, max(0.0, call.door.settings.http.request_timeout_s - MARGIN_S))
    gone = threading.Event()

    def look(_: FlushProgress) -> None:
        if gone.is_set():
            raise TimeoutError  # nobody waits for it any more; the keys are due all the same

    def work() -> FlushResult:
        return call.door.memd.flush(
            user_id=wanted.user_id,
            agent_name=wanted.agent_name,
            thread_id=thread_id,
            wait=wanted.wait,
            timeout_s=timeout_s,
            progress=look,
        )

    try:
        return answer(await call.door.run(call.door.long if wanted.wait else call.door.inbox, work))
    finally:
        gone.set()
