"""The table of all operations: the server routes by it, and the OpenAPI document is made from it."""

from __future__ import annotations

from collections import defaultdict
from importlib import import_module

from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from memd.http import facts, fields, memory, monitoring, project_fields, projects, pushes
from memd.http import openapi_schemas as schemas
from memd.http.hosts import HostCheck
from memd.http.openapi import document
from memd.http.operation import Operation, Resource
from memd.http.problems import Problem
from memd.http.service import Service
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
    return [*_recall(), *_pushes(), *_facts(), *_projects(), *_users(), *_monitoring()]


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
        ),
        Operation(
            "POST", "/v1/search", "search", "The facts that match a query, best first", "read", memory.search,
            {200: schemas.FOUND}, body=fields.SearchBody,
            description="score = 0.5 similarity + 0.3 confidence + 0.2 scope.",
        ),
        Operation(
            "GET", "/v1/memory", "memory", "The memory document of a user", "read", memory.document,
            {200: schemas.DOCUMENT}, query=fields.ThreadQuery, etag=True,
            description="Empty when nothing is known. Without the ledger and the facts of other conversations and of "
            "projects, which only an export has.",
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


def _facts() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/facts", "facts", "The facts of a memory", "read", facts.facts,
            {200: schemas.LISTED_FACTS}, query=fields.FactsQuery,
            description="Oldest first; archived ones, which only another `status` than active brings, come last, the "
            "latest last. No document stores `status` and `lastUsedAt`. A list is no reading.",
        ),
        Operation(
            "POST", "/v1/notes", "addNote", "Add a fact in the name of an agent", "write", facts.add_note,
            {201: schemas.FACT_ID}, body=fields.AddFact, refusals=(409,),
            description="An agent's word: it passes the gates, evicts nothing, and counts less than the user's.",
        ),
        Operation(
            "POST", "/v1/facts", "addFact", "Add a fact by hand", "person", facts.add_fact,
            {201: schemas.FACT_ID}, body=fields.AddFact, refusals=(409,),
            description="A person's word, which only markup and secrets keep out. The model neither changes nor evicts "
            "it. A fact that already says the same becomes one added by hand.",
        ),
        Operation(
            "PATCH", "/v1/facts/{fact_id}", "editFact", "Change a fact's content, its category, or both", "person",
            facts.edit_fact, {200: schemas.FACT_ID}, body=fields.FactEdit, refusals=(409,),
            description="The archive keeps the earlier version.",
        ),
        Operation(
            "DELETE", "/v1/facts/{fact_id}", "removeFact", "Remove a fact for good", "person", facts.remove_fact,
            {204: None}, query=fields.OneMemory, refusals=(409,),
            description="No conversation brings it back; only adding it by hand does.",
        ),
        Operation(
            "GET", "/v1/profile", "profile", "The user's profile, with which every block begins", "read",
            facts.profile, {200: schemas.PROFILE}, query=fields.OneMemory,
        ),
        Operation(
            "PUT", "/v1/profile", "setProfile", "Set a field of the profile by hand", "person", facts.set_profile,
            {200: schemas.PROFILE_FIELD}, body=fields.ProfileSet, refusals=(409,),
            description="No model overwrites it. `content` has the user's own instructions.",
        ),
        Operation(
            "DELETE", "/v1/profile", "unsetProfile", "Take a field out of the profile", "person",
            facts.unset_profile, {204: None}, query=fields.ProfileUnset, refusals=(409,),
        ),
        Operation(
            "GET", "/v1/doubtful", "doubtful", "The facts that a person has to decide on", "read", facts.doubtful,
            {200: schemas.FACTS}, query=fields.OneMemory,
            description="For people: no prompt may have them. `doubtfulWhy` is authority, support or sensitive.",
        ),
        Operation(
            "POST", "/v1/doubtful/{fact_id}/approve", "approveFact", "Make a doubtful fact a fact of the memory",
            "person", facts.approve_fact, {200: schemas.FACT_ID}, body=fields.Approval, refusals=(409,),
            description="It keeps its evidence and its time, and replaces what it was to replace. 422 E_SUPERSEDED: "
            "something else was said later; `anyway` approves it all the same.",
        ),
        Operation(
            "POST", "/v1/doubtful/{fact_id}/drop", "dropFact", "Take a doubtful fact out for good", "person",
            facts.drop_fact, {204: None}, body=fields.Decision, refusals=(409,),
            description="No conversation brings it back.",
        ),
    ]  # fmt: skip


