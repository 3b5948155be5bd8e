"""Copies between data folders: everything, again and again, into nothing that is in use; the seal. No database here."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from support.moved_content import (
    EVERYTHING,
    FORGOTTEN,
    KEY,
    LONG,
    OWNER,
    content,
    copied,
    files_of,
    fill,
    learned,
    quietly,
)
from support.stores import ALICE, contents, save

from memd.cli.store import leaves_server
from memd.config import Secret, Settings, StoreSettings
from memd.context import Bucket
from memd.errors import ConfigError, StoreSealed
from memd.memory.store import JsonStore
from memd.memory.store.copying import StoreCopy
from memd.memory.store.moving import Seal
from memd.memory.store.protocol import Store, Wish

pytestmark = pytest.mark.files

SEAL = Seal("source", "other")


@pytest.fixture
def source(tmp_path: Path) -> JsonStore:
    """A store with something of everything."""
    store = JsonStore(tmp_path / "source", StoreSettings())
    fill(store)
    return store


@pytest.fixture
def target(tmp_path: Path) -> JsonStore:
    """An empty store."""
    return JsonStore(tmp_path / "target", StoreSettings())


def test_everything_is_copied_once(source: JsonStore, target: JsonStore, tmp_path: Path) -> None:
    """Byte for byte; a second pass finds nothing to do."""
    assert copied(source, target).copied == EVERYTHING
    assert files_of(tmp_path / "target") == files_of(tmp_path / "source")
    assert content(target) == content(source)
    assert target.sessions.checkpoints(KEY) == source.sessions.checkpoints(KEY)

    again = copied(source, target)
    assert (again.copied.total(), again.removed.total(), again.seen) == (
        0,
        0,
        {"memory": 4, "project": 1, "session": 1},
    )


def test_a_pass_removes_what_the_source_has_no_more(source: JsonStore, target: JsonStore, tmp_path: Path) -> None:
    """Documents, sessions and what a killed pass has left; the forgotten goes and its tombstone stays."""
    copied(source, target)
    source.erase(FORGOTTEN, None)
    source.tombstones.close(source.tombstones.unfinished()[0])
    source.sessions.remove(KEY)
    left = tmp_path / "target" / "users" / "carol"
    left.mkdir()
    (left / "said-0123456789abcdef.jsonl").write_text("what a killed pass has left")

    assert copied(source, target).removed == {"memory": 1, "session": 1}
    assert files_of(tmp_path / "target") == files_of(tmp_path / "source")
    assert (FORGOTTEN in target.users(), left.exists()) == (False, False)
    kept = target.tombstones.of(OWNER)
    assert kept is not None
    assert (kept.holds(Bucket(FORGOTTEN), "nsecret"), kept.open) == (True, ())


def test_a_difference_is_found(source: JsonStore, target: JsonStore) -> None:
    """In a document, a said layer, a session, a tombstone; and it is named."""
    copied(source, target)
    learned(source, LONG, "later")
    source.sessions.remove(KEY)
    source.tombstones.extend(Wish(FORGOTTEN), ["nmore"])

    found = StoreCopy(source, target).compare(quietly).differing
    assert sorted((piece.kind, piece.bucket or Bucket(""), piece.owner) for piece in found) == [
        ("memory", LONG, ""),
        ("session", ALICE, ""),
        ("tombstone", Bucket(""), OWNER),
    ]


def test_what_cannot_be_read_is_told_and_left(source: JsonStore, target: JsonStore, tmp_path: Path) -> None:
    """A damaged document stops nothing else."""
    (tmp_path / "source" / "users" / "bob" / "agents" / "helper" / "memory.json").write_text("{")
    copying = StoreCopy(source, target)
    copying.prepare()
    done = copying.run(quietly)

    assert [(piece.bucket, code) for piece, code in done.unreadable] == [(Bucket("bob", "helper"), "E_DOCUMENT_JSON")]
    assert done.copied == {**EVERYTHING, "memory": 3}


def test_only_an_empty_store_or_the_same_copy_is_written_to(
    source: JsonStore, target: JsonStore, tmp_path: Path
) -> None:
    """Neither a store in use, nor the target of another copy, nor the source itself; nor is a part copied on."""
    with pytest.raises(ConfigError, match="E_STORE_SAME"):
        StoreCopy(source, JsonStore(tmp_path / "source", StoreSettings()))
    copied(source, target)
    other = JsonStore(tmp_path / "other", StoreSettings())
    with pytest.raises(ConfigError, match="E_STORE_UNFINISHED"):
        StoreCopy(target, other).prepare()
    save(other, "in use", Bucket("ana"))
    with pytest.raises(ConfigError, match="E_STORE_NOT_EMPTY"):
        StoreCopy(source, other).prepare()
    with pytest.raises(ConfigError, match="E_STORE_SEALED"):
        StoreCopy(other, target).prepare()
    assert contents(other, Bucket("ana")) == ["in use"]


def forget(store: Store) -> object:
    return store.tombstones.begin(Wish("ana"), ["n1"])


WRITES: dict[str, Callable[[JsonStore], object]] = {
    "commit": lambda store: save(store, "more", ALICE),
    "project": lambda store: save(store, "more", Bucket("", "", "apollo")),
    "first": lambda store: save(store, "more", Bucket("new")),
    "probe": lambda store: store.probe(ALICE),
    "forget": forget,
    "close": lambda store: store.tombstones.close(store.tombstones.unfinished()[0]),
    "erase": lambda store: store.erase(ALICE.user_id, None),
    "session": lambda store: store.sessions.save(KEY, store.sessions.load(KEY), {"sessionId": "t"}),
    "checkpoint": lambda store: store.sessions.put_checkpoint(KEY, store.sessions.load(KEY), "c9", {}),
    "remove": lambda store: store.sessions.remove(KEY),
    "expire": lambda store: store.sessions.expire(ALICE, datetime.now(UTC) + timedelta(days=1)),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_sealed_store_takes_no_writes(source: JsonStore, name: str) -> None:
    """Each is refused by name, nothing has changed, everything is read; without the seal it is taken."""
    before = content(source)
    source.moving.set_seal(SEAL)
    with pytest.raises(StoreSealed, match="E_STORE_SEALED"):
        WRITES[name](source)
    assert (content(source), source.moving.seal()) == (before, SEAL)
    source.moving.set_seal(None)
    WRITES[name](source)
    assert source.moving.seal() is None


def test_a_shared_memory_is_copied_with_the_sessions_of_its_users(tmp_path: Path) -> None:
    """Whatever the settings of the two ends say."""
    source = JsonStore(tmp_path / "source", StoreSettings(shared=True))
    target = JsonStore(tmp_path / "target", StoreSettings())
    save(source, "shared", Bucket("ana"))
    save(source, "shared by agents", Bucket("bob", "helper"))
    source.sessions.save(KEY, source.sessions.load(KEY), {"sessionId": KEY.thread_id, "components": {}})
    source.reading_notes.note(ALICE, ["fact_1"], time.time())

    assert copied(source, target).copied == {"memory": 2, "session": 1}
    assert files_of(tmp_path / "target") == files_of(tmp_path / "source")
    assert contents(JsonStore(tmp_path / "target", StoreSettings(shared=True)), Bucket("x")) == ["shared"]


@pytest.mark.parametrize(
    ("target", "changes", "leaves"),
    [
        ("new", {}, True),
        ("old", {}, False),
        ("old/../old", {}, False),
        ("postgresql://db.internal/memd", {}, False),
        ("new", {"redis_url": Secret("redis://server.internal")}, False),
        (None, {}, False),
    ],
)
def test_a_switch_to_another_folder_leaves_the_embedded_server(
    target: str | None, changes: dict[str, Any], leaves: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And says so: memd started there would have an empty server, while pushes wait in the old one."""
    monkeypatch.chdir(tmp_path)
    assert leaves_server(target, Settings(data_dir=Path("old"), **changes)) is leaves
