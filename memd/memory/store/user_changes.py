"""When the users of a store of files last changed, for a process that lists them more than once.

A look at the files of 10,000 users takes a tenth of a second, so it is not taken for every page: each commit marks its
user's group (one of 256, by the user's hash), and only the users of groups that were marked since are looked at again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from memd.context import user_hash
from memd.memory.store import paths

GROUPS = 256
IN_TURN = 8
"""Groups that are looked at again each time although nothing marked them, so that the edits of a person with an editor
are found as well, after 32 looks at most."""


class UserChanges:
    """The times of change that were found, by user. Thread-safe."""

    def __init__(self, data_dir: Path) -> None:
        self._marks_folder = paths.owner_lock(data_dir, "00").parent
        self._lock = threading.Lock()
        self._found: dict[str, tuple[int, int]] = {}
        """By user: the group, and the time of change in nanoseconds."""

        self._marks: dict[str, int] = {}
        self._turn = 0

    def of(self, users: Iterable[str], look: Callable[[str], int]) -> dict[str, int]:
        """The time of change of each user; `look` finds it in the files. Raises as `look` does."""
        with self._lock:
            marks = self._read_marks()  # before the files: a change in between is looked at again
            again = {int(name, 16) for name, mark in marks.items() if self._marks.get(name) != mark}
            again.update((self._turn + step) % GROUPS for step in range(IN_TURN))
            found = {}
            for user_id in users:
                group, changed = self._found.get(user_id) or (int(user_hash(user_id)[:2], 16), -1)
                found[user_id] = (group, look(user_id) if changed < 0 or group in again else changed)
            self._found, self._marks, self._turn = found, marks, (self._turn + IN_TURN) % GROUPS
            return {user_id: changed for user_id, (_, changed) in found.items()}

    def _read_marks(self) -> dict[str, int]:
        try:
            with os.scandir(self._marks_folder) as entries:
                return {entry.name: entry.stat(follow_symlinks=False).st_mtime_ns for entry in entries}
        except OSError:  # no commit yet; without marks the groups are looked at in turn
            return {}


def mark_change(owner_lock: Path) -> None:
    """Mark the group of a user, whose lock is held, after a change. It never fails: a list is no promise."""
    with suppress(OSError):
        os.utime(owner_lock)
