"""Todo lists and tasks in exports and imports: all of a user's agents, or those of one; what is there stays."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from memd.context import DEFAULT_AGENT
from memd.errors import Rejected
from memd.identifiers import check_identifier
from memd.tasks import task_files, todo_files
from memd.tasks.checks import check_line, check_text
from memd.tasks.graph import MAX_DESCRIPTION, MAX_OWNER, MAX_SUBJECT, Task
from memd.tasks.joining import joined
from memd.tasks.task_folder import TaskFolder, agents_of
from memd.tasks.todo_files import MAX_LISTS, StoredList
from memd.tasks.todo_items import check_items

MAX_ID = 10**9
"""The highest id of an imported task, far below what the name of a file can hold."""


class AgentTasks(Struct, frozen=True, rename="camel"):
    """The lists and tasks of one agent for one user, as an export has them."""

    agent_name: str = DEFAULT_AGENT
    todo: tuple[StoredList, ...] = ()
    graph: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedTasks:
    """The import for one agent. `known`: lists and tasks that were there; `full`: those that found no room."""

    agent_name: str
    lists: int = 0
    tasks: int = 0
    known: int = 0
    full: int = 0


def exported(data_dir: Path, user_id: str, agent_name: str | None) -> list[dict[str, Any]]:
    """The lists and tasks of a user's agents, or of one agent. Raises StoreUnavailable, DocumentDamaged."""
    names = [DEFAULT_AGENT, *agents_of(data_dir, user_id)] if agent_name is None else [agent_name]
    found = [_read(TaskFolder(data_dir, user_id, name), name) for name in names]
    return [to_builtins(one) for one in found if one.todo or one.graph]


def parcels_of(value: object) -> list[AgentTasks]:
    """The lists and tasks of an export, agent by agent. Raises Rejected with the place."""
    entries = value.get("tasks", []) if isinstance(value, dict) else []
    try:
        found = convert(entries, list[AgentTasks])
    except ValidationError:  # its own words may hold text of it
        raise Rejected("E_IMPORT_TASKS", "tasks must be as `memd export` writes them", "tasks") from None
    if len({one.agent_name for one in found}) < len(found):
        raise Rejected("E_IMPORT_TASKS", "tasks must name each agent once", "tasks")
    return [_checked(one, f"tasks[{number}]") for number, one in enumerate(found)]


def moved(parcel: AgentTasks, agent_name: str) -> AgentTasks:
    """The same for another agent."""
    return replace(parcel, agent_name=agent_name)


def imported(data_dir: Path, user_id: str, parcel: AgentTasks, *, dry_run: bool) -> ImportedTasks:
    """Add the lists and tasks that are not there. Raises StoreUnavailable, DocumentDamaged."""
    folder = TaskFolder(data_dir, user_id, parcel.agent_name)
    with folder.held():
        before = task_files.read(folder)
        after, full = joined(before, parcel.graph)
        known = {stored.name for stored in todo_files.read_lists(folder)}
        new = [stored for stored in parcel.todo if stored.name not in known]
        fitting = new[: max(0, MAX_LISTS - len(known))]
        if not dry_run:
            task_files.write(folder, before, after)
            for stored in fitting:
                todo_files.write_list(folder, stored.name, stored.items)
    added, full = len(after) - len(before), full + len(new) - len(fitting)
    offered = len(parcel.todo) + len(parcel.graph)
    return ImportedTasks(parcel.agent_name, len(fitting), added, offered - len(fitting) - added - full, full)


def _read(folder: TaskFolder, agent_name: str) -> AgentTasks:
    with folder.held():
        tasks = task_files.read(folder)
        return AgentTasks(agent_name, tuple(todo_files.read_lists(folder)), tuple(tasks.values()))


def _checked(parcel: AgentTasks, place: str) -> AgentTasks:
    """The same by the rules of the doors. Raises Rejected with the place."""
    try:
        if parcel.agent_name:
            check_identifier("agent_name", parcel.agent_name)
        todo = [_checked_list(stored) for stored in parcel.todo if stored.items]
        graph = [_checked_task(task) for task in parcel.graph]
        if len({stored.name for stored in todo}) < len(todo) or len({task.id for task in graph}) < len(graph):
            raise Rejected("E_TWICE", "each list and each id of a task must be there once")
        joined({}, graph)  # tasks that wait for each other are refused before anything is written
    except Rejected as error:
        raise Rejected("E_IMPORT_TASKS", f"{place}: {str(error).partition(': ')[2]}", place, error.limit) from None
    return AgentTasks(parcel.agent_name, tuple(todo), tuple(graph))


def _checked_list(stored: StoredList) -> StoredList:
    return StoredList(check_identifier("name", stored.name), tuple(check_items(to_builtins(stored.items))))


def _checked_task(task: Task) -> Task:
    if not 0 < task.id <= MAX_ID:
        raise Rejected("E_TASK_ID", f"ids of tasks go from 1 to {MAX_ID:,}", "id", MAX_ID)
    return replace(
        task,
        subject=check_line("subject", task.subject, MAX_SUBJECT),
        description=check_text("description", task.description, MAX_DESCRIPTION),
        owner=check_line("owner", task.owner, MAX_OWNER, least=0),
    )
