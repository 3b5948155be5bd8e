"""The table of all operations: the server routes by it, and the OpenAPI document is made from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from memd.http import admin_fields, audit, dead, fields, memory, monitoring, pushes
from memd.http import openapi_schemas as schemas
from memd.http.fact_operations import fact_operations
from memd.http.hosts import HostCheck
from memd.http.openapi import document
from memd.http.operation import Operation, Resource, Tag
from memd.http.problems import Problem
from memd.http.project_operations import project_operations
from memd.http.service import Service
from memd.inbox.cost import Cost
from memd.inbox.flush import FlushResult
from memd.inbox.keys import PendingPage
from memd.inbox.receipt import Receipt
from memd.inbox.status import Status
from memd.push.validation import RawPush
from memd.recall.users import UserPage


def application(service: Service) -> ASGIApp:
    """The ASGI application of `memd serve`."""
    table = operations()
    service.openapi = document(table, service.settings)
    paths: defaultdict[str, list[Operation]] = defaultdict(list)
    for operation in table:
        paths[operation.path].append(operation)
    routes = [Route(path, Resource(service, group)) for path, group in paths.items()]
    if service.settings.http.console:
        routes += import_module("memd.http.console.site").routes(service)  # its templates are not for every server
    return HostCheck(Router(routes, redirect_slashes=False, default=_no_route), service.settings.http)


async def _no_route(scope: Scope, receive: Receive, send: Send) -> None:
    response = Problem(404, "E_NO_ROUTE", "this path does not exist; see /openapi.json").response()
    await response(scope, receive, send)


def operations() -> list[Operation]:
    """Every operation, the most frequent ones first: the router tries them in this order."""
    return [replace(operation, tag=tag) for tag, part in _PARTS.items() for operation in part()]


def _recall() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/inject", "inject", "The block of memory for the next prompt", "read", memory.inject,
            {200: schemas.BLOCK}, query=fields.InjectQuery, etag=True,
            description="Empty when nothing is known. The same memory gives the same bytes and the same ETag.",
        ),
        Operation(
            "POST", "/v1/inject", "injectFor", "The same, with the fields in a body", "read", memory.inject_for,
            {200: schemas.BLOCK}, body=fields.Inject,
            description="For queries that must not appear in an address, which proxies log.",
        ),
        Operation(
            "POST", "/v1/search", "search", "The facts that match a query, best first", "read", memory.search,
            {200: schemas.FOUND}, body=fields.SearchBody,
            description="With the scope `said` also excerpts of what was said. score = 0.5 similarity + 0.3 "
            "confidence + 0.2 scope.",
        ),
        Operation(
            "GET", "/v1/memory", "memory", "The memory document of a user", "read", memory.document,
            {200: schemas.DOCUMENT}, query=fields.ThreadQuery, etag=True,
            description="Empty when nothing is known. Without the ledger and the facts of other conversations and of "
            "projects, which only an export has. With `at` the memory as it was believed then, in its facts and "
            "summaries, and in `missing` why that may be incomplete.",
        ),
    ]  # fmt: skip


def _pushes() -> list[Operation]:
    return [
        Operation(
            "POST", "/v1/push", "push", "Push a conversation", "write", pushes.push,
            {202: Receipt, 200: Receipt}, body=RawPush,
            description="202: accepted. 200: nothing to do (skipped, disabled). The same push again only moves the due "
            "time.",
        ),
        Operation(
            "GET", "/v1/receipts/{receipt_id}", "receipt", "The state of a push", "read", pushes.receipt,
            {200: schemas.OUTCOME}, query=fields.ReceiptQuery, refusals=(404,),
            description="pending, claimed, or its end: stored, skipped or dead, with the reason and what was refused. "
            "Ends are kept for a while; then the receipt is unknown.",
        ),
        Operation(
            "GET", "/v1/pending", "pending", "The keys of a user that have not ended, a page at a time", "read",
            pushes.pending, {200: PendingPage}, query=fields.PendingQuery,
            description="State, turns, tokens and times, never a text. Only threads of the token's app: a page may "
            "hold fewer keys than asked for, or none, and still have a `next`.",
        ),
        Operation(
            "POST", "/v1/flush", "flush", "Make pending keys due now", "write", pushes.flush,
            {200: FlushResult}, body=fields.FlushBody,
            description="Without `user_id`: the keys of all users, which needs a token for all users.",
        ),
    ]  # fmt: skip


def _users() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/users", "users", "The users that have a memory, a page at a time", "admin", memory.users,
            {200: UserPage}, query=fields.UsersQuery, lists_users=True,
            description="Only the users that the token names.",
        ),
        Operation(
            "GET", "/v1/export", "export", "Everything kept about a user", "admin", memory.export,
            {200: schemas.EXPORT}, query=fields.Export,
            description="Every agent's memory with archive and ledger, todo lists and tasks. Messages, refused facts "
            "and sessions only with the scope `said`.",
        ),
        Operation(
            "POST", "/v1/import", "import", "Merge an export into a user's memories", "admin", memory.import_memory,
            {200: schemas.IMPORTED}, body=admin_fields.ImportBody, refusals=(409,),
            description="Existing facts stay; importing twice changes nothing. What an export says a person wrote is "
            f"believed as a person's word. Bodies of at most {admin_fields.IMPORT_BYTES} bytes; `memd import` reads "
            "larger files.",
        ),
        Operation(
            "POST", "/v1/forget", "forget", "Forget a user for good", "admin", memory.forget,
            {200: schemas.FORGOTTEN, 202: schemas.FORGOTTEN}, body=fields.Forget,
            description="202: the inbox could not be reached; the documents are gone, and a worker completes the rest.",
        ),
        Operation(
            "GET", "/v1/audit", "audit", "What should not be in a memory", "admin", audit.audit,
            {200: schemas.AUDIT}, query=admin_fields.AuditQuery,
            description="A page of findings, and how many each rule has. It changes nothing. Secrets are shown "
            "redacted; findings in what was said and in refused facts only with the scope `said`.",
        ),
    ]  # fmt: skip


def _dead() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/dead", "dead", "The dead letters, the newest first, a page at a time", "admin", dead.dead,
            {200: schemas.DEAD}, query=admin_fields.DeadQuery, lists_users=True,
            description="What failed for good: code, error, whose, when; never a text. Only letters of users that the "
            "token names; a raw push, whose user nobody has read, needs a token for all users.",
        ),
        Operation(
            "POST", "/v1/dead/retry", "retryDead", "Make dead letters pending again", "admin", dead.retry,
            {200: schemas.RETRIED}, body=admin_fields.DeadChoice, lists_users=True,
            description="Each message gets its old place. `stay`: letters whose content would be refused again.",
        ),
        Operation(
            "POST", "/v1/dead/drop", "dropDead", "Delete dead letters for good", "admin", dead.drop,
            {200: schemas.DROPPED}, body=admin_fields.DeadChoice, lists_users=True,
            description="This cannot be undone.",
        ),
        Operation(
            "GET", "/v1/dead/{letter_id}", "deadLetter", "One dead letter", "admin", dead.letter,
            {200: schemas.LETTER}, lists_users=True, refusals=(404,),
            description="Its messages, or the raw push, only with the scope `said`.",
        ),
    ]  # fmt: skip


def _monitoring() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/status", "status", "The figures of the inbox", "status", monitoring.status, {200: Status},
            description="Keys by state, workers, paused endpoints, and what was counted since the inbox began. No ids.",
        ),
        Operation(
            "GET", "/v1/cost", "cost", "Tokens and money by model", "status", monitoring.cost, {200: Cost},
            query=admin_fields.CostQuery,
            description="Today, in total, and on each of the last `days`; `usd` is null without a price in "
            "`extraction.prices`.",
        ),
        Operation(
            "GET", "/v1/hours", "hours", "The counters of the last 48 hours", "status", monitoring.hours,
            {200: schemas.HOURS},
            description="A row an hour, oldest first; the last one is the present hour.",
        ),
        Operation(
            "GET", "/metrics", "metrics", "The same for Prometheus", "status", monitoring.metrics, {200: "text/plain"},
            description="The figures of status, and the requests of this process by route and status.",
        ),
        Operation(
            "GET", "/health", "health", "Whether this process is alive", None, monitoring.Health(),
            {200: schemas.HEALTH},
            description="Always 200; `inbox` says whether it reaches the inbox. Checked once a second at most.",
        ),
        Operation(
            "GET", "/ready", "ready", "Whether pushes are taken and the store can be written", None,
            monitoring.Ready(), {200: schemas.READY},
            description="503 with the code of the part that is away. The check writes to the store, at most once a "
            "second.",
        ),
        Operation(
            "GET", "/openapi.json", "openapi", "This document", None, monitoring.openapi, {200: {"type": "object"}},
            description="OpenAPI 3.1, with the limits in force. Made from the table that the server routes by.",
        ),
        Operation(
            "GET", "/docs", "docs", "This document as a page", None, monitoring.Docs(), {200: "text/html"},
            description="Plain HTML: no script, and nothing from elsewhere.",
        ),
    ]  # fmt: skip


_PARTS: Mapping[Tag, Callable[[], list[Operation]]] = {
    Tag("Recall", "Reading: the block for a prompt, search, the document, now and as it was."): _recall,
    Tag("Pushes", "Conversations in, and what became of them."): _pushes,
    Tag("Facts", "Facts, where they come from, profiles, and what waits for a person's decision."): fact_operations,
    Tag("Projects", "Memory that several users share, by roles."): project_operations,
    Tag("Users", "All that is kept about a user: list, export, import, forget, audit."): _users,
    Tag("Dead letters", "What failed for good, kept until somebody decides."): _dead,
    Tag("Figures", "Counts and costs, health, and this document."): _monitoring,
}
"""The groups of operations, the most frequent ones first."""
