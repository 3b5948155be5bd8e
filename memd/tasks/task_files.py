"""The tasks on disk: `task_<id>.json` each, changed all together or not at all.

A change of several files is first written to `change.json`: from then on it counts, for readers too, though they
change nothing. Then the files are written and `change.json` is removed; after a kill the next writer does the rest.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from msgspec import DecodeError, Struct, ValidationError, json

from memd.disk import files
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.tasks.graph import Task, Tasks, mirrored
from memd.tasks.task_folder import TaskFolder

CHANGE = "change.json"

_NAME = re.compile(r"task_([1-9][0-9]{0,17})\.json")

S = TypeVar("S", bound=Struct)


class FilesChange(Struct, frozen=True, forbid_unknown_fields=True):
    """What `change.json` holds."""

    write: list[Task] = []
    remove: list[int] = []


def read(folder: TaskFolder) -> dict[int, Task]:
    """All tasks, mirrored. The caller holds the folder.

    Raises StoreUnavailable; DocumentDamaged, with the name of the file, for one that is no task. It is left as it is.
    """
    try:
        numbers = [int(found[1]) for name in os.listdir(folder.path) if (found := _NAME.fullmatch(name))]  # noqa: PTH208
    except FileNotFoundError:  # no task yet
        return {}
    except OSError as error:
        raise files.unavailable(error) from None
    tasks: dict[int, Task] = {}
    for number in numbers:
        task = _decoded(folder.path / _name(number), Task)
        if task is None:  # removed by hand since the folder was listed
            continue
        if task.id != number:
            raise _damaged(_name(number))
        tasks[number] = task
    change = _decoded(folder.path / CHANGE, FilesChange) or FilesChange()
    tasks |= {task.id: task for task in change.write}
    return mirrored({number: task for number, task in tasks.items() if number not in change.remove})


def write(folder: TaskFolder, before: Tasks, after: Tasks) -> None:
    """Write what is new in `after`, and remove what it lacks. The caller holds the folder since it read `before`.

    Raises StoreUnavailable: nothing has changed.
    """
    change = FilesChange(
        [task for task in after.values() if task != before.get(task.id)],
        [number for number in before if number not in after],
    )
    finish(folder)
    if len(change.write) == 1 and not change.remove:
        folder.write(_name(change.write[0].id), _encoded(change.write[0]))
    elif change.write or change.remove:
        folder.write(CHANGE, _encoded(change))
        with suppress(StoreUnavailable):  # the change counts already; the next writer does the rest, or says why not
            finish(folder)


def finish(folder: TaskFolder) -> None:
    """Write the files of a change that was written down and not carried out. Raises StoreUnavailable."""
    change = _decoded(folder.path / CHANGE, FilesChange)
    if change is None:
        return
    for task in change.write:
        folder.write(_name(task.id), _encoded(task))
    try:
        for number in change.remove:
            (folder.path / _name(number)).unlink(missing_ok=True)
        files.sync_folder(folder.path)  # what is to go is gone before the note that says so
        (folder.path / CHANGE).unlink()
        files.sync_folder(folder.path)  # an older change must not come back over a newer file
    except OSError as error:
        raise files.unavailable(error) from None


def _name(number: int) -> str:
    return f"task_{number}.json"


def _encoded(value: Struct) -> bytes:
    return json.format(json.encode(value), indent=2) + b"\n"


def _decoded(file: Path, kind: type[S]) -> S | None:
    """The content of a file; None when there is no file."""
    try:
        data = files.read(file)
        return None if data is None else json.decode(data, type=kind)
    except (DocumentDamaged, ValidationError, DecodeError, UnicodeDecodeError):  # its own words may hold text of it
        raise _damaged(file.name) from None


def _damaged(name: str) -> DocumentDamaged:
    sentence = f"E_TASK_FILE: the file {name} is no task; it was left as it is: repair it, or remove it"
    return DocumentDamaged(sentence, name)
