"""What an export adds to the tasks that are there. Pure: joining the same export a second time changes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from memd.tasks.graph import MAX_TASKS, Task, Tasks, check_cycles, mirrored


def joined(tasks: Tasks, others: Iterable[Task]) -> tuple[dict[int, Task], int]:
    """The tasks, unchanged, with those others that are not there yet, and how many of these found no room.

    A task with the same subject and description is there; it may have gone on since. The others keep their ids where
    these are free, and wait for what they waited for. Raises Rejected when they wait for each other.
    """
    there: dict[tuple[str, str], list[int]] = {}
    for task in tasks.values():
        there.setdefault((task.subject, task.description), []).append(task.id)
    after, ids, fresh, full = dict(tasks), dict[int, int](), list[Task](), 0
    for other in sorted(others, key=lambda other: other.id):
        same = there.get((other.subject, other.description))
        if same:
            ids[other.id] = same.pop(0)
        elif len(after) >= MAX_TASKS:
            full += 1
        else:
            ids[other.id] = other.id if other.id not in after else max(after) + 1
            after[ids[other.id]] = other
            fresh.append(other)
    for other in fresh:
        waits = () if other.status != "pending" else tuple(ids[one] for one in other.blocked_by if one in ids)
        after[ids[other.id]] = replace(other, id=ids[other.id], blocked_by=waits)
    check_cycles({task.id: frozenset(task.blocked_by) for task in after.values()})
    return mirrored(after), full
