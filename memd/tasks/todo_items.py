"""The items of a todo list as values: what a list may hold, how a model reads it. Pure; `todo_files` writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from msgspec import Struct

from memd.errors import Rejected
from memd.tasks.checks import check_choice, check_line

TodoStatus = Literal["pending", "in_progress", "completed"]
TODO_STATUSES: tuple[TodoStatus, ...] = get_args(TodoStatus)
MARKS: dict[TodoStatus, str] = {"pending": "[ ]", "in_progress": "[>]", "completed": "[x]"}

MAX_ITEMS, MAX_TEXT, MAX_ITEM_ID = 100, 500, 50
"""Items of a list; characters of an item's text and of its id."""


class TodoItem(Struct, frozen=True, forbid_unknown_fields=True):
    """One item."""

    id: str
    text: str
    status: TodoStatus = "pending"


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
