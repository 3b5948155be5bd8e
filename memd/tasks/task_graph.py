"""The task graph that agents share: what has to be done, and what waits for what. It outlives every conversation."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from memd.context import DEFAULT_AGENT
from memd.tasks import graph, task_files
from memd.tasks.graph import Task, TaskOverview
from memd.tasks.task_folder import folder_of


class TaskGraph:
    """The tasks of one agent for one user, in `<data>/tasks`. Safe among threads and processes of one machine.

    Each call reads the files under a lock, so every writer builds on what the others wrote. Every method raises
    Rejected (nothing was changed), StoreUnavailable, and DocumentDamaged for a file that is no task.
    """

    def __init__(self, data_dir: Path, user_id: str, agent_name: str = DEFAULT_AGENT) -> None:
        """`data_dir`: the setting of that name, as `Memd().settings` has it. Raises Rejected."""
        self._folder = folder_of(data_dir, user_id, agent_name)

    def create(self, subject: str, description: str = "") -> Task:
        """Add a task: a line of at most 200 characters, and a description of at most 4,000."""
        with self._folder.held():
            tasks = task_files.read(self._folder)
            task = graph.created(tasks, subject, description)
            task_files.write(self._folder, tasks, {**tasks, task.id: task})
        return task

    def update(
        self,
        task_id: int,
        *,
        status: str | None = None,
        owner: str | None = None,
        add_blocked_by: Collection[int] = (),
        add_blocks: Collection[int] = (),
        remove_blocked_by: Collection[int] = (),
    ) -> Task:
        """Change a task: `pending`, `in_progress` or `completed`, who works on it, and what waits for what.

        Completing a task unblocks those that wait for it. A task that waits for others can be neither started nor
        completed. Whoever starts a task with an `owner` that somebody else has started is refused.
        """
        change = graph.check_change(status, owner, add_blocked_by, add_blocks, remove_blocked_by)
        with self._folder.held():
            tasks = task_files.read(self._folder)
            after = graph.changed(tasks, task_id, change)
            task_files.write(self._folder, tasks, after)
        return after[task_id]

    def remove(self, task_id: int) -> None:
        """Remove a task for good; what waited for it waits for it no longer. The highest id may be given again."""
        with self._folder.held():
            tasks = task_files.read(self._folder)
            task_files.write(self._folder, tasks, graph.removed(tasks, task_id))

    def list(self) -> list[Task]:
        """All tasks, ordered by id."""
        with self._folder.held():
            return [*task_files.read(self._folder).values()]

    def get(self, task_id: int) -> Task:
        """The task with this id."""
        with self._folder.held():
            return graph.find(task_files.read(self._folder), task_id)

    def overview(self) -> TaskOverview:
        """All tasks by what can start, what is being done, what is blocked and what is done."""
        return graph.overview(self.list())
