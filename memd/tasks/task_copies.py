"""Copying todo lists and tasks from one data folder to another, for backups. Each file is read and written whole."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from memd.disk import files
from memd.disk.path_parts import decode
from memd.errors import DocumentDamaged
from memd.tasks.task_folder import AGENTS, TASKS, TEMP, written_name

Wanted = Callable[[str, str | None, str | None], bool]
"""Called with the folder name of a user, the user's id if that name tells it, and an agent's name (None: no agent)."""


def copy_tasks(source: Path, target: Path, wanted: Wanted) -> int:
    """Make the wanted lists and tasks of a data folder those of another one; returns how many files it has then.

    Raises StoreUnavailable.
    """
    kept = set[Path]()
    for place in _places(source / TASKS, wanted):
        for file in _files(place):
            own = target / TASKS / file.relative_to(source / TASKS)
            try:
                data = files.read(file)
            except DocumentDamaged:  # a link, or larger than anything that memd writes
                continue
            if data is not None:
                kept.add(own)
                if _present(own) != data:
                    files.replace(own, data, own.with_name(TEMP))
    for file in [file for place in _places(target / TASKS, _every) for file in _files(place)]:
        if file not in kept:
            _remove(file, target / TASKS)
    return len(kept)


def _remove(file: Path, top: Path) -> None:
    """Remove a file, and the folders that hold nothing any more: their names tell ids."""
    try:
        file.unlink(missing_ok=True)
        for folder in file.parents:
            if top not in folder.parents or any(folder.iterdir()):
                return
            folder.rmdir()
            files.sync_folder(folder.parent)
    except OSError as error:
        raise files.unavailable(error) from None


def _every(_part: str, _user: str | None, _agent: str | None) -> bool:
    return True


def _places(top: Path, wanted: Wanted) -> Iterator[Path]:
    for user in _folders(top):
        user_id = decode(user.name)
        if wanted(user.name, user_id, None):
            yield user
        for agent in _folders(user / AGENTS):
            if wanted(user.name, user_id, decode(agent.name) or written_name(agent)):
                yield agent


def _folders(folder: Path) -> list[Path]:
    return sorted(Path(entry.path) for entry in _entries(folder) if entry.is_dir(follow_symlinks=False))


def _files(folder: Path) -> list[Path]:
    return sorted(
        Path(entry.path) for entry in _entries(folder) if entry.is_file(follow_symlinks=False) and entry.name != TEMP
    )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise files.unavailable(error) from None


def _present(file: Path) -> bytes | None:
    try:
        return files.read(file)
    except DocumentDamaged:
        return None
