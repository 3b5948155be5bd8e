"""The todo list of an agent at work: replaced whole, one item in progress at most, a reminder when it is neglected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from memd.context import DEFAULT_AGENT
from memd.identifiers import check_identifier
from memd.tasks.task_folder import folder_of
from memd.tasks.todo_files import read_list, write_list
from memd.tasks.todo_items import TodoItem, check_items, render

DEFAULT_LIST = "default"

ROUNDS = 3
"""So many rounds without use bring the reminder."""

REMINDER = "<reminder>Update your todos.</reminder>"


class TodoList:
    """One list of one agent for one user, in `<data>/tasks`. `name`: for lists side by side, such as a thread's id.

    The file has the items; the rounds are counted in this object. Methods that use the file raise StoreUnavailable, and
    DocumentDamaged for a file that is no list.
    """

    def __init__(
        self, data_dir: Path, user_id: str, agent_name: str = DEFAULT_AGENT, *, name: str = DEFAULT_LIST
    ) -> None:
        """`data_dir`: the setting of that name, as `Memd().settings` has it. Raises Rejected."""
        self._folder = folder_of(data_dir, user_id, agent_name)
        self._name = check_identifier("name", name)
        self._rounds = 0

    def write(self, items: Iterable[Mapping[str, Any]]) -> list[TodoItem]:
        """Replace the list. Each item: `text`, `status` and `id` (default: its number). An empty one removes the file.

        Raises Rejected: the list is what it was.
        """
        checked = check_items(items)
        with self._folder.held():
            write_list(self._folder, self._name, tuple(checked))
        return checked

    def items(self) -> list[TodoItem]:
        """The items, in their order."""
        with self._folder.held():
            return [*read_list(self._folder, self._name)]

    def render(self) -> str:
        """The list as a model reads it: `[ ]` pending, `[>]` in progress, `[x]` completed."""
        return render(self.items())

    def round(self, used: bool) -> None:
        """Count a round of the agent; `used`: whether it has used its todo list in it."""
        self._rounds = 0 if used else self._rounds + 1

    def remind(self, results: Iterable[Any]) -> list[Any]:
        """The tool results of a round; a reminder follows them when three rounds or more went without the list.

        `results`: Anthropic's blocks, whose reminder is a text block, or OpenAI's messages, whose reminder is one too.
        It comes last: a provider refuses a turn after a tool call that does not begin with the results.
        """
        results = list(results)
        if self._rounds < ROUNDS:
            return results
        are_messages = any(isinstance(result, Mapping) and "role" in result for result in results)
        reminder = {"role": "user", "content": REMINDER} if are_messages else {"type": "text", "text": REMINDER}
        return [*results, reminder]
