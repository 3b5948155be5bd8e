"""The store: atomic, durable, fenced, suspicious of what it reads."""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson
import pytest
from support import make_settings
from support.stores import ALICE, DAMAGE, contents, names, options, ours, save

from memd.config import Settings
from memd.context import Bucket
from memd.disk import lock
from memd.errors import ClaimLost, ConfigError, Conflict, DocumentDamaged, DocumentTooNew, StoreUnavailable
from memd.memory.store.cache import CachedReader
from memd.memory.store.json_store import JsonStore, open_store
from memd.memory.store.protocol import Wish

V1 = {
    "version": "1.0",
    "lastUpdated": "2026-01-01T00:00:00.123456Z",
    "user": {"workContext": {"summary": "Engineer.", "updatedAt": "2026-01-01T00:00:00Z"}},
    "history": {"recentMonths": {"summary": "", "updatedAt": ""}},
    "facts": [
        {
            "id": "fact_0badcafe",
            "content": "用户喜欢绿茶",
            "category": "preference",
            "confidence": 0.9,
            "createdAt": "2026-01-01T00:00:00Z",
            "source": "t",
        }
    ],
    "plugin": [1],
}


@pytest.fixture
def store(tmp_path: Path) -> JsonStore:
    """A store in an empty data folder."""
    return JsonStore(tmp_path / "data", options())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where Alice's document is."""
    return tmp_path / "data" / "users" / "alice@example.com" / "memory.json"


def test_loading_what_is_not_there_creates_nothing(store: JsonStore, tmp_path: Path) -> None:
    """A reader leaves no trace."""
    loaded = store.load(ALICE)

    assert (loaded.revision, loaded.content_hash, loaded.document["facts"]) == (0, None, [])
    assert loaded.document["userId"] == "alice@example.com"
    assert not (tmp_path / "data").exists()


def test_files_and_folders_are_private(store: JsonStore, tmp_path: Path) -> None:
    """0600 and 0700, whatever the umask is."""
    before = os.umask(0)
    try:
        save(store, "The user likes tea", Bucket("alice", "coach"))
    finally:
        os.umask(before)

    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").rglob("*") if path.is_file()}
    assert modes == {0o600}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").rglob("*") if path.is_dir()} == {0o700}


def test_the_established_file_is_read_as_it_is(store: JsonStore, file: Path) -> None:
    """A v1 document keeps its fields, known to us or not, over a commit."""
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\xef\xbb\xbf" + orjson.dumps(V1))

    loaded = store.load(ALICE)
    assert {name: loaded.document[name] for name in V1} == V1
    assert loaded.revision == 0
    save(store, "The user likes coffee")
    written = orjson.loads(file.read_bytes())
    assert {name: written[name] for name in ("plugin", "user", "history")} == {
        n: V1[n] for n in ("plugin", "user", "history")
    }
    assert (written["userId"], contents(store)) == ("alice@example.com", ["用户喜欢绿茶", "The user likes coffee"])


def test_facts_that_a_hand_added_get_ids_of_their_own(store: JsonStore, file: Path) -> None:
    """A copied fact and one without an id are kept, each with its own id, the same at each load."""
    facts = [{"id": "fact_1", "content": "one"}, {"id": "fact_1", "content": "two"}, {"content": "three"}]
    file.parent.mkdir(parents=True)
    file.write_bytes(orjson.dumps({**V1, "facts": facts}))

    ids = [fact["id"] for fact in store.load(ALICE).document["facts"]]
    assert ids[0] == "fact_1"
    assert len(set(ids)) == 3
    assert ids == [fact["id"] for fact in store.load(ALICE).document["facts"]]


def test_an_edit_by_hand_is_a_conflict_even_with_the_same_revision(store: JsonStore, file: Path) -> None:
    """The hash of the file decides, not only its revision."""
    loaded = save(store, "The user likes tea")
    file.write_bytes(file.read_bytes().replace(b"tea", b"mate"))

    with pytest.raises(Conflict):
        store.commit(ALICE, loaded, loaded.document, ours)
    assert contents(store) == ["The user likes mate"]


def test_a_lost_claim_writes_nothing(store: JsonStore, file: Path) -> None:
    """The claim is asked for under the lock, before anything is touched."""
    with pytest.raises(ClaimLost):
        store.commit(ALICE, store.load(ALICE), {"revision": 1}, lambda: False)
    assert not file.parent.exists()


def test_the_claim_is_asked_for_while_the_lock_is_held(store: JsonStore, tmp_path: Path) -> None:
    """No other writer can come between the answer and the write."""
    held: list[bool] = []

    def still_ours() -> bool:
        with (tmp_path / "data" / "locks" / ALICE.hash[:2]).open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                held.append(True)
        return True

    store.commit(ALICE, store.load(ALICE), {**store.load(ALICE).document, "revision": 1}, still_ours)
    assert held == [True]


