"""Copies between JSON files and PostgreSQL: the same bytes, killed and resumed, beside writers, and the switch."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import orjson
import pytest
import redis
from support import ENDS_S, Cli, MakeSettings, daemon, ended, environment, exit_code, wait_for
from support.moved_content import EVERYTHING, KEY, LONG, content, copied, files_of, fill, learned, quietly
from support.postgres_server import CLASS, PostgresServer
from support.postgres_writers import store_at
from support.stores import ALICE, contents, save

from memd.client import Memd
from memd.config import Settings, StoreSettings
from memd.context import Bucket, user_hash
from memd.errors import ConfigError, Conflict, StoreSealed
from memd.forget import Forgetting
from memd.inbox import library
from memd.memory.store import JsonStore
from memd.memory.store.copying import Progress, StoreCopy
from memd.memory.store.moving import Seal
from memd.memory.store.postgres import PostgresStore
from memd.memory.store.protocol import Wish
from memd.ops import switching

EDITED = b"""{
 "version":"1.0", "userId":"edited", "facts": [{"id":"fact_1","content":"x", "confidence":2e0, "other": -0.0}],
 "ledger":{"t":["n1"], "u":[]}, "revision": 3}"""


@pytest.fixture
def target(postgres: PostgresServer) -> PostgresStore:
    """The empty database."""
    return store_at(postgres.url("memd"))


@pytest.fixture
def source(data_dir: Path) -> JsonStore:
    """A data folder with something of everything."""
    store = JsonStore(data_dir, StoreSettings())
    fill(store)
    return store


@pytest.fixture
def of_files(configured: MakeSettings, client: redis.Redis) -> Settings:
    """Settings with the data folder as the store."""
    settings = configured(store__class="memd.memory.store.JsonStore", store__url=None)
    library.install(client, settings)
    return settings


def test_there_and_back_are_the_same_bytes(source: JsonStore, target: PostgresStore, tmp_path: Path) -> None:
    """Of each file, also of one that a person has edited; and the database knows what the files know."""
    edited = source._data_dir / "users" / "edited"
    edited.mkdir()
    (edited / "memory.json").write_bytes(EDITED)
    everything = {**EVERYTHING, "memory": EVERYTHING["memory"] + 1}
    assert copied(source, target).copied == everything
    assert copied(source, target).copied.total() == 0
    assert content(target) == content(source)
    for bucket in source.moving.buckets():
        ours, theirs = (store.load(bucket, {"t": ["n1", "n9"], "t1": ["n1"]}) for store in (source, target))
        assert (ours.known, ours.revision, ours.tombstone) == (theirs.known, theirs.revision, theirs.tombstone)
        assert source.read_ledger(bucket, ours.document) == target.read_ledger(bucket, theirs.document) | (
            {"u": []} if bucket.user_id == "edited" else {}
        )
        assert source.read_said(bucket, ours.document).turns == target.read_said(bucket, theirs.document).turns

    back = JsonStore(tmp_path / "back", StoreSettings())
    target.moving.set_seal(None)
    assert copied(target, back).copied == everything
    assert files_of(tmp_path / "back") == files_of(source._data_dir)
    assert content(back) == content(source)


def test_what_was_copied_is_worked_with(source: JsonStore, target: PostgresStore, tmp_path: Path) -> None:
    """Commits, sessions and removals go on in the database, and come back to files with their ledgers."""
    copied(source, target)
    target.moving.set_seal(None)
    for bucket in (ALICE, LONG):
        learned(target, bucket, "later")
    stored = target.sessions.load(KEY)
    target.sessions.save(KEY, stored, stored.state or {}, [b'{"role": "USER", "id": "3"}'])

    back = JsonStore(tmp_path / "back", StoreSettings())
    copied(target, back)
    assert [line[-3:-2] for line in back.sessions.lines(KEY, back.sessions.load(KEY))] == [b"1", b"2", b"3"]
    assert back.load(ALICE, {"t": ["n1", "later"]}).known == {"n1", "later"}
    back.moving.set_seal(None)
    file = tmp_path / "back" / "users" / ALICE.user_id
    (file / "memory.json").write_text("{")
    assert back.load(ALICE, {"t": ["n1"]}).known == {"n1"}  # the version before has the ledger, too


@pytest.mark.parametrize("name", ["commit", "session", "forget", "erase", "probe"])
def test_a_sealed_database_takes_no_writes(target: PostgresStore, name: str) -> None:
    """Whatever the write; reads go on."""
    fill(target)
    before = content(target)
    target.moving.set_seal(Seal("source", "other"))
    writes: dict[str, Callable[[], object]] = {
        "commit": lambda: save(target, "more", ALICE),
        "session": lambda: target.sessions.save(KEY, target.sessions.load(KEY), {"sessionId": "t"}),
        "forget": lambda: target.tombstones.close(target.tombstones.unfinished()[0]),
        "erase": lambda: target.erase(ALICE.user_id, None),
        "probe": lambda: target.probe(ALICE),
    }
    with pytest.raises(StoreSealed, match="E_STORE_SEALED"):
        writes[name]()
    assert content(target) == before
    target.moving.set_seal(None)
    writes[name]()


def test_a_seal_waits_for_a_commit_under_way(postgres: PostgresServer, target: PostgresStore) -> None:
    """When it stands, what was begun before is there."""
    save(target, "first")
    with ThreadPoolExecutor(1) as pool, closing(target._postgres.new()) as held:
        held.execute("BEGIN")
        held.execute("SELECT 1 FROM memd.documents FOR UPDATE")
        committing = pool.submit(save, target, "second")
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%UPDATE memd.doc%'"
        wait_for(lambda: postgres.sql(waiting, "memd"), "the commit waits")
        with ThreadPoolExecutor(1) as other:
            sealing = other.submit(target.moving.set_seal, Seal("source", "other"))
            queued = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            wait_for(lambda: postgres.sql(queued, "memd"), "the seal waits")
            held.execute("COMMIT")
            sealing.result()
            assert contents(target) == ["first", "second"]
        committing.result()


def test_a_killed_copy_goes_on(
    settings: Settings, tmp_path: Path, target: PostgresStore, postgres: PostgresServer
) -> None:
    """What had arrived is not written again."""
    source = JsonStore(tmp_path / "source", StoreSettings())
    for number in range(60):
        learned(source, Bucket(f"user{number:02}"), "n1")
    words = ["store", "copy", "--from", str(tmp_path / "source"), "--to", postgres.url("memd"), "--json"]
    run = [sys.executable, "-m", "memd", *words]
    arrived = "SELECT count(*) FROM memd.documents"
    with subprocess.Popen(run, env=environment(settings), stdout=subprocess.DEVNULL) as killed:
        wait_for(lambda: postgres.sql(arrived, "memd")[0][0] >= 3, "documents arrive")
        killed.kill()
    before = dict(postgres.sql("SELECT user_id, commit_id FROM memd.documents", "memd"))
    with pytest.raises(StoreSealed):
        save(target, "a part is no store")
    done = subprocess.run([*run, "--verify"], env=environment(settings), capture_output=True, check=True)

    found = orjson.loads(done.stdout)
    assert (found["compared"]["memory"], found["differing"], found["whole"]) == (60, [], True)
    assert found["passes"][0]["copied"]["memory"] == 60 - len(before)
    after = dict(postgres.sql("SELECT user_id, commit_id FROM memd.documents", "memd"))
    assert {user: after[user] for user in before} == before


def test_a_killed_copy_to_files_goes_on(
    settings: Settings, tmp_path: Path, target: PostgresStore, postgres: PostgresServer
) -> None:
    """The other way: a document is the last of its files, so what is there is whole and not written again."""
    for number in range(60):
        learned(target, Bucket(f"user{number:02}"), "n1")
    folder = tmp_path / "files"
    run = [sys.executable, "-m", "memd", "store", "copy", "--to", str(folder), "--json"]
    with subprocess.Popen(run, env=environment(settings), stdout=subprocess.DEVNULL) as killed:
        wait_for(lambda: len(list(folder.glob("users/*/memory.json"))) >= 3, "documents arrive")
        killed.kill()
    before = {file: file.stat().st_ino for file in folder.glob("users/*/memory.json")}
    done = subprocess.run([*run, "--verify"], env=environment(settings), capture_output=True, check=True)

    found = orjson.loads(done.stdout)
    assert (found["compared"]["memory"], found["differing"], found["whole"]) == (60, [], True)
    assert found["passes"][0]["copied"]["memory"] == 60 - len(before)
    assert {file: file.stat().st_ino for file in before} == before
    assert content(JsonStore(folder, StoreSettings())) == content(target)


def _hammer(store: JsonStore, number: int, stop: threading.Event) -> set[tuple[Bucket, str]]:
    """Write until the store is sealed; returns what was acknowledged."""
    done: set[tuple[Bucket, str]] = set()
    while not stop.is_set():
        bucket, name = Bucket(f"user{(number + len(done)) % 5}"), f"w{number}n{len(done)}"
        try:
            learned(store, bucket, name)
        except Conflict:
            continue
        except StoreSealed:
            break
        done.add((bucket, name))
    return done


def test_a_switch_beside_writers_and_a_forgetting_loses_nothing(
    of_files: Settings, client: redis.Redis, target: PostgresStore
) -> None:
    """What was acknowledged is in the target, and what was forgotten while it was copied is not."""
    source = JsonStore(of_files.data_dir, StoreSettings())
    library.bind_store(client, source)
    learned(source, Bucket("mallory"), "secret")
    stop, steps = threading.Event(), list[str]()

    def step(what: str) -> Progress:
        steps.append(what)
        if what == "copying":
            return forgets_when_copied
        return quietly

    def forgets_when_copied(done: int, total: int) -> None:
        if done == total:  # mallory is in the target by now
            assert target.load(Bucket("mallory")).revision == 1
            forgotten = Forgetting(of_files, client, source)
            assert forgotten.run(Wish("mallory")).complete

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(_hammer, source, number, stop) for number in range(3)]
        wait_for(lambda: len(list(source.users())) == 6, "everybody writes")
        done = switching.switch(StoreCopy(source, target), client, step)
        stop.set()
        acknowledged = set().union(*(writer.result() for writer in writers))
    assert (done.switched, done.is_whole, steps) == (True, True, ["copying", "copying the rest", "comparing"])
    assert library.store_of(client) == target.read_id()
    for bucket, name in acknowledged:
        assert target.load(bucket, {"t": [name]}).known == {name}
    assert "mallory" not in target.users()
    tombstone = target.tombstones.of(user_hash("mallory"))
    assert tombstone is not None
    assert (tombstone.holds(Bucket("mallory"), "secret"), tombstone.open) == (True, ())
    with pytest.raises(StoreSealed):
        learned(source, ALICE, "too late")
    learned(target, ALICE, "in time")
    with pytest.raises(ConfigError, match="E_STORE_NOT_EMPTY"):
        StoreCopy(source, target).prepare()


def test_workers_go_over_with_every_context(
    of_files: Settings, configured: MakeSettings, client: redis.Redis, target: PostgresStore, postgres: PostgresServer
) -> None:
    """While it is sealed claims come back; after the switch the old scheduler stops and new settings go on."""
    source = JsonStore(of_files.data_dir, StoreSettings())
    with Memd(of_files) as app, daemon(of_files) as (scheduler, _):
        _push(app, 0, 20)
        wait_for(lambda: app.status().stored == 20, "the first are stored")
        source.moving.set_seal(Seal("source", target.make_id()))
        _push(app, 20, 25)
        refused = of_files.data_dir / "worker0.log"
        wait_for(lambda: "StoreSealed" in refused.read_text(), "a claim is released")
        source.moving.set_seal(None)
        wait_for(lambda: app.status().stored == 25, "the released are stored")
        assert switching.switch(StoreCopy(source, target), client, lambda _: quietly).switched
        _push(app, 25, 40)
        assert exit_code(scheduler, ENDS_S) == 78
    moved = configured(**{"store__class": CLASS, "store__url": postgres.url("memd")})
    with Memd(moved) as app, daemon(moved):
        assert ended(app) == {"stored": 40}
        for number in range(40):
            assert len(app.document(f"user{number % 10}")["facts"]) == 4


def _push(app: Memd, first: int, end: int) -> None:
    for number in range(first, end):
        turn = {"role": "user", "content": f"I like dish number {number}.", "id": f"m{number}"}
        app.push([turn], thread_id=f"t{number}", user_id=f"user{number % 10}", now=True)


def test_the_command(
    of_files: Settings, client: redis.Redis, cli: Cli, target: PostgresStore, postgres: PostgresServer
) -> None:
    """Codes, counts and names; a seal left by a kill is taken off, or the switch goes on; passwords are refused."""
    source, url = JsonStore(of_files.data_dir, StoreSettings()), postgres.url("memd")
    env = {name: value for name, value in environment(of_files).items() if name.startswith("MEMD_")}
    fill(source)
    library.bind_store(client, source)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return cli("store", "copy", "--from", str(of_files.data_dir), *words, **env)

    assert run("--to", "postgresql://me:correct-horse@h/x").returncode == 2
    assert run().returncode == 2
    done = run("--to", url, "--verify")
    assert (done.returncode, "4 memories, 1 project, 1 session, 1 tombstone; 0 differ" in done.stdout) == (0, True)
    assert "not sealed" in run("--unseal").stdout
    source.moving.set_seal(Seal("source", target.make_id()))  # as a kill leaves it
    assert "takes writes again" in run("--unseal").stdout
    file = of_files.data_dir / "users" / "bob" / "agents" / "helper" / "memory.json"
    good = file.read_bytes()
    file.write_text("{")
    damaged = run("--to", url, "--switch")
    assert (damaged.returncode, "agent helper: cannot be read" in damaged.stdout) == (1, True)
    assert (source.moving.seal(), library.store_of(client)) == (None, source.read_id())
    file.write_bytes(good)
    switched = orjson.loads(run("--to", url, "--switch", "--json").stdout)
    assert (switched["switched"], switched["differing"]) == (True, [])
    assert orjson.loads(run("--to", url, "--switch", "--json").stdout)["switched"]
    assert run("--to", url).returncode == 78
    assert run("--unseal").returncode == 78
    back = cli("store", "copy", "--from", url, "--to", str(of_files.data_dir), "--switch", **env)
    assert (back.returncode, library.store_of(client)) == (0, source.read_id())
    assert (target.moving.seal(), source.moving.seal()) == (Seal("source", source.make_id()), None)
