"""An agent's todo list and its task graph, in files of the data folder. Needs no server, and nothing of the memory."""

from memd.tasks.task_graph import TaskGraph
from memd.tasks.todo import TodoList

__all__ = ["TaskGraph", "TodoList"]
