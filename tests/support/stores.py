"""Stores on disk: saving a fact, reading it, and every kind of damage to a document's file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from msgspec import convert

from memd.config import Settings, StoreSettings
from memd.context import Bucket
from memd.disk import files
from memd.memory.store.json_store import open_store
from memd.memory.store.protocol import Loaded, Store
from support import STORE_SETTINGS

ALICE = Bucket("alice@example.com")


def options(**changes: Any) -> StoreSettings:
    """Settings of the store, with changes."""
    return convert(changes, StoreSettings, dec_hook=lambda kind, value: kind(value))


def make_store(data_dir: Path, **changes: Any) -> Store:
    """The store under test: of JSON files in this folder, or with `STORE=postgres` the empty database."""
    return open_store(Settings(data_dir=data_dir, store=options(**STORE_SETTINGS, **changes)))


def ours() -> bool:
    """The claim is ours."""
    return True


def save(store: Store, content: str, bucket: Bucket = ALICE) -> Loaded:
    """Add one fact, durably."""
    loaded = store.load(bucket)
    fact = {"id": f"fact_{loaded.revision:08x}", "content": content}
    document = {**loaded.document, "revision": loaded.revision + 1, "facts": [*loaded.document["facts"], fact]}
    return store.commit(bucket, loaded, document, ours)


def contents(store: Store, bucket: Bucket = ALICE) -> list[str]:
    """The contents of the stored facts."""
    return [fact["content"] for fact in store.load(bucket).document["facts"]]


def names(folder: Path) -> set[str]:
    """The names in a folder, without the time in the name of a damaged file."""
    return {path.name.partition("-")[0] for path in folder.iterdir()}


def _foreign(file: Path) -> None:
    document = orjson.loads(file.read_bytes())
    file.write_bytes(orjson.dumps({**document, "userId": "mallory"}))


def _symlink(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _oversized(file: Path) -> None:
    os.truncate(file, files.MAX_BYTES + 1)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated": lambda file: os.truncate(file, file.stat().st_size // 2),
    "empty": lambda file: os.truncate(file, 0),
    "not UTF-8": lambda file: file.write_bytes(b'{"version": "\xff"}'),
    "not an object": lambda file: file.write_bytes(b"[]"),
    "wrong types": lambda file: file.write_bytes(b'{"version": "1.0", "facts": {"0": {}}}'),
    "a fact that is no object": lambda file: file.write_bytes(b'{"version": "1.0", "facts": ["likes tea"]}'),
    "a broken ledger": lambda file: file.write_bytes(b'{"version": "1.0", "ledger": {"t": [1]}}'),
    "a broken version": lambda file: file.write_bytes(b'{"version": 1}'),
    "too deep": lambda file: file.write_bytes(b"[" * 5000),
    "foreign": _foreign,
    "oversized": _oversized,
    "symlinked": _symlink,
    "hard-linked": lambda file: os.link(file, file.with_name("elsewhere")),
    "FIFO": _fifo,
    "folder": _folder,
}
