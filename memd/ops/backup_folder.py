"""The folder of a backup: `backup.json` says that it is whole, `inbox.jsonl` has the inbox, `store/` is a data folder.

`backup.json` goes first when a backup is brought up to date, and comes back last: without it nothing is restored.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from memd.disk import files
from memd.errors import ConfigError, DocumentDamaged
from memd.inbox.contents import KeptRecord, of_line
from memd.ops import locks
from memd.ops.server import private_folder

VERSION = 1

MANIFEST = "backup.json"
INBOX = "inbox.jsonl"
STORE = "store"
LOCK = "lock"
OWN = {MANIFEST, INBOX, STORE, LOCK, f"{INBOX}.tmp", "backup.tmp"}

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW

NO_BACKUP = "E_BACKUP_NONE: there is no whole backup in this folder; one that was interrupted has to be finished first"
NO_FOLDER = "E_BACKUP_NONE: there is no such folder"
DAMAGED = "E_BACKUP_DAMAGED: a file of the backup is not what `memd backup` wrote; nothing was restored"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup has. `begun_ms`: by the clock of the inbox's server. `digest`: SHA-256 of the inbox's file."""

    version: int
    memd: str
    begun_ms: int
    ended_at: str
    contexts: int
    letters: int
    digest: str
    memories: int
    projects: int
    sessions: int
    tombstones: int
    task_files: int
    unreadable: int


class BackupFolder:
    """The files of a backup. Every method raises StoreUnavailable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.store = folder / STORE

    def open(self) -> locks.OneProcess:
        """Make the folder, and the lock of whoever writes to it. Raises ConfigError for a folder of something else."""
        private_folder(self._folder)
        if {file.name for file in self._folder.iterdir()} - OWN:
            raise ConfigError(f"{self._folder} holds other files: name a new folder, or that of an earlier backup")
        return locks.OneProcess(self._folder / LOCK, "another memd backup writes to this folder")

    def begin(self) -> None:
        """From now on the backup is not whole."""
        try:
            (self._folder / MANIFEST).unlink(missing_ok=True)
            files.sync_folder(self._folder)
        except OSError as error:
            raise files.unavailable(error) from None

    def write_inbox(self, contents: Iterable[KeptRecord], progress: Callable[[int, int], None]) -> tuple[int, int, str]:
        """Write the contents of the inbox durably; returns contexts, letters and the digest."""
        digest, counts = hashlib.sha256(), [0, 0]
        temp = self._folder / f"{INBOX}.tmp"
        try:
            with os.fdopen(os.open(temp, _CREATE, 0o600), "wb") as file:
                for kept in contents:
                    line = kept.line()
                    file.write(line)
                    digest.update(line)
                    counts[bool(kept.letter)] += 1
                    progress(sum(counts), 0)
                file.flush()
                os.fsync(file.fileno())
            temp.replace(self._folder / INBOX)
            files.sync_folder(self._folder)
        except OSError as error:
            raise files.unavailable(error) from None
        return counts[0], counts[1], digest.hexdigest()

    def end(self, manifest: Manifest) -> None:
        """The backup is whole."""
        file = self._folder / MANIFEST
        data = orjson.dumps(asdict(manifest), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        files.replace(file, data, file.with_suffix(".tmp"))

    def manifest(self) -> Manifest:
        """What the backup has, its inbox compared with the digest. Raises ConfigError for one that is not whole."""
        try:
            data = files.read(self._folder / MANIFEST)
            fields: dict[str, Any] = orjson.loads(data or b"null") or {}
            if fields and fields["version"] > VERSION:
                raise ConfigError("E_BACKUP_TOO_NEW: a newer memd made this backup; upgrade memd")
            found = Manifest(**fields) if fields else None
        except (DocumentDamaged, orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
            raise ConfigError(DAMAGED) from None
        if found is None:
            raise ConfigError(NO_BACKUP if self._folder.is_dir() else NO_FOLDER)
        if self._digest() != found.digest:
            raise ConfigError(DAMAGED)
        return found

    def contents(self) -> Iterator[KeptRecord]:
        """What the inbox held. Raises ConfigError for a line that is none of ours."""
        try:
            with (self._folder / INBOX).open("rb") as file:
                yield from map(of_line, file)
        except OSError as error:
            raise files.unavailable(error) from None
        except (ValueError, KeyError, TypeError):
            raise ConfigError(DAMAGED) from None

    def _digest(self) -> str:
        try:
            with (self._folder / INBOX).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise files.unavailable(error) from None
