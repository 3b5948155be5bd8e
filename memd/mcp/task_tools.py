"""The tools that a model has for its todo list and its task graph. Both belong to the caller's user and this agent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from mcp_types import ToolAnnotations
from msgspec import to_builtins
from pydantic import BaseModel, Field

from memd.context import DEFAULT_AGENT
from memd.mcp.binding import Binding, Need
from memd.mcp.offered import OfferedTool
from memd.mcp.tool_errors import tool_errors
from memd.tasks.graph import STATUSES, Task, overview
from memd.tasks.task_graph import TaskGraph
from memd.tasks.todo import DEFAULT_LIST, TodoList
from memd.tasks.todo_items import render

Status = Annotated[str, Field(description=", ".join(STATUSES), json_schema_extra={"enum": list(STATUSES)})]
TaskId = Annotated[int, Field(description="The task's id, as task_list returns it.")]
Ids = Annotated[list[int], Field(description="Ids of tasks.")]
ListName = Annotated[str, Field(description="Another list than the usual one, for conversations side by side.")]


class TodoArgument(BaseModel):
    """One item as the model sends it; `memd.tasks` checks it."""

    text: str
    status: Status = "pending"
    id: str = Field(default="", description="Stays with the item when the list is replaced; default: its number.")


class TaskTools:
    """The seven tools. The binding knows the user of each call."""

    def __init__(self, data_dir: Path, binding: Binding, agent_name: str = DEFAULT_AGENT) -> None:
        self._data_dir = data_dir
        self._binding = binding
        self._agent_name = agent_name

    def todo_write(
        self,
        items: Annotated[list[TodoArgument], Field(description="The whole list, in order. Empty: no list.")],
        list_name: ListName = DEFAULT_LIST,
    ) -> str:
        """Replace your todo list: the steps of the work at hand. At most one item is in_progress at a time.

        Write it before work of several steps, and again whenever a step begins or ends.
        """
        with tool_errors():
            sent = [item.model_dump(exclude=set() if item.id else {"id"}) for item in items]
            return render(self._todo("write", list_name).write(sent))

    def todo_read(self, list_name: ListName = DEFAULT_LIST) -> str:
        """Read your todo list: `[ ]` pending, `[>]` in progress, `[x]` completed."""
        with tool_errors():
            return self._todo("read", list_name).render()

    def task_create(
        self,
        subject: Annotated[str, Field(description="What has to be done, in one line.")],
        description: Annotated[str, Field(description="What somebody needs to know who has not read this.")] = "",
    ) -> dict[str, Any]:
        """Add a task to the graph, which outlives this conversation. Its id is in the result."""
        with tool_errors():
            return to_builtins(self._graph("write").create(subject, description))  # type: ignore[no-any-return]

    def task_update(
        self,
        task_id: TaskId,
        status: Status | None = None,
        owner: Annotated[str | None, Field(description="Who works on it; empty: nobody.")] = None,
        add_blocked_by: Ids = [],  # noqa: B006  (the schema shows the default; nobody changes it)
        add_blocks: Ids = [],  # noqa: B006
        remove_blocked_by: Ids = [],  # noqa: B006
    ) -> dict[str, Any]:
        """Change a task: its status, its owner, and what waits for what. Completing it unblocks what waits for it."""
        with tool_errors():
            task = self._graph("write").update(
                task_id,
                status=status,
                owner=owner,
                add_blocked_by=add_blocked_by,
                add_blocks=add_blocks,
                remove_blocked_by=remove_blocked_by,
            )
        return to_builtins(task)  # type: ignore[no-any-return]

    def task_list(self) -> str:
        """List the tasks by what can start, what is in progress, what is blocked and what is done."""
        with tool_errors():
            found = overview(self._graph("read").list())
        parts = [
            ("Can start", found.can_start),
            ("In progress", found.in_progress),
            ("Blocked", found.blocked),
            ("Done", found.done),
        ]
        return "\n".join(line for title, tasks in parts if tasks for line in (f"{title}:", *map(_line, tasks))) or (
            "No tasks."
        )

    def task_get(self, task_id: TaskId) -> dict[str, Any]:
        """Read one task with its description, and with what it waits for and what waits for it."""
        with tool_errors():
            return to_builtins(self._graph("read").get(task_id))  # type: ignore[no-any-return]

    def task_remove(self, task_id: TaskId) -> str:
        """Remove a task that is done, or was never needed, for good. What waited for it waits for it no longer."""
        with tool_errors():
            self._graph("write").remove(task_id)
        return "Removed."

    def all(self) -> list[OfferedTool]:
        """The tools, with the hints that hosts get."""
        reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        adds = ToolAnnotations(destructive_hint=False, idempotent_hint=False, open_world_hint=False)
        changes = ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False)
        return [
            OfferedTool(self.todo_write, "Write the todo list", changes),
            OfferedTool(self.todo_read, "Read the todo list", reads),
            OfferedTool(self.task_create, "Make a task", adds),
            OfferedTool(self.task_update, "Change a task", changes),
            OfferedTool(self.task_list, "List tasks", reads),
            OfferedTool(self.task_get, "Read a task", reads),
            OfferedTool(self.task_remove, "Remove a task", changes),
        ]

    def _todo(self, need: Need, name: str) -> TodoList:
        return TodoList(self._data_dir, self._binding.user(need), self._agent_name, name=name)

    def _graph(self, need: Need) -> TaskGraph:
        return TaskGraph(self._data_dir, self._binding.user(need), self._agent_name)


def _line(task: Task) -> str:
    waits = f" (waits for {', '.join(f'#{one}' for one in task.blocked_by)})" if task.blocked_by else ""
    owner = f" ({task.owner})" if task.owner else ""
    return f"- #{task.id} {task.subject}{owner}{waits}"
