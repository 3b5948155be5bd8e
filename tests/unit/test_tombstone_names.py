"""The names of tombstone files: they tell nobody who was forgotten, and nothing forgotten comes back by renaming."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from support.stores import ALICE, options

from memd.context import Bucket, Message, identify, user_hash
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.memory.store import tombstone_names
from memd.memory.store.json_store import JsonStore
from memd.memory.store.paths import FORGOTTEN, KEY
from memd.memory.store.protocol import Wish
from memd.memory.store.tombstone import TombstoneFiles

SAMPLE = Path(__file__).parents[1] / "data" / "versions" / "tombstone-1.json"
GONE = Bucket("gone")
OLD, NEW = (message.identity for message in identify("thread-1", [Message("user", "I like rowing.", id="f1"),
                                                                  Message("user", "Tea.", id="f2")]))  # fmt: skip


def forget(data_dir: Path, *users: str) -> None:
    tombstones = TombstoneFiles(data_dir)
    for user in users:
        tombstones.begin(Wish(user), [NEW])
        tombstones.close(Wish(user))


def of_an_older_version(data_dir: Path, *, open_wish: bool = False) -> None:
    """The files of the user `gone`, as versions before the keyed names have written them."""
    folder = data_dir / FORGOTTEN
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(SAMPLE, folder / f"{user_hash('gone')}.json")
    if open_wish:
        (folder / f"{user_hash('gone')}.open").write_bytes(orjson.dumps({"open": [["gone", None]]}))


def held(data_dir: Path, *identities: str) -> list[bool]:
    """Whether these messages of the user `gone` count as forgotten, for a process that has just started."""
    found = TombstoneFiles(data_dir).find("gone")
    return [found is not None and found.holds(GONE, identity) for identity in identities]


def names(data_dir: Path) -> set[str]:
    return {file.name for file in (data_dir / FORGOTTEN).iterdir()} - {"lock"}


def test_no_name_is_a_hash_that_can_be_guessed(tmp_path: Path) -> None:
    """A user has another name in each store, and neither is their plain hash."""
    for store in ("one", "two"):
        forget(tmp_path / store, "gone", "ana")
        assert len(names(tmp_path / store)) == 2
        assert not {f"{user_hash(user)}.json" for user in ("gone", "ana")} & names(tmp_path / store)
    assert not names(tmp_path / "one") & names(tmp_path / "two")


def test_the_key_is_made_once(tmp_path: Path) -> None:
    """Whoever asks first makes it, only its owner can read it, and everybody gets the same names."""
    with ThreadPoolExecutor(8) as threads:
        stores = [JsonStore(tmp_path, options()) for _ in range(16)]
        made = set(threads.map(lambda store: store.pseudonym(ALICE.hash), stores))
    assert len(made) == 1
    assert made.isdisjoint({"", ALICE.hash})
    assert (tmp_path / KEY).stat().st_mode & 0o777 == 0o600
    assert JsonStore(tmp_path, options()).pseudonym(ALICE.hash) in made


@pytest.mark.parametrize("damage", [b"", b"00\n", b"\xff" * 64, b"z" * 64])
def test_a_damaged_key_is_no_key(tmp_path: Path, damage: bytes) -> None:
    """Nothing is found or written under other names until it is back; a log line goes without a name."""
    forget(tmp_path, "gone")
    good = (tmp_path / KEY).read_bytes()
    (tmp_path / KEY).write_bytes(damage)
    with pytest.raises(StoreUnavailable, match="E_STORE_KEY"):
        TombstoneFiles(tmp_path).find("gone")
    assert JsonStore(tmp_path, options()).pseudonym(ALICE.hash) == ""
    (tmp_path / KEY).write_bytes(good)
    assert held(tmp_path, NEW, OLD) == [True, False]


def test_files_of_an_older_version_hold_and_are_renamed(tmp_path: Path) -> None:
    """What was forgotten stays forgotten, the open wish is known, and the plain names are gone."""
    of_an_older_version(tmp_path, open_wish=True)
    assert held(tmp_path, OLD, NEW) == [True, False]
    assert TombstoneFiles(tmp_path).unfinished() == [Wish("gone")]
    assert TombstoneFiles(tmp_path).owners() == [user_hash("gone")]
    assert not any(user_hash("gone") in name for name in names(tmp_path))
    assert len(names(tmp_path)) == 2


@pytest.mark.parametrize("asks_first", ["find", "begin", "unfinished and owners"])
def test_an_older_version_beside_this_one(tmp_path: Path, asks_first: str) -> None:
    """It writes a second tombstone of a user who has one: both hold, whoever comes first, and so do both wishes."""
    forget(tmp_path, "gone")
    tombstones = TombstoneFiles(tmp_path)
    before = tombstones.find("gone")
    of_an_older_version(tmp_path, open_wish=True)
    if asks_first == "begin":
        tombstones.begin(Wish("gone", "chef"), [])
        assert set(tombstones.unfinished()) == {Wish("gone"), Wish("gone", "chef")}
    elif asks_first != "find":
        assert (tombstones.unfinished(), tombstones.owners()) == ([Wish("gone")], [user_hash("gone")])
    found = tombstones.find("gone")
    assert before is not None
    assert found is not None
    assert found.generation > before.generation
    assert held(tmp_path, OLD, NEW) == [True, True]
    assert tombstones.unfinished()
    assert held(tmp_path, OLD, NEW) == [True, True]
    assert not any(user_hash("gone") in name for name in names(tmp_path))


def test_a_lost_key_brings_nothing_back(tmp_path: Path) -> None:
    """A new key renames what the lost one has named, also for a process that still knows the old key."""
    of_an_older_version(tmp_path, open_wish=True)
    forget(tmp_path, "ana")
    running = TombstoneFiles(tmp_path)
    assert running.find("gone") is not None
    before = names(tmp_path)
    (tmp_path / KEY).unlink()
    assert held(tmp_path, OLD) == [True]
    assert not before & names(tmp_path)
    assert running.find("gone") is not None
    assert running.unfinished() == [Wish("gone")]
    assert sorted(running.owners()) == sorted(map(user_hash, ("ana", "gone")))


def test_tombstones_from_a_backup_with_another_key(tmp_path: Path) -> None:
    """The mending at the start of a worker renames them; a tombstone that is there already keeps its own hashes."""
    of_an_older_version(tmp_path / "backup")
    forget(tmp_path / "backup", "ana")
    forget(tmp_path / "store", "gone")
    for file in (tmp_path / "backup" / FORGOTTEN).glob("*.json"):
        shutil.copy(file, tmp_path / "store" / FORGOTTEN)
    assert sorted(TombstoneFiles(tmp_path / "store").owners()) == sorted(map(user_hash, ("ana", "gone")))
    assert held(tmp_path / "store", OLD, NEW) == [True, True]
    assert TombstoneFiles(tmp_path / "store").find("ana") is not None


def test_cut_short_the_renaming_goes_on_where_it_stopped(tmp_path: Path) -> None:
    """A tombstone that nobody can read stops it before there is a key; the others hold again once it is mended."""
    forget(tmp_path, *(f"user-{number}" for number in range(20)))
    (tmp_path / KEY).unlink()
    damaged = sorted((tmp_path / FORGOTTEN).glob("*.json"))[10]
    good = damaged.read_bytes()
    damaged.write_bytes(b"{")
    for _ in range(2):
        with pytest.raises(DocumentDamaged):
            TombstoneFiles(tmp_path).find("user-0")
        assert not (tmp_path / KEY).exists()
    owner = orjson.loads(good)["owner"]
    [still_there] = [file for file in (tmp_path / FORGOTTEN).glob("*.json") if file.read_bytes() == b"{"]
    still_there.write_bytes(good)
    found = TombstoneFiles(tmp_path)
    assert all(found.find(f"user-{number}") for number in range(20))
    assert owner in found.owners()


def test_uniting_twice_is_uniting_once(tmp_path: Path) -> None:
    """Killed between the write and the removal of the older file, it is done again."""
    forget(tmp_path, "gone")
    for _ in range(2):
        of_an_older_version(tmp_path)
        found = TombstoneFiles(tmp_path).find("gone")
        assert found is not None
        assert len(found.older) == 1


def test_a_damaged_tombstone_stops_no_other_users(tmp_path: Path) -> None:
    """The list for the server's mirror has the others; the user of the damaged one is stopped when it is looked up."""
    forget(tmp_path, "gone", "ana")
    folder = tmp_path / FORGOTTEN
    key = bytes.fromhex((tmp_path / KEY).read_text())
    (folder / f"{tombstone_names.name(key, user_hash('gone'))}.json").write_bytes(b"{")
    assert TombstoneFiles(tmp_path).owners() == [user_hash("ana")]
    with pytest.raises(DocumentDamaged):
        TombstoneFiles(tmp_path).find("gone")


def test_without_a_right_to_write_nothing_is_made(tmp_path: Path) -> None:
    """A reader's folder without tombstones needs no key."""
    assert TombstoneFiles(tmp_path).find("gone") is None
    assert list(tmp_path.iterdir()) == []
