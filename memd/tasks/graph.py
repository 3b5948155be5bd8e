"""The task graph as values: tasks by id, and what each change makes of them. Pure; `task_files` writes them.

A task waits for the tasks in its `blockedBy`; each of these names it in its `blocks`. A completed task holds nobody up:
completing it takes it out of both lists. So a task that was started or completed waits for nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from memd.errors import Rejected
from memd.tasks.checks import check_choice, check_id, check_ids, check_line, check_text

TaskStatus = Literal["pending", "in_progress", "completed"]
STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)

MAX_TASKS = 1_000
"""Tasks of one graph. Each call reads them all: some 30 ms of CPU for 1,000, on one core of an AMD EPYC."""

MAX_SUBJECT, MAX_DESCRIPTION, MAX_OWNER = 200, 4_000, 100
"""Characters."""


class Task(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One task, as its file has it. `owner`: who works on it, as the agents name themselves; empty: nobody yet."""

    id: int
    subject: str
    description: str = ""
    status: TaskStatus = "pending"
    blocked_by: tuple[int, ...] = ()
    blocks: tuple[int, ...] = ()
    owner: str = ""


Tasks = Mapping[int, Task]


@dataclass(frozen=True, slots=True)
class TaskChange:
    """A checked change of one task; None and empty sets leave their part as it is."""

    status: TaskStatus | None = None
    owner: str | None = None
    add_blocked_by: frozenset[int] = frozenset()
    add_blocks: frozenset[int] = frozenset()
    remove_blocked_by: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class TaskOverview:
    """All tasks of a graph, each in one list, ordered by id. `can_start`: pending, and waits for nobody."""

    can_start: list[Task]
    in_progress: list[Task]
    blocked: list[Task]
    done: list[Task]


def check_change(
    status: object, owner: object, add_blocked_by: object, add_blocks: object, remove_blocked_by: object
) -> TaskChange:
    """The change that an app or a model asks for. Raises Rejected."""
    return TaskChange(
        None if status is None else check_choice("status", status, STATUSES),
        None if owner is None else check_line("owner", owner, MAX_OWNER, least=0),
        check_ids("add_blocked_by", add_blocked_by),
        check_ids("add_blocks", add_blocks),
        check_ids("remove_blocked_by", remove_blocked_by),
    )


def created(tasks: Tasks, subject: object, description: object) -> Task:
    """A new task; its id is one above the highest. Raises Rejected."""
    if len(tasks) >= MAX_TASKS:
        raise Rejected("E_TASKS", f"there are {MAX_TASKS} tasks; remove those that are done", "tasks", MAX_TASKS)
    return Task(
        max(tasks, default=0) + 1,
        check_line("subject", subject, MAX_SUBJECT),
        check_text("description", description, MAX_DESCRIPTION),
    )


def changed(tasks: Tasks, task_id: object, change: TaskChange) -> dict[int, Task]:
    """All tasks after the change of one. Raises Rejected: nothing is changed by half."""
    task = find(tasks, task_id)
    _check_taken(task, change)
    edges = _edges(tasks)
    blockers = _known(tasks, "add_blocked_by", change.add_blocked_by)
    edges[task.id] = (edges[task.id] | blockers) - _known(tasks, "remove_blocked_by", change.remove_blocked_by)
    for other in _known(tasks, "add_blocks", change.add_blocks):
        edges[other] = edges[other] | {task.id}
    if change.add_blocked_by or change.add_blocks:
        check_cycles(edges)
    owner = task.owner if change.owner is None else change.owner
    after = {**tasks, task.id: replace(task, status=change.status or task.status, owner=owner)}
    for one in {task.id, *change.add_blocks}:
        _check_waiting(after, one, edges[one], "add_blocks" if one != task.id else "status")
    return mirrored({one.id: replace(one, blocked_by=tuple(edges[one.id])) for one in after.values()})


def removed(tasks: Tasks, task_id: object) -> dict[int, Task]:
    """The tasks without this one; what waited for it waits for it no longer. Raises Rejected."""
    gone = find(tasks, task_id).id
    return mirrored({one.id: one for one in tasks.values() if one.id != gone})


def find(tasks: Tasks, task_id: object, field: str = "task_id") -> Task:
    """The task with this id. Raises Rejected."""
    task = tasks.get(check_id(field, task_id))
    if task is None:
        raise Rejected("E_TASK_UNKNOWN", f"{field} names a task that is not there", field)
    return task


def mirrored(tasks: Tasks) -> dict[int, Task]:
    """The same tasks with `blockedBy` of those that still hold up, and with `blocks` as its mirror, ordered by id.

    Where a file was written or removed by hand, `blockedBy` decides.
    """
    edges = _edges(tasks)
    blocks: dict[int, list[int]] = {one: [] for one in tasks}
    for one in sorted(edges):
        for blocker in edges[one]:
            blocks[blocker].append(one)
    return {
        one: replace(tasks[one], blocked_by=tuple(sorted(edges[one])), blocks=tuple(blocks[one]))
        for one in sorted(tasks)
    }


def overview(tasks: Iterable[Task]) -> TaskOverview:
    """What can start, what is being done, what waits, what is done."""
    found = TaskOverview([], [], [], [])
    for task in tasks:
        if task.status == "completed":
            found.done.append(task)
        elif task.status == "in_progress":
            found.in_progress.append(task)
        elif task.blocked_by:
            found.blocked.append(task)
        else:
            found.can_start.append(task)
    return found


def _edges(tasks: Tasks) -> dict[int, frozenset[int]]:
    """For each task those that it waits for: there, not completed, not itself. A completed task waits for nobody."""
    holding = {task.id for task in tasks.values() if task.status != "completed"}
    return {
        task.id: frozenset(task.blocked_by) & holding - {task.id} if task.id in holding else frozenset()
        for task in tasks.values()
    }


def _known(tasks: Tasks, field: str, ids: frozenset[int]) -> frozenset[int]:
    """The same ids. Raises Rejected when one names no task."""
    for one in ids:
        find(tasks, one, field)
    return ids


def check_cycles(edges: Mapping[int, frozenset[int]]) -> None:
    """Raises Rejected when tasks wait for each other. `edges`: for each task those that it waits for."""
    try:
        TopologicalSorter(edges).prepare()
    except CycleError:  # graphlib counts a task that waits for itself as well
        raise Rejected(
            "E_TASK_CYCLE", "these tasks would wait for each other, so none could start", "blockedBy"
        ) from None


def _check_waiting(tasks: Tasks, task_id: int, blockers: frozenset[int], field: str) -> None:
    """A task that waits is pending. Completed blockers do not count."""
    if tasks[task_id].status != "pending" and any(tasks[one].status != "completed" for one in blockers):
        raise Rejected("E_TASK_BLOCKED", "a task that waits for others can be neither started nor completed", field)


def _check_taken(task: Task, change: TaskChange) -> None:
    """Of two agents that start one task, the second one is told so."""
    if change.status == task.status == "in_progress" and change.owner and task.owner not in {"", change.owner}:
        raise Rejected("E_TASK_TAKEN", "somebody else works on this task; its owner must give it back first", "owner")
