"""The verbs of memd side by side: command line, HTTP, MCP, library. A door that lacks one says why.

A new command, route, tool or method has to get its place in this table, with its twins or the reason why it has none.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from mcp import Client

from memd.cli.app import COMMANDS, load
from memd.client import Memd
from memd.config import Settings
from memd.http.routes import operations
from memd.mcp.binding import ByProcess
from memd.mcp.server import Offer, build
from memd.projects.project import Project


class No(str):
    """Why a door does not have a verb."""

    __slots__ = ()


Door = str | tuple[str, ...] | No


class Row(NamedTuple):
    """One verb at each door: the command, the operation's id, the tool (prompt, resource), the method; or why not."""

    verb: str
    cli: Door
    http: Door
    mcp: Door
    library: Door


APP_PUSHES = No("the host's app pushes; a model would push its own words")
EMPTY = No("no method of its own")
MACHINE = No("of this machine: its processes, files, accounts")
ONE_USER = No("a server of one user's memory, which its token or process names")
OPERATORS = No("an operator's: a model has no use for it")
PERSON = No("a person decides, not a model")
PROJECT = No("a model saves for the project that its host names; the rest is its members'")
OWN_WINDOW = No("a session is a window in the app's own process; an app in another language keeps its own and pushes")
WITH_EXPORT = No("an export with the scope said has them")
WORK_OF_OPS = No("memd.ops.audit.inspect: above the client on the floor plan")

TABLE = [
    # conversations in
    Row("push", "push", "push", APP_PUSHES, ("push", "push_json", "push_parsed")),
    Row("flush", "flush", "flush", APP_PUSHES, "flush"),
    Row("receipt", "receipt", "receipt", APP_PUSHES, "receipt"),
    Row("where a push is", No("pending lists it"), No("pending lists it"), APP_PUSHES, "key_of_receipt"),
    Row("pending", "pending", "pending", "memory_stats", "pending"),
    # reading
    Row("inject", "inject", ("inject", "injectFor"), ("prompt memory", "memory://{user}"), ("inject", "injection")),
    Row("inject from the cache", No("a process of its own"), "inject", ONE_USER, "injection_at_hand"),
    Row("search", "search", "search", "memory_search", "search"),
    Row("show", "show", "memory", "memory_stats", ("document", "seen_document")),
    Row("as of a moment", "show --at", "memory", No("memory_list has the statuses and times"), "past"),
    Row("damage", "show", No("audit finds it as malformed"), OPERATORS, "inspect"),
    Row("why", "why", "why", No("the evidence is for people; a fact is data either way"), "why"),
    Row("refused facts", "why --refused", WITH_EXPORT, PERSON, "refused"),
    # facts
    Row("list", "facts list", "facts", "memory_list", "facts"),
    Row("archive", "facts archived", "archive", "memory_list", "archived"),
    Row("withheld", "facts withheld", "withheld", PERSON, "withheld"),
    Row("add by hand", "facts add", "addFact", PERSON, "add_fact"),
    Row("note", No("a person writes facts"), "addNote", "memory_save", No("memd.adapters.agent_memory.AgentMemory")),
    Row("edit", "facts edit", "editFact", "memory_update", "edit_fact"),
    Row("remove", "facts rm", "removeFact", No("memory_delete archives; for good a person removes"), "remove_fact"),
    Row("retire", No("a person removes or edits"), No("a note's end is a person's"), "memory_delete", EMPTY),
    Row("restore", "facts restore", "restoreFact", PERSON, "restore_fact"),
    Row("doubtful", "facts doubtful", "doubtful", "memory_doubtful", "doubtful"),
    Row("approve", "facts approve", "approveFact", PERSON, "approve_fact"),
    Row("drop doubtful", "facts drop", "dropFact", PERSON, "drop_fact"),
    Row("profile", "profile show", "profile", No("every block begins with it"), "profile"),
    Row("set profile", ("profile set", "profile edit"), "setProfile", PERSON, "set_profile"),
    Row("unset profile", "profile unset", "unsetProfile", PERSON, "unset_profile"),
    # users
    Row("users", "users", "users", ONE_USER, "users"),
    Row("export", "export", "export", ONE_USER, "export"),
    Row("import", "import", "import", ONE_USER, "import_memory"),
    Row("forget", "forget", "forget", PERSON, "forget"),
    Row("audit", "audit", "audit", OPERATORS, WORK_OF_OPS),
    # projects
    Row("projects", "project list", "projects", PROJECT, "projects"),
    Row("one project", No("every command names it"), No("every route names it"), PROJECT, "project"),
    Row("make project", "project make", "makeProject", PROJECT, "Project.make"),
    Row("close project", "project close", "closeProject", PROJECT, "Project.close"),
    Row("members", "project members", "projectMembers", PROJECT, "Project.members"),
    Row("set member", "project role", "setProjectMember", PROJECT, "Project.set_member"),
    Row("remove member", "project remove-member", "removeProjectMember", PROJECT, "Project.remove_member"),
    Row("project's facts", "project facts", "projectFacts", "memory_list", ("Project.facts", "Project.archived")),
    Row("private facts", "project facts", "projectFacts", "memory_list", "Project.private"),
    Row("project's why", "project why", "whyProjectFact", PROJECT, "Project.why"),
    Row("timeline", "project timeline", "projectTimeline", PROJECT, "Project.timeline"),
    Row("add to project", "project add", "addProjectFact", PROJECT, "Project.add_fact"),
    Row("edit in project", "project edit", "editProjectFact", PROJECT, "Project.edit_fact"),
    Row("remove in project", "project rm", "removeProjectFact", PROJECT, "Project.remove_fact"),
    Row("decide", "project decide", "decideDispute", PROJECT, "Project.decide"),
    Row("publish", "project publish", "publishFact", PROJECT, "Project.publish"),
    Row("hide", "project hide", "hideFact", PROJECT, "Project.hide"),
    Row("project's profile", "profile show", "projectProfile", PROJECT, "Project.profile"),
    Row("set project's profile", "profile set", "setProjectProfile", PROJECT, "Project.set_profile"),
    Row("unset project's profile", "profile unset", "unsetProjectProfile", PROJECT, "Project.unset_profile"),
    Row("project's export", "project export", No("of whoever runs memd"), PROJECT, "Project.export"),
    Row("project's audit", "project audit", No("of whoever runs memd"), PROJECT, WORK_OF_OPS),
    Row("check rights", EMPTY, No("each route does"), PROJECT, "Project.check"),
    # sessions
    Row("sessions", "session list", OWN_WINDOW, ONE_USER, "sessions"),
    Row("session", "session show", OWN_WINDOW, "reload", "session"),
    Row("compact", "session compact", OWN_WINDOW, "compact", "session"),
    Row("export session", "session export", No("the export of the user has it"), ONE_USER, "session"),
    Row("remove session", "session rm", OWN_WINDOW, PERSON, "remove_session"),
    # todo lists and tasks: a model's own
    *(
        Row(name, No("a model's own; export has them"), No("a model's own; export has them"), name, No("memd.tasks"))
        for name in ("todo_write", "todo_read", "task_create", "task_update", "task_list", "task_get", "task_remove")
    ),
    # dead letters
    Row("dead", "dead list", "dead", OPERATORS, ("dead", "dead_page")),
    Row("dead letter", "dead show", "deadLetter", OPERATORS, "dead_letter"),
    Row("retry", "dead retry", "retryDead", OPERATORS, "retry"),
    Row("drop", "dead drop", "dropDead", OPERATORS, "drop"),
    # figures
    Row("status", ("status", "watch"), ("status", "metrics"), OPERATORS, "status"),
    Row("cost", "status --cost", "cost", OPERATORS, "cost"),
    Row("hours", "status --hours", "hours", OPERATORS, "hours"),
    Row("health", "doctor", ("health", "ready"), OPERATORS, No("memd.ops.doctor.examine")),
    Row("documents", No("each has --help"), ("openapi", "docs"), No("the list of tools"), No("the docstrings")),
    # this machine
    Row("close", EMPTY, EMPTY, EMPTY, "close"),
    Row("back up", "backup", MACHINE, MACHINE, MACHINE),
    Row("restore a backup", "restore", MACHINE, MACHINE, MACHINE),
    *(
        Row(name, name, MACHINE, MACHINE, MACHINE)
        for name in (
            "up", "server", "scheduler", "worker", "serve", "console", "mcp", "demo", "where", "try", "reextract",
            "eval", "config", "acl", "token add", "token list", "token rm", "store init", "store roles", "store copy",
            "vectors status", "vectors rebuild",
        )
    ),
]  # fmt: skip


