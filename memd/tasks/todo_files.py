"""The todo lists on disk: `todo_<name>.json` each. Whoever calls these functions holds the folder."""

from __future__ import annotations

from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError, json

from memd.disk import files
from memd.disk.path_parts import encode
from memd.errors import DocumentDamaged, Rejected
from memd.tasks.task_folder import TaskFolder
from memd.tasks.todo_items import TodoItem

MAX_LISTS = 100
"""Lists of one agent for one user."""

_FILES = "todo_*.json"


class StoredList(Struct, frozen=True, forbid_unknown_fields=True):
    """A list as its file has it. `name` is the list's, unchanged: that of the file may be a hash."""

    name: str
    items: tuple[TodoItem, ...]


def read_list(folder: TaskFolder, name: str) -> tuple[TodoItem, ...]:
    """The items of a list; none when it was never written. Raises StoreUnavailable, DocumentDamaged."""
    stored = _decoded(folder.path / _file_name(name))
    return () if stored is None else stored.items


def read_lists(folder: TaskFolder) -> list[StoredList]:
    """All lists, by their names. Raises StoreUnavailable, DocumentDamaged."""
    found = [stored for file in _all_files(folder) if (stored := _decoded(file)) is not None]
    return sorted(found, key=lambda stored: stored.name)


def has_room(folder: TaskFolder, name: str) -> bool:
    """Whether this list may be written beside the others. Raises StoreUnavailable."""
    return sum(file.name != _file_name(name) for file in _all_files(folder)) < MAX_LISTS


def write_list(folder: TaskFolder, name: str, items: tuple[TodoItem, ...]) -> None:
    """Replace a list; without items its file goes. Raises Rejected without room, StoreUnavailable."""
    if not items:
        _remove(folder.path / _file_name(name))
        return
    if not has_room(folder, name):
        raise Rejected("E_TODO_LISTS", f"there are {MAX_LISTS} lists; empty one of them", "name", MAX_LISTS)
    folder.write(_file_name(name), json.format(json.encode(StoredList(name, items)), indent=2) + b"\n")


def _file_name(name: str) -> str:
    return f"todo_{encode(name)}.json"


def _all_files(folder: TaskFolder) -> list[Path]:
    try:
        return list(folder.path.glob(_FILES))
    except OSError as error:
        raise files.unavailable(error) from None


def _decoded(file: Path) -> StoredList | None:
    try:
        data = files.read(file)
        return None if data is None else json.decode(data, type=StoredList)
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
