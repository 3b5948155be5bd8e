"""Where a bucket's files are, below the data folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from memd.context import DEFAULT_AGENT, Bucket
from memd.disk.path_parts import encode
from memd.tasks.task_folder import TASKS

FILE = "memory.json"
PREVIOUS = "memory.prev.json"
TEMP = "memory.json.tmp"
ANY_TEMP = "*.json.tmp"
"""The temps of documents and of sessions."""

VECTORS = "vectors.bin"
VECTORS_TEMP = "vectors.bin.tmp"

ASIDE = "memory.json.corrupt-"
"""A damaged document that was set aside; the time follows."""

SHARED = "shared"
USERS = "users"
PROJECTS = "projects"
AGENTS = "agents"
SESSIONS = "sessions"
LOCKS = "locks"
FORGOTTEN = "forgotten"
READING_NOTES = "heat"
"""The folder of the reading notes. It keeps the name of the first version, or their notes would be lost."""

ID = "store.id"
KEY = "store.key"
SEAL = "store.sealed"
OWN_FOLDERS = (USERS, PROJECTS, SHARED, LOCKS, READING_NOTES, TASKS)


@lru_cache(maxsize=16)
def users_folder(data_dir: Path) -> Path:
    """The folder of the users' folders."""
    return data_dir / USERS


def user_folder(data_dir: Path, user_id: str, *, shared: bool) -> Path:
    """The folder of one user's documents; with a shared store, of all users' documents."""
    return data_dir / SHARED if shared else users_folder(data_dir) / encode(user_id)


def agents_folder(data_dir: Path, user_id: str, *, shared: bool) -> Path:
    """The folder of the folders of a user's agents."""
    return user_folder(data_dir, user_id, shared=shared) / AGENTS


def projects_folder(data_dir: Path) -> Path:
    """The folder of the projects' folders."""
    return data_dir / PROJECTS


@lru_cache(maxsize=4096)
def folder(data_dir: Path, bucket: Bucket, *, shared: bool) -> Path:
    """The folder of a bucket's document; projects have folders of their own in a shared store, too."""
    if bucket.project_id:
        return projects_folder(data_dir) / encode(bucket.project_id)
    if bucket.agent_name == DEFAULT_AGENT:
        return user_folder(data_dir, bucket.user_id, shared=shared)
    return agents_folder(data_dir, bucket.user_id, shared=shared) / encode(bucket.agent_name)


def sessions_folder(data_dir: Path, bucket: Bucket) -> Path:
    """The folder of a bucket's sessions: with its user, also where all users share one store."""
    return folder(data_dir, bucket, shared=False) / SESSIONS


def trash_folder(data_dir: Path) -> Path:
    """A new folder name for what is being erased, next to the users' folders: they may be on a disk of their own.

    No user's folder has a name that begins with a dot.
    """
    return users_folder(data_dir) / f".erased-{os.urandom(8).hex()}"


def trash_folders(data_dir: Path) -> list[Path]:
    """Folders whose erasing process may have died; older versions made them in the data folder itself."""
    return [*users_folder(data_dir).glob(".erased-*"), *data_dir.glob("erased-*")]


def bucket_lock(data_dir: Path, bucket: Bucket) -> Path:
    """The lock file of a bucket: one of 256, by the bucket's hash; never removed."""
    return _lock(data_dir, bucket.hash[:2])


def owner_lock(data_dir: Path, owner: str) -> Path:
    """The lock file of a user, given their hash: one of 256; never removed."""
    return _lock(data_dir, f"owners/{owner[:2]}")


@lru_cache(maxsize=1024)
def _lock(data_dir: Path, name: str) -> Path:
    return data_dir / LOCKS / name


def id_lock(data_dir: Path) -> Path:
    """The lock file under which the store's id and key are made."""
    return data_dir / LOCKS / "store"


def tombstone_lock(folder: Path) -> Path:
    """The lock file of the folder of tombstones. Older versions hold the same one."""
    return folder / "lock"


def every_lock(data_dir: Path) -> Iterator[Path]:
    """The lock files of all owners and all buckets. Who takes one after the other waits for every write under way."""
    for number in range(256):
        yield data_dir / LOCKS / "owners" / f"{number:02x}"
    for number in range(256):
        yield data_dir / LOCKS / f"{number:02x}"