def test_a_document_loaded_before_a_forgetting_is_not_written(store: JsonStore, file: Path) -> None:
    """Though there is no document, before and after; another user's is written all the same."""
    loaded, bob = store.load(ALICE), store.load(Bucket("bob"))
    store.tombstones.begin(Wish(ALICE.user_id), ["i1"])
    with pytest.raises(Conflict, match="forgotten"):
        store.commit(ALICE, loaded, {**loaded.document, "revision": 1}, ours)
    assert not file.exists()
    store.commit(Bucket("bob"), bob, {**bob.document, "revision": 1}, ours)
    again = store.load(ALICE)
    assert (again.generation, again.tombstone) == (1, store.tombstones.find(ALICE.user_id))
    store.commit(ALICE, again, {**again.document, "revision": 1}, ours)


def test_a_forgetting_waits_for_a_commit_and_others_do_not(store: JsonStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a commit holds its owner's lock the wish is written down, the tombstone is not; other users' are."""
    monkeypatch.setattr(lock, "WAIT_S", 0.02)
    loaded = store.load(ALICE)

    def forgotten_now() -> bool:
        with pytest.raises(StoreUnavailable, match="E_STORE_LOCKED"):
            store.tombstones.begin(Wish(ALICE.user_id), ["i1"])
        store.tombstones.begin(Wish("bob"), ["i1"])
        return True

    store.commit(ALICE, loaded, {**loaded.document, "revision": 1}, forgotten_now)
    assert store.tombstones.find(ALICE.user_id) is None
    assert set(store.tombstones.unfinished()) == {Wish(ALICE.user_id), Wish("bob")}
    assert store.tombstones.extend(Wish(ALICE.user_id), ["i1"]).open == (Wish(ALICE.user_id),)


def test_a_reader_never_sees_half_a_document(store: JsonStore, file: Path) -> None:
    """While documents are replaced as fast as can be, every read is a whole version, and none goes back in time."""
    save(store, "x" * 20_000)
    done = threading.Event()
    seen: list[int] = []

    def read() -> None:
        while not done.is_set():
            seen.append(store.load(ALICE).revision)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for _ in range(60):
            save(store, "y" * 1000)
        done.set()
        for reader in readers:
            reader.result()
    assert names(file.parent) == {"memory.json", "memory.prev.json"}
    assert max(seen) <= 61


def test_a_full_disk_leaves_the_old_document_and_no_temp_file(store: JsonStore, file: Path) -> None:
    """When the file system refuses to write on, the error says so and the next commit goes through."""
    loaded = save(store, "The user likes tea")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, hard))
    try:
        with pytest.raises(StoreUnavailable, match="E_STORE_EFBIG"):
            store.commit(ALICE, loaded, {**loaded.document, "plugin": "x" * 10_000}, ours)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)

    assert store.load(ALICE) == loaded
    assert names(file.parent) <= {"memory.json", "memory.prev.json"}
    save(store, "The user likes coffee")


def test_too_many_open_files_is_an_outage_and_no_damage(store: JsonStore) -> None:
    """The document is not taken for damaged when it merely cannot be opened."""
    loaded = save(store, "The user likes tea")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        with pytest.raises(StoreUnavailable, match="E_STORE_EMFILE"):
            store.load(ALICE)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert store.load(ALICE) == loaded


def test_a_folder_that_cannot_be_made_is_an_outage(tmp_path: Path) -> None:
    """A file where the data folder should be refuses everything, and nothing is damaged."""
    (tmp_path / "data").write_text("in the way")
    store = JsonStore(tmp_path / "data", options())

    with pytest.raises(StoreUnavailable):
        store.load(ALICE)


def test_a_temp_file_left_by_a_crash_does_not_stop_the_next_commit(store: JsonStore, file: Path) -> None:
    """It is thrown away, even where it is a link to something else."""
    save(store, "The user likes tea")
    victim = file.with_name("victim")
    victim.write_text("not yours")
    file.with_name("memory.json.tmp").symlink_to(victim)

    save(store, "The user likes coffee")
    assert victim.read_text() == "not yours"
    assert "memory.json.tmp" not in names(file.parent)


def test_old_temp_files_are_swept_and_young_ones_left(store: JsonStore, file: Path) -> None:
    """Only what no running commit can own any more goes."""
    save(store, "The user likes tea")
    save(store, "The user likes tea", Bucket("bob", "coach"))
    old, young = (path.with_name("memory.json.tmp") for path in sorted(file.parents[1].rglob("memory.json")))
    old.write_text("{")
    young.write_text("{")
    os.utime(old, (0, 0))

    assert store.sweep() == 1
    assert (old.exists(), young.exists()) == (False, True)


def test_a_sweep_beside_running_commits_never_fails(store: JsonStore, file: Path) -> None:
    """A temp that its commit renames while it is looked at is simply gone."""
    save(store, "The user likes tea")
    temp, stop = file.with_name("memory.json.tmp"), threading.Event()

    def come_and_go() -> None:
        while not stop.is_set():
            temp.touch()
            temp.unlink()

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(come_and_go)
        try:
            assert sum(store.sweep() for _ in range(1_000)) == 0
        finally:
            stop.set()
        coming.result()


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_file_is_set_aside_and_the_last_good_version_restored(
    store: JsonStore, file: Path, kind: str
) -> None:
    """Whatever happened to the file, the version before it is back, the damage is kept, and others are unaffected."""
    save(store, "The user likes tea")
    save(store, "The user likes coffee")
    bob = save(store, "The user likes milk", Bucket("bob"))
    DAMAGE[kind](file)

    assert contents(store) == ["The user likes tea"]
    assert "memory.json.corrupt" in names(file.parent)
    assert stat.S_ISREG(file.lstat().st_mode)
    assert store.load(Bucket("bob")) == bob
    save(store, "The user likes water")
    assert contents(store) == ["The user likes tea", "The user likes water"]
    assert len(list(file.parent.glob("*.corrupt-*"))) == 1


def test_a_damaged_file_without_a_good_version_starts_anew(store: JsonStore, file: Path) -> None:
    """The damage is kept aside, and the bucket works again."""
    file.parent.mkdir(parents=True)
    file.write_text("{")
    file.with_name("memory.prev.json").write_text("{")

    assert contents(store) == []
    save(store, "The user likes tea")
    assert [path.read_text() for path in file.parent.glob("*.corrupt-*")] == ["{"]


def test_a_damaged_file_on_a_full_disk_is_left_for_later(store: JsonStore, file: Path) -> None:
    """When the good version cannot be written, nothing changes and names do not pile up."""
    save(store, "The user likes tea" + " very much" * 200)
    save(store, "The user likes coffee")
    file.write_text("{")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        for _ in range(3):
            with pytest.raises(StoreUnavailable, match="E_STORE_EFBIG"):
                store.load(ALICE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)

    assert file.read_text() == "{"
    assert names(file.parent) == {"memory.json", "memory.prev.json"}
    assert len(contents(store)) == 1


def test_a_newer_document_is_left_alone(store: JsonStore, file: Path) -> None:
    """It is neither read nor set aside nor overwritten."""
    loaded = save(store, "The user likes tea")
    file.write_bytes(file.read_bytes().replace(b'"1.0"', b'"1.1"'))
    newer = file.read_bytes()

    with pytest.raises(DocumentTooNew):
        store.load(ALICE)
    with pytest.raises(Conflict):
        store.commit(ALICE, loaded, loaded.document, ours)
    assert file.read_bytes() == newer


def test_users_and_agents_are_listed_by_their_ids(store: JsonStore, file: Path) -> None:
    """Long ids are read from the documents; folders of somebody else are left out."""
    long = "用户" * 40
    for bucket in (ALICE, Bucket("bob", "coach"), Bucket(long, long), Bucket(long, "Émile")):
        save(store, "The user likes tea", bucket)
    (file.parents[1] / "Not Ours").mkdir()
    (file.parents[1] / ("~" + "0" * 64)).mkdir()

    assert set(store.users()) == {"alice@example.com", "bob", long}
    assert store.agents("bob") == ["coach"]
    assert store.agents(long) == sorted([long, "Émile"])
    assert store.agents("nobody") == []


def test_a_shared_store_has_one_document_for_all_users(tmp_path: Path) -> None:
    """Everybody reads and writes the same one; agents still have their own."""
    store = JsonStore(tmp_path, options(shared=True))
    save(store, "tea", Bucket("alice"))
    save(store, "coffee", Bucket("bob"))
    save(store, "milk", Bucket("bob", "coach"))

    assert contents(store, Bucket("carol")) == ["tea", "coffee"]
    assert (tmp_path / "shared" / "memory.json").is_file()
    assert (list(store.users()), store.agents("carol")) == ([], ["coach"])


def test_a_cached_document_is_not_read_again_until_it_changes(store: JsonStore, file: Path, tmp_path: Path) -> None:
    """The same object comes back; a commit or an edit by hand is noticed at the next read."""
    reader = CachedReader[None](store, make_settings(tmp_path, None))
    assert list(reader.read(ALICE)["facts"]) == []
    save(store, "tea")

    first = reader.read(ALICE)
    assert reader.read(ALICE) is first
    save(store, "coffee")
    assert len(reader.read(ALICE)["facts"]) == 2
    file.write_bytes(file.read_bytes().replace(b"coffee", b"matcha"))
    assert reader.read(ALICE)["facts"][1]["content"] == "matcha"
    file.unlink()
    assert list(reader.read(ALICE)["facts"]) == []


def test_the_store_named_in_the_settings_is_opened(tmp_path: Path) -> None:
    """By default JSON files in the data folder."""
    assert isinstance(open_store(Settings(data_dir=tmp_path)), JsonStore)


@pytest.mark.parametrize(
    "name", ["nowhere.Store", "memd.memory.store.Nothing", "nodots", "", "builtins.print", "os.path.join"]
)
def test_a_store_that_cannot_be_loaded_stops_the_start(tmp_path: Path, name: str) -> None:
    """One sentence that names the setting."""
    with pytest.raises(ConfigError, match=r"setting store\.class: "):
        open_store(Settings(data_dir=tmp_path, store=options(**{"class": name})))


@pytest.mark.parametrize("linked", ["users/alice@example.com", "users/alice@example.com/agents"])
def test_a_users_folder_that_is_a_link_is_refused(store: JsonStore, file: Path, tmp_path: Path, linked: str) -> None:
    """Nothing is read, written or forgotten through it, so no forgetting leaves a document behind it."""
    bucket = Bucket(ALICE.user_id, "chef")
    save(store, "tea", bucket)
    place, elsewhere = tmp_path / "data" / linked, tmp_path / "elsewhere"
    place.rename(elsewhere)
    place.symlink_to(elsewhere)
    before = {path: path.read_bytes() for path in elsewhere.rglob("*.json")}
    for attempt in (
        lambda: store.load(bucket),
        lambda: store.peek(bucket),
        lambda: save(store, "coffee", bucket),
        lambda: store.erase(bucket.user_id, "chef"),
    ):
        with pytest.raises(StoreUnavailable, match="E_STORE_LINK"):
            attempt()
    assert {path: path.read_bytes() for path in elsewhere.rglob("*.json")} == before


@pytest.mark.parametrize("users", ["users", "."])
def test_the_folder_of_all_users_may_be_a_link(tmp_path: Path, users: str) -> None:
    """An operator may put the users, or the whole data folder, on another disk."""
    (tmp_path / "disk").mkdir()
    data = tmp_path / "data"
    if users == ".":
        data.symlink_to(tmp_path / "disk")
    else:
        data.mkdir()
        (data / users).symlink_to(tmp_path / "disk")
    store = JsonStore(data, options())
    save(store, "tea")
    assert contents(store) == ["tea"]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        (b'"facts": [', b'"facts": [],\n  "facts": [', "facts"),
        (b'"content": "tea"', b'"content": "beer",\n      "content": "tea"', "an object"),
        (b'"ledger": {', b'"ledger": {"secret": [], "secret": []', "an object"),
    ],
)
def test_a_key_that_is_there_twice_is_damage(store: JsonStore, file: Path, old: bytes, new: bytes, place: str) -> None:
    """Its first value would be lost silently; the error names the place, and no thread."""
    save(store, "tea")
    assert file.read_bytes().count(old) == 1
    file.write_bytes(file.read_bytes().replace(old, new))
    with pytest.raises(DocumentDamaged, match="E_DOCUMENT_KEY") as raised:
        store.inspect(ALICE)
    assert raised.value.place == place


@pytest.mark.parametrize("text", ['{"facts": []}', '{"facts":[{"content":"a","confidence":1e2,"x":{"content":"b"}}]}'])
def test_a_file_written_by_hand_without_double_keys_is_read(store: JsonStore, file: Path, text: str) -> None:
    """The same key in different objects is no double key."""
    file.parent.mkdir(parents=True)
    file.write_text(text)
    store.inspect(ALICE)


@pytest.mark.parametrize("commits", [0, 1, 3])
def test_a_reader_leaves_a_half_written_document_alone(
    store: JsonStore, file: Path, tmp_path: Path, commits: int
) -> None:
    """It reads the version before, and the whole one when it is there; only a writer sets a file aside."""
    for number in range(commits):
        save(store, f"tea {number}")
    file.parent.mkdir(parents=True, exist_ok=True)
    whole = file.read_bytes() if commits else b'{"facts": []}'
    file.write_bytes(whole[: len(whole) // 2])
    reader = CachedReader[None](store, make_settings(tmp_path, None))
    before, names_before = [f"tea {number}" for number in range(commits - 1)], names(file.parent)
    assert [fact["content"] for fact in reader.read(ALICE)["facts"]] == before
    assert (names(file.parent), file.read_bytes()) == (names_before, whole[: len(whole) // 2])
    file.write_bytes(whole)
    assert len(reader.read(ALICE)["facts"]) == commits
