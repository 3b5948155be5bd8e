"""The todo list of an agent at work: replaced whole, one item in progress at most, a reminder when it is neglected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from msgspec import DecodeError, Struct, ValidationError, json

from memd.context import DEFAULT_AGENT
from memd.disk import files
from memd.disk.path_parts import encode
from memd.errors import DocumentDamaged, Rejected
from memd.identifiers import check_identifier
from memd.tasks.checks import check_choice, check_line
from memd.tasks.task_folder import folder_of

TodoStatus = Literal["pending", "in_progress", "completed"]
TODO_STATUSES: tuple[TodoStatus, ...] = get_args(TodoStatus)
MARKS: dict[TodoStatus, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}

MAX_ITEMS, MAX_TEXT, MAX_ITEM_ID = 100, 500, 50
"""Items of a list; characters of an item's text and of its id."""

MAX_LISTS = 100
"""Lists of one agent for one user."""

DEFAULT_LIST = "default"

ROUNDS = 3
"""So many rounds without use bring the reminder."""

REMINDER = "<reminder>Update your todos.</reminder>"


class TodoItem(Struct, frozen=True, forbid_unknown_fields=True):
    """One item."""

    id: str
    text: str
    status: TodoStatus = "pending"


class _TodoFile(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    items: tuple[TodoItem, ...]


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
        self._file = f"todo_{encode(name)}.json"
        self._rounds = 0

    def write(self, items: Iterable[Mapping[str, Any]]) -> list[TodoItem]:
        """Replace the list. Each item: `text`, `status` and `id` (default: its number). An empty one removes the file.

        Raises Rejected: the list is what it was.
        """
        checked = check_items(items)
        with self._folder.held() as folder:
            if not checked:
                _remove(folder / self._file)
            else:
                self._check_room(folder)
                data = json.encode(_TodoFile(self._name, tuple(checked)))
                self._folder.write(self._file, json.format(data, indent=2) + b"\n")
        return checked

    def items(self) -> list[TodoItem]:
        """The items, in their order."""
        with self._folder.held() as folder:
            return [*_read(folder / self._file)]

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

    def _check_room(self, folder: Path) -> None:
        try:
            others = sum(file.name != self._file for file in folder.glob("todo_*.json"))
        except OSError as error:
            raise files.unavailable(error) from None
        if others >= MAX_LISTS:
            raise Rejected("E_TODO_LISTS", f"there are {MAX_LISTS} lists; empty one of them", "name", MAX_LISTS)


def check_items(items: object) -> list[TodoItem]:
    """The items of a list. Raises Rejected."""
    if isinstance(items, str | bytes | Mapping) or not isinstance(items, Iterable):
        raise Rejected("E_ITEMS_TYPE", "items must be a list", "items")
    checked: list[TodoItem] = []
    for number, item in enumerate(items, 1):
        if number > MAX_ITEMS:
            raise Rejected("E_ITEMS_LENGTH", f"a list has at most {MAX_ITEMS} items", "items", MAX_ITEMS)
        checked.append(_check_item(number, item))
    if len({item.id for item in checked}) < len(checked):
        raise Rejected("E_ITEMS_ID_TWICE", "two items have the same id", "items")
    if sum(item.status == "in_progress" for item in checked) > 1:
        raise Rejected("E_TODO_IN_PROGRESS", "Only one task can be in_progress", "items", 1)
    return checked


def render(items: Iterable[TodoItem]) -> str:
    """The items as lines, and how many are done."""
    items = list(items)
    done = sum(item.status == "completed" for item in items)
    lines = [f"{MARKS[item.status]} #{item.id}: {item.text}" for item in items]
    return "\n".join([*lines, f"({done} of {len(items)} completed)"]) if items else "No todos."


def _check_item(number: int, item: object) -> TodoItem:
    field = f"items[{number - 1}]"
    if not isinstance(item, Mapping):
        raise Rejected("E_ITEMS_TYPE", f"{field} must be an object with text, status and id", field)
    if set(item) - {"id", "text", "status"}:
        raise Rejected("E_ITEMS_FIELD", f"{field} has a field besides id, text and status", field)
    named = item.get("id", number)
    named = str(named) if isinstance(named, int) and not isinstance(named, bool) else named
    return TodoItem(
        check_line(f"{field}.id", named, MAX_ITEM_ID),
        check_line(f"{field}.text", item.get("text"), MAX_TEXT),
        check_choice(f"{field}.status", item.get("status", "pending"), TODO_STATUSES),
    )


def _read(file: Path) -> tuple[TodoItem, ...]:
    try:
        data = files.read(file)
        return () if data is None else json.decode(data, type=_TodoFile).items
    except (DocumentDamaged, ValidationError, DecodeError, UnicodeDecodeError):  # its own words may hold text of it
        sentence = "E_TODO_FILE: the file of a todo list is none; it was left as it is: write the list anew"
        raise DocumentDamaged(sentence, file.name) from None


def _remove(file: Path) -> None:
    try:
        file.unlink()
        files.sync_folder(file.parent)
    except FileNotFoundError:  # there was no list
        return
    except OSError as error:
        raise files.unavailable(error) from None