def _projects() -> list[Operation]:
    one, fact = project_fields.OneProject, "/v1/projects/facts/{fact_id}"
    return [
        Operation(
            "GET", "/v1/projects", "projects", "The projects of a user", "read", projects.listed,
            {200: schemas.PROJECTS}, query=project_fields.MyProjects,
        ),
        Operation(
            "POST", "/v1/projects", "makeProject", "Make a project of the token's app", "admin", projects.make,
            {201: schemas.FACT_ID}, body=project_fields.NewProject, refusals=(409,),
            description="Its id is never used again. `user_id` is the first owner.",
        ),
        Operation(
            "DELETE", "/v1/projects", "closeProject", "Close a project for good", "person", projects.close,
            {204: None}, query=one, refusals=(403, 404, 409),
        ),
        Operation(
            "GET", "/v1/projects/members", "projectMembers", "The members of a project", "read", projects.members,
            {200: schemas.MEMBERS}, query=one, refusals=(404,),
        ),
        Operation(
            "PUT", "/v1/projects/members", "setProjectMember", "Add a member, or give one another role", "person",
            projects.set_member, {200: schemas.MEMBER}, body=project_fields.MemberRole, refusals=(403, 404, 409),
        ),
        Operation(
            "DELETE", "/v1/projects/members", "removeProjectMember", "Remove a member, who loses access at once",
            "person", projects.remove_member, {204: None}, query=project_fields.OneMember, refusals=(403, 404, 409),
        ),
        Operation(
            "GET", "/v1/projects/profile", "projectProfile", "A project's profile, with its key decisions", "read",
            projects.profile, {200: schemas.PROFILE}, query=one, refusals=(404,),
        ),
        Operation(
            "PUT", "/v1/projects/profile", "setProjectProfile", "Set a field of a project's profile", "person",
            projects.set_profile, {200: schemas.PROFILE_FIELD}, body=project_fields.ProjectProfileSet,
            refusals=(403, 404, 409),
        ),
        Operation(
            "DELETE", "/v1/projects/profile", "unsetProjectProfile", "Take a field out of a project's profile",
            "person", projects.unset_profile, {204: None}, query=project_fields.ProjectProfileUnset,
            refusals=(403, 404, 409),
        ),
        Operation(
            "GET", "/v1/projects/timeline", "projectTimeline", "What was decided and happened, by day", "read",
            projects.timeline, {200: schemas.TIMELINE}, query=project_fields.ProjectPeriod, refusals=(404,),
        ),
        Operation(
            "GET", "/v1/projects/facts", "projectFacts", "The facts of a project that the user may read", "read",
            projects.facts, {200: schemas.LISTED_FACTS}, query=project_fields.ProjectFacts, refusals=(404,),
            description="With what the user alone knows of it, which has the visibility `owner_only`.",
        ),
        Operation(
            "POST", "/v1/projects/facts", "addProjectFact", "Add a fact by hand", "person", projects.add_fact,
            {201: schemas.FACT_ID}, body=project_fields.NewProjectFact, refusals=(403, 404, 409),
        ),
        Operation(
            "GET", fact, "whyProjectFact", "Who said a fact, in which words, and what disputes it", "read",
            projects.why, {200: schemas.PROJECT_WHY}, query=one, refusals=(404,),
            description="Turns only to who said them, with the scope `said`.",
        ),
        Operation(
            "PATCH", fact, "editProjectFact", "Change a fact's words, category or visibility", "person",
            projects.edit_fact, {200: schemas.FACT_ID}, body=project_fields.ProjectFactEdit, refusals=(403, 404, 409),
        ),
        Operation(
            "DELETE", fact, "removeProjectFact", "Remove a fact for good", "person", projects.remove_fact,
            {204: None}, query=one, refusals=(403, 404, 409),
        ),
        Operation(
            "POST", f"{fact}/publish", "publishFact", "Share a fact that the user alone knows", "person",
            projects.publish, {200: schemas.FACT_ID}, body=one, refusals=(403, 404, 409),
        ),
        Operation(
            "POST", f"{fact}/hide", "hideFact", "Take a fact back that the user alone has said", "person",
            projects.hide, {200: schemas.FACT_ID}, body=one, refusals=(403, 404, 409),
        ),
        Operation(
            "POST", f"{fact}/decide", "decideDispute", "Settle a dispute for a fact", "person", projects.decide,
            {200: schemas.FACT_ID}, body=one, refusals=(403, 404, 409),
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
        ),
        Operation(
            "POST", "/v1/forget", "forget", "Forget a user for good", "admin", memory.forget,
            {200: schemas.FORGOTTEN, 202: schemas.FORGOTTEN}, body=fields.Forget,
            description="202: the inbox could not be reached; the documents are gone, and a worker completes the rest.",
        ),
    ]  # fmt: skip


def _monitoring() -> list[Operation]:
    return [
        Operation(
            "GET", "/v1/status", "status", "The figures of the inbox", "status", monitoring.status, {200: Status},
        ),
        Operation(
            "GET", "/metrics", "metrics", "The same for Prometheus", "status", monitoring.metrics, {200: "text/plain"}
        ),
        Operation(
            "GET", "/health", "health", "Whether this process is alive", None, monitoring.Health(),
            {200: schemas.HEALTH},
        ),
        Operation(
            "GET", "/ready", "ready", "Whether pushes are taken and the store can be written", None,
            monitoring.Ready(), {200: schemas.READY},
            description="503 with the code of the part that is away. The check writes to the store, at most once a "
            "second.",
        ),
        Operation(
            "GET", "/openapi.json", "openapi", "This document", None, monitoring.openapi, {200: {"type": "object"}}
        ),
    ]  # fmt: skip
