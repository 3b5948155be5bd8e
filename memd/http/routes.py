"""The table of all operations: what the server routes by, and what its OpenAPI document says."""

from __future__ import annotations

from memd.http import facts, inputs, owner, queue, reading, schemas, watching
from memd.http.endpoint import Operation
from memd.inbox.flush import FlushResult
from memd.inbox.receipt import Receipt
from memd.inbox.status import Status
from memd.push.validation import RawPush


def operations() -> list[Operation]:
    """Every operation. The first ones are the ones asked for most."""
    return [*_reading(), *_queue(), *_facts(), *_owner(), *_watching()]


def _reading() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/inject", "inject", "The block of memory for the next prompt", "read", reading.inject,
            {200: schemas.BLOCK}, query=inputs.InjectQuery, etag=True,
            about="Empty when nothing is known. The same memory gives the same bytes and the same ETag.",
        ),
        Operation(
            "POST", "/v1/inject", "injectFor", "The same, asked for in a body", "read", reading.inject_for,
            {200: schemas.BLOCK}, body=inputs.Inject,
        ),
        Operation(
            "POST", "/v1/search", "search", "The facts that answer a query, best first", "read", reading.search,
            {200: schemas.FOUND}, body=inputs.Search,
            about="score = 0.5 similarity + 0.3 confidence + 0.2 scope.",
        ),
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


def _facts() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/facts", "facts", "The facts of a memory", "read", facts.listed,
            {200: schemas.FACTS}, query=inputs.Whose,
        ),
        Operation(
            "POST", "/v1/facts", "addFact", "Add a fact by hand", "write", facts.add,
            {201: schemas.FACT_ID}, body=inputs.NewFact, refusals=(409,),
            about="One that says the same becomes a person's word. The model neither changes nor evicts it.",
        ),
        Operation(
            "PATCH", "/v1/facts/{fact_id}", "editFact", "Change a fact's words, its category, or both", "write",
            facts.edit, {200: schemas.FACT_ID}, body=inputs.FactEdit, refusals=(409,),
            about="The archive keeps what it was.",
        ),
        Operation(
            "DELETE", "/v1/facts/{fact_id}", "removeFact", "Remove a fact for good", "write", facts.remove,
            {204: None}, query=inputs.Whose, refusals=(409,),
            about="No conversation brings it back; only adding it does.",
        ),
    ]  # fmt: skip


def _owner() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/export", "export", "All that is kept of a user", "admin", owner.export,
            {200: schemas.EXPORT}, query=inputs.Export,
        ),
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
        Operation(
            "GET", "/openapi.json", "openapi", "This document", None, watching.openapi, {200: {"type": "object"}}
        ),
    ]
