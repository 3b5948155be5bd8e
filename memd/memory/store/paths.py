"""Where a bucket's files are: ids become path parts that are readable when ordinary and that never collide.

A part holds only `a-z 0-9 . _ - @ +` and `%xx` with lower-case digits, so that two ids never share a file, not even
where names are compared without case or in another Unicode form. One over 120 bytes becomes `~` and its id's SHA-256.
"""

from __future__ import annotations

import hashlib
import os
import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote_to_bytes

from memd.context import DEFAULT_AGENT, Bucket

MAX_PART_BYTES = 120
"""Longer parts are hashed: file systems allow 255 bytes a name, and backups add suffixes."""

FILE = "memory.json"
PREVIOUS = "memory.prev.json"
TEMP = "memory.json.tmp"
ASIDE = "memory.json.corrupt-"
"""A damaged document that was set aside; the time follows."""

SHARED = "shared"
USERS = "users"
AGENTS = "agents"
LOCKS = "locks"
FORGOTTEN = "forgotten"
READING_NOTES = "heat"
"""The folder of the reading notes. It keeps the name of the first version, or their notes would be lost."""

ID = "store.id"
KEY = "store.key"
OWN_FOLDERS = (USERS, SHARED, LOCKS, READING_NOTES)

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789._-@+")
_RESERVED = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)")
_PART = re.compile(r"(?:[a-z0-9._@+-]|%[0-9a-f]{2})+")


def encode(identifier: str) -> str:
    """The path part of an id. No two ids share one; `decode` reverses it up to 120 bytes."""
    data = identifier.encode()
    text = "".join(chr(byte) if byte in _PLAIN else f"%{byte:02x}" for byte in data)
    if not text:
        return "%"
    # The first character is encoded in names that would be hidden, look like options, or are devices on Windows; the
    # last one where it is a dot, which Windows drops.
    if text[0] in ".-" or _RESERVED.match(text):
        text = f"%{data[0]:02x}{text[1:]}"
    if text[-1] == ".":
        text = f"{text[:-1]}%2e"
    return text if len(text) <= MAX_PART_BYTES else "~" + hashlib.sha256(data).hexdigest()


def decode(part: str) -> str | None:
    """The id of a path part; None for a hashed part, whose document names it, or a foreign one."""
    if not _PART.fullmatch(part):
        return None
    try:
        identifier = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:  # a folder that somebody else made
        return None
    return identifier if encode(identifier) == part else None


def users_folder(data_dir: Path) -> Path:
    """The folder of the users' folders."""
    return data_dir / USERS


def user_folder(data_dir: Path, user_id: str, *, shared: bool) -> Path:
    """The folder of one user's documents; with a shared store, of all users' documents."""
    return data_dir / SHARED if shared else users_folder(data_dir) / encode(user_id)


def agents_folder(data_dir: Path, user_id: str, *, shared: bool) -> Path:
    """The folder of the folders of a user's agents."""
    return user_folder(data_dir, user_id, shared=shared) / AGENTS


@lru_cache(maxsize=4096)
def folder(data_dir: Path, bucket: Bucket, *, shared: bool) -> Path:
    """The folder of a bucket's document."""
    if bucket.agent_name == DEFAULT_AGENT:
        return user_folder(data_dir, bucket.user_id, shared=shared)
    return agents_folder(data_dir, bucket.user_id, shared=shared) / encode(bucket.agent_name)


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
    return data_dir / LOCKS / bucket.hash[:2]


def owner_lock(data_dir: Path, owner: str) -> Path:
    """The lock file of a user, given their hash: one of 256; never removed."""
    return data_dir / LOCKS / "owners" / owner[:2]


def id_lock(data_dir: Path) -> Path:
    """The lock file under which the store's id and key are made."""
    return data_dir / LOCKS / "store"


def tombstone_lock(folder: Path) -> Path:
    """The lock file of the folder of tombstones. Older versions hold the same one."""
    return folder / "lock"