def commands() -> Iterator[str]:
    """Every command, those of groups with their group's name."""

    def leaves(command: Any, name: str) -> Iterator[str]:
        inner = getattr(command, "commands", None)
        if not inner:
            yield name
            return
        for word, one in inner.items():
            yield from leaves(one, f"{name} {word}")

    for name in COMMANDS:
        yield from leaves(load(name), name)


def methods() -> Iterator[str]:
    """Every public method of the client and of a project."""
    for kind, before in ((Memd, ""), (Project, "Project.")):
        names = (name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_"))
        yield from (f"{before}{name}" for name in names)


@cache
def tools() -> frozenset[str]:
    """Every tool, prompt and resource of an MCP server that offers everything."""

    async def told() -> frozenset[str]:
        with Memd(Settings()) as memd:
            async with Client(build(memd, ByProcess("ana"), Offer(tasks=True, thread_id="t"))) as client:
                found = {tool.name for tool in (await client.list_tools()).tools}
                found |= {f"prompt {prompt.name}" for prompt in (await client.list_prompts()).prompts}
                templates = (await client.list_resource_templates()).resource_templates
                return frozenset(found | {one.uri_template for one in templates})

    return asyncio.run(told())


def at(door: str) -> set[str]:
    """The names that the table has at a door, without options."""
    cells: list[Door] = [getattr(row, door) for row in TABLE]
    named = [(cell,) if isinstance(cell, str) else cell for cell in cells if not isinstance(cell, No)]
    return {name.partition(" --")[0] for names in named for name in names}


def test_every_command_has_its_row() -> None:
    """And the table names none that there is not."""
    assert at("cli") == set(commands())


def test_every_operation_has_its_row() -> None:
    """And the table names none that there is not."""
    assert at("http") == {operation.name for operation in operations()}


def test_every_tool_has_its_row() -> None:
    """And the table names none that there is not."""
    assert at("mcp") == tools()


def test_every_method_has_its_row() -> None:
    """And the table names none that there is not."""
    assert at("library") == set(methods())


def test_a_door_without_a_verb_says_why() -> None:
    """Each verb is one row and at one door at least; every other door has it or a reason in words."""
    assert len({row.verb for row in TABLE}) == len(TABLE)
    for row in TABLE:
        reasons = [cell for cell in row[1:] if isinstance(cell, No)]
        assert len(reasons) < len(row[1:]), row.verb
        assert all(len(reason.split()) > 1 or "memd." in reason for reason in reasons), row.verb
