"""The table of all operations: what the server routes by, and what its OpenAPI document says."""

from __future__ import annotations

from memd.flush import FlushResult
from memd.http import inputs, owner, queue, reading, schemas, watching
from memd.http.endpoint import Operation
from memd.receipt import Receipt
from memd.status import Status
from memd.validation import RawPush


def operations() -> list[Operation]:
    """Every operation. The first ones are the ones asked for most."""
    return [*_reading(), *_queue(), *_owner(), *_watching()]


def _reading() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/memory", "memory", "The memory document of a user", "read", reading.memory,
            {200: schemas.DOCUMENT}, query=inputs.Whose, etag=True,
            about="Empty when nothing is known. Without the ledger, which an export has.",
        ),
    ]  # fmt: skip


def _queue() -> list[Operation]:
    return [
        Operation(
            "POST", "/v1/push", "push", "Push a conversation", "write", queue.push,
            {202: Receipt, 200: Receipt}, body=RawPush,
            about="202: it will be remembered. 200: nothing of it is left to do (skipped, disabled). Sending the same "
            "again changes nothing but the due time.",
        ),
        Operation(
            "GET", "/v1/receipts/{receipt_id}", "receipt", "What became of a push", "read", queue.receipt,
            {200: schemas.OUTCOME}, query=inputs.ReceiptQuery, refusals=(404,),
        ),
        Operation(
            "POST", "/v1/flush", "flush", "Make what is pending due now", "write", queue.flush,
            {200: FlushResult}, body=inputs.Flush,
            about="Without `user_id`: of all users, which takes a token for all of them.",
        ),
    ]  # fmt: skip


def _owner() -> list[Operation]:
    return [
        Operation(
            "POST", "/v1/forget", "forget", "Forget a user for good", "admin", owner.forget,
            {200: schemas.FORGOTTEN, 202: schemas.FORGOTTEN}, body=inputs.Forget,
            about="202: the inbox was out of reach; the documents are gone, and a worker does the rest.",
        ),
    ]  # fmt: skip


def _watching() -> list[Operation]:
    return [
        Operation("GET", "/v1/status", "status", "The figures of the inbox", "status", watching.status, {200: Status}),
        Operation(
            "GET", "/metrics", "metrics", "The same for Prometheus", "status", watching.figures, {200: "text/plain"}
        ),
        Operation(
            "GET", "/health", "health", "Whether this process lives", None, watching.Health(), {200: schemas.HEALTH}
        ),
    ]
