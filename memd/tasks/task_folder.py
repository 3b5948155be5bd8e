"""Where the todo lists and tasks of one user's agent are, their lock, and how a forgetting erases them.

`<data>/tasks/<user>/`, and `agents/<agent>/` below it for a named agent. The folder is not in `<data>/users`: a store
of another class has no such folder, a shared store has one for all users, and each folder there counts as a memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.context import DEFAULT_AGENT, user_hash
from memd.disk import files
from memd.disk.lock import locked
from memd.disk.path_parts import decode, encode
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.identifiers import check_identifier

TASKS = "tasks"
AGENTS = "agents"
AGENT = "agent.txt"
"""The agent's name, in a folder whose own name is only its hash, because the name is long."""

TEMP = "new.tmp"


class TaskFolder:
    """The folder of one agent's lists and tasks for one user; with `agent_name` None of all agents of the user."""

    def __init__(self, data_dir: Path, user_id: str, agent_name: str | None = DEFAULT_AGENT) -> None:
        user = data_dir / TASKS / encode(user_id)
        self.path = user / AGENTS / encode(agent_name) if agent_name else user
        self._agent_name = agent_name
        self._top = data_dir / TASKS
        self._lock = data_dir / "locks" / TASKS / user_hash(user_id)[:2]

    @contextmanager
    def held(self) -> Iterator[None]:
        """While the folder is held nobody else reads, writes or erases anything of this user.

        Raises StoreUnavailable: for the lock, or when a folder of the path is a link, which no forgetting would reach.
        """
        with locked(self._lock):
            try:
                linked = any(one.is_symlink() for one in (self.path, *self.path.parents) if self._top in one.parents)
            except OSError as error:
                raise files.unavailable(error) from None
            if linked:
                raise StoreUnavailable("E_STORE_LINK: a folder of tasks is a link; put the folder itself there")
            yield

    def write(self, name: str, data: bytes) -> None:
        """Replace a file, durably and all at once. The caller holds the folder. Raises StoreUnavailable."""
        if self._agent_name and decode(self.path.name) is None and not (self.path / AGENT).exists():
            files.replace(self.path / AGENT, self._agent_name.encode(), self.path / TEMP)
        files.replace(self.path / name, data, self.path / TEMP)

    def count(self) -> int:
        """How many files a forgetting would remove. Raises StoreUnavailable."""
        if not os.path.lexists(self.path):  # a preview makes no lock file where there is nothing
            return 0
        with self.held():
            return len(list(self._files()))

    def erase(self, still_wanted: Callable[[], bool] = lambda: True) -> int:
        """Remove every file; returns how many. It may be repeated. Raises StoreUnavailable.

        `still_wanted` is asked while nobody can write; nothing is erased when it is false.
        """
        with self.held():
            found = list(self._files()) if still_wanted() else []
            try:
                for file in found:
                    file.unlink(missing_ok=True)
                for folder in sorted({file.parent for file in found}):
                    files.sync_folder(folder)
                self._remove_empty_folders()
            except OSError as error:
                raise files.unavailable(error) from None
        return len(found)

    def _files(self) -> Iterator[Path]:
        """Every file, links included; the folders of agents only when all of the user is meant."""
        for place, folders, names in os.walk(self.path, onerror=_refuse):
            if self._agent_name is not None and Path(place) == self.path:
                folders[:] = [name for name in folders if name != AGENTS]
            linked = [name for name in folders if Path(place, name).is_symlink()]
            yield from (Path(place, name) for name in (*names, *linked))

    def _remove_empty_folders(self) -> None:
        """Names of folders tell ids, too. Those that still hold something stay."""
        below = [Path(place) for place, _, _ in os.walk(self.path, topdown=False)]
        for folder in (*below, *self.path.parents):
            if self._top in folder.parents and folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
                files.sync_folder(folder.parent)


def folder_of(data_dir: Path, user_id: object, agent_name: object) -> TaskFolder:
    """The folder for a user and an agent that an app names. Raises Rejected."""
    agent = DEFAULT_AGENT if agent_name == DEFAULT_AGENT else check_identifier("agent_name", agent_name)
    return TaskFolder(data_dir, check_identifier("user_id", user_id), agent)


def agents_of(data_dir: Path, user_id: str) -> list[str]:
    """The named agents that have lists or tasks for a user. Raises StoreUnavailable."""
    folder = data_dir / TASKS / encode(user_id) / AGENTS
    try:
        with os.scandir(folder) as entries:
            parts = [entry.name for entry in entries if entry.is_dir()]
    except FileNotFoundError:  # no agent has any
        return []
    except OSError as error:
        raise files.unavailable(error) from None
    names = (decode(part) or written_name(folder / part) for part in parts)
    return sorted(name for name in names if name)


def written_name(folder: Path) -> str | None:
    """The name in a folder whose own name is a hash; None for a folder that somebody else made."""
    try:
        data = files.read(folder / AGENT)
        name = "" if data is None else data.decode()
    except (DocumentDamaged, UnicodeDecodeError):
        return None
    return name if encode(name) == folder.name else None


def _refuse(error: OSError) -> None:
    """A folder that cannot be read may hold what is to be erased; one that is not there holds nothing."""
    if not isinstance(error, FileNotFoundError):
        raise files.unavailable(error)
