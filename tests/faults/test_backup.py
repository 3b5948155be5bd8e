"""Backups: made beside contexts on their way, restored into nothing, killed half-way; and what was forgotten since."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from support import (
    STORE,
    STORE_SETTINGS,
    Cli,
    daemon,
    dead_letter,
    ended,
    environment,
    make_settings,
    wait_for,
)
from support.fault_support import raw, tell, told
from support.moved_content import KEY, fill, learned, quietly, restorable
from support.stores import contents, save

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket, of_project
from memd.errors import ConfigError, OtherStore, StoreSealed
from memd.forget import Forgetting
from memd.inbox import library
from memd.inbox.connection import inbox_url
from memd.inbox.raw_door import RawDoor
from memd.inbox.verbs import RAW
from memd.memory.document import facts_of
from memd.memory.store.copying import Progress
from memd.memory.store.json_store import open_store
from memd.memory.store.moving import MovableStore
from memd.memory.store.protocol import Store, Wish
from memd.ops import backing_up, restoring
from memd.ops.backup_folder import BackupFolder
from memd.tasks import TodoList

OF_FILES: dict[str, Any] = {"store__class": "memd.memory.store.JsonStore", "store__url": None}
APOLLO = of_project("apollo")

SLOW = pytest.mark.long if STORE == "json" else pytest.mark.timing
"""With PostgreSQL they run in `make test-store`, which leaves long ones out."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder for a backup, which is not there yet."""
    return tmp_path / "backup"


def back_up(settings: Settings, client: redis.Redis, folder: Path) -> None:
    backing_up.back_up(settings, client, folder, lambda _: quietly)


def restore(
    settings: Settings, client: redis.Redis, folder: Path, *, replaces: bool = False, takes_inbox: bool = False
) -> restoring.Restored:
    done = restoring.restore(settings, client, folder, lambda _: quietly, replaces=replaces, takes_inbox=takes_inbox)
    assert done.is_whole
    return done


def lose_store(settings: Settings) -> None:
    """All that the store has; its id stays."""
    for name in ("users", "projects", "shared", "forgotten", "tasks", "heat"):
        shutil.rmtree(settings.data_dir / name, ignore_errors=True)
    if STORE == "postgres":
        from support import postgres_server

        postgres_server.empty(STORE_SETTINGS["url"])


def lose_inbox(client: redis.Redis) -> None:
    """All that the server has."""
    client.flushall()
    client.function_flush()


def seal_of(store: Store) -> object:
    assert isinstance(store, MovableStore)
    return store.moving.seal()


def test_everything_comes_back(settings: Settings, client: redis.Redis, cli: Cli, folder: Path, data_dir: Path) -> None:
    """Store, tasks, contexts with their receipts, letters; the inbox is at work with it again."""
    store = open_store(settings)
    fill(store)
    library.bind_store(client, store)
    TodoList(data_dir, "ana").write([{"text": "Water the roses.", "status": "pending"}])
    with Memd(settings) as app:
        receipt = tell(app, "ana", 1, now=False)
        client.rpush(RAW, raw("ana", 2), b"no push")
        before = restorable(store)
        made = cli("backup", str(folder), "--json")
        assert made.returncode == 0, made.stderr
        counts = orjson.loads(made.stdout)
        assert (counts["contexts"], counts["letters"], counts["memories"], counts["task_files"]) == (2, 1, 4, 1)
        letter = dead_letter(client)

        lose_store(settings)
        lose_inbox(client)
        done = cli("restore", str(folder))
        assert (done.returncode, "2 contexts pending again, 1 dead letter" in done.stdout) == (0, True), done.stderr
        assert restorable(open_store(settings)) == before
        assert TodoList(data_dir, "ana").items()[0].text == "Water the roses."
        assert dead_letter(client) == letter
        assert (app.receipt(receipt).state, seal_of(open_store(settings))) == ("pending", None)
        with daemon(settings):
            assert ended(app) == {"stored": 2, "dead": 1}
        assert (told(app, "ana"), app.receipt(receipt).state) == (Counter([1, 2]), "stored")


@SLOW
def test_a_backup_beside_pushes_and_workers_loses_nothing(
    settings: Settings, client: redis.Redis, folder: Path
) -> None:
    """What was accepted before it began is stored once, whether it was pending, claimed or stored meanwhile."""
    store = open_store(settings)
    library.bind_store(client, store)
    acknowledged, stop = list[int](), threading.Event()

    def push(app: Memd) -> None:
        while not stop.is_set() and len(acknowledged) < 150:
            number = len(acknowledged)
            tell(app, f"u{number % 5}", number)
            acknowledged.append(number)

    with Memd(settings) as app, daemon(settings):
        pushing = threading.Thread(target=push, args=(app,))
        pushing.start()
        wait_for(lambda: app.status().stored > 20, "some are stored")
        before = list(acknowledged)
        back_up(settings, client, folder)
        stop.set()
        pushing.join()
    lose_store(settings)
    lose_inbox(client)
    restore(settings, client, folder)
    with Memd(settings) as app, daemon(settings):
        assert not app.flush(wait=True, timeout_s=60).timed_out
        found = sum((told(app, f"u{user}") for user in range(5)), Counter[int]())
        assert set(found.values()) == {1}
        assert set(before) <= set(found)
        for number in acknowledged:  # the app sends again what it does not know the end of
            tell(app, f"u{number % 5}", number)
        assert not app.flush(wait=True, timeout_s=60).timed_out
        again = sum((told(app, f"u{user}") for user in range(5)), Counter[int]())
        assert again == Counter(acknowledged)


@pytest.mark.parametrize("at_the_end", [False, True])
def test_what_is_stored_while_it_runs_is_in_it(
    settings: Settings, client: redis.Redis, folder: Path, *, at_the_end: bool
) -> None:
    """Before its document is copied, so that inbox and store have it, or afterwards, so that only the inbox has it."""
    store = open_store(settings)
    library.bind_store(client, store)
    _learn(store, "ben")
    with Memd(settings) as app:
        tell(app, "ben", 1, now=False)
        stored = list[dict[str, int]]()

        def stores(done: int, total: int) -> None:
            if (done == total) == at_the_end and not stored:
                with daemon(settings):
                    stored.append(ended(app))

        backing_up.back_up(settings, client, folder, lambda what: stores if what == "memories" else quietly)
        assert stored == [{"stored": 1}]
        lose_store(settings)
        lose_inbox(client)
        restore(settings, client, folder)
        with daemon(settings):
            assert not app.flush(wait=True, timeout_s=60).timed_out
        assert sum("tea number 1" in fact["content"] for fact in facts_of(app.document("ben"))) == 1


def _learn(store: Store, *users: str) -> None:
    for user in users:
        learned(store, Bucket(user), "n1")


def _in_project(store: Store, *users: str) -> None:
    loaded = store.load(APOLLO)
    facts = [
        {"id": f"fact_{user}", "content": f"{user} decided", "evidence": [{"by": user, "quote": "decided"}]}
        for user in users
    ]
    members = {user: {"role": "editor", "since": "2026-01-01T00:00:00Z"} for user in users}
    document = {**loaded.document, "revision": 1, "facts": facts, "members": members}
    store.commit(APOLLO, loaded, document, lambda: True)


@pytest.mark.parametrize("survives", ["inbox", "store"])
def test_who_was_forgotten_since_stays_forgotten(
    survives: str, settings: Settings, client: redis.Redis, folder: Path
) -> None:
    """Memories (of hand, too), words in projects, sessions, tasks, letters, pending contexts; agents alone as well."""
    store = open_store(settings)
    library.bind_store(client, store)
    _learn(store, "mallory", "ben")
    save(store, "by hand", Bucket("mallory", "chef"))
    save(store, "of a chef", Bucket("ben", "chef"))
    _in_project(store, "mallory", "ben")
    key = KEY._replace(user_id="mallory")
    store.sessions.save(key, store.sessions.load(key), {"sessionId": key.thread_id})
    for user in ("mallory", "ben"):
        TodoList(settings.data_dir, user).write([{"text": "secret", "status": "pending"}])
    with Memd(settings) as app:
        for user in ("mallory", "ben"):
            tell(app, user, 1, now=False)
        client.rpush(RAW, orjson.dumps({"user_id": "mallory", "thread_id": "t", "messages": []}))
        RawDoor(settings, client).take_in_present(10)
        back_up(settings, client, folder)
        app.forget("mallory")
        app.forget("ben", agent_name="chef")
        if survives == "inbox":
            lose_store(settings)
            done = restore(settings, client, folder)
        else:
            lose_inbox(client)
            done = restore(settings, client, folder, replaces=True)
    restored = open_store(settings)
    assert done.forgotten == 2
    assert sorted(restored.users()) == ["ben"]
    assert (contents(restored, Bucket("ben")) != [], contents(restored, Bucket("ben", "chef"))) == (True, [])
    assert [fact["id"] for fact in facts_of(restored.load(APOLLO).document)] == ["fact_ben"]
    assert restored.sessions.load(key).state is None
    tasks = [str(file) for file in (settings.data_dir / "tasks").rglob("*") if file.is_file()]
    assert (len(tasks), "mallory" in str(tasks)) == (1, False)
    with Memd(settings) as app, daemon(settings):
        assert app.push(
            [{"role": "user", "content": "I like tea number 1.", "id": "u1"}], thread_id="thread-1", user_id="mallory"
        ).reason == "forgotten"  # fmt: skip
        tell(app, "mallory", 7)
        assert not app.flush(wait=True, timeout_s=60).timed_out
        assert (told(app, "mallory"), app.dead()) == (Counter([7]), [])
        assert app.status().pending == 0


def test_who_is_forgotten_while_it_runs_is_not_in_it(settings: Settings, client: redis.Redis, folder: Path) -> None:
    """Their memory was copied already; it goes from the backup, and nothing of it comes back."""
    store = open_store(settings)
    library.bind_store(client, store)
    _learn(store, "mallory", "ben")
    _in_project(store, "mallory", "ben")
    copied = BackupFolder(folder).store / "users" / "mallory"

    complete = list[bool]()

    def forgets(_done: int, _total: int) -> None:
        if copied.exists() and not complete:
            complete.append(Forgetting(settings, client, store).run(Wish("mallory")).complete)

    backing_up.back_up(settings, client, folder, lambda _: forgets)
    assert (complete, copied.exists()) == ([True], False)
    assert not [file for file in folder.rglob("*") if file.is_file() and b"mallory" in file.read_bytes()]
    lose_store(settings)
    lose_inbox(client)
    assert restore(settings, client, folder).forgotten == 0
    assert sorted(open_store(settings).users()) == ["ben"]


def test_an_older_store_under_a_younger_inbox(settings: Settings, client: redis.Redis, folder: Path) -> None:
    """What was pending at the backup is stored anew; of what came and went since, a receipt says `unknown`."""
    with Memd(settings) as app:
        library.bind_store(client, open_store(settings))
        with daemon(settings):
            first = tell(app, "ana", 1)
            assert ended(app) == {"stored": 1}
        second = tell(app, "ana", 2, now=False)
        back_up(settings, client, folder)
        with daemon(settings):
            third = tell(app, "ana", 3)
            assert ended(app) == {"stored": 3}
        lose_store(settings)
        assert restore(settings, client, folder).messages == 1
        assert [app.receipt(one).state for one in (first, second, third)] == ["stored", "pending", "unknown"]
        with daemon(settings):
            assert not app.flush(wait=True, timeout_s=60).timed_out
            assert told(app, "ana") == Counter([1, 2])
            tell(app, "ana", 3)
            assert not app.flush(wait=True, timeout_s=60).timed_out
        assert (told(app, "ana"), app.receipt(second).state) == (Counter([1, 2, 3]), "stored")


@SLOW
def test_an_older_inbox_beside_a_younger_store(settings: Settings, client: redis.Redis, cli: Cli, folder: Path) -> None:
    """It brings back what was pending at the backup; the ledger knows what was stored since, and receipts go on."""
    with Memd(settings) as app:
        library.bind_store(client, open_store(settings))
        receipts = [tell(app, "ana", number, now=False) for number in (1, 2)]
        back_up(settings, client, folder)
        with daemon(settings):
            assert ended(app) == {"stored": 2}
        lose_inbox(client)
        assert cli("restore", str(folder), "--only-inbox").returncode == 0
        assert [app.receipt(one).state for one in receipts] == ["pending", "pending"]
        tell(app, "ana", 3)
        with daemon(settings):
            assert not app.flush(wait=True, timeout_s=60).timed_out
        assert told(app, "ana") == Counter([1, 2, 3])


def test_what_an_inbox_got_meanwhile_keeps_its_receipts(settings: Settings, client: redis.Redis, folder: Path) -> None:
    """Restored into one that has begun anew: numbers of the same key mean what they meant; nothing comes twice."""
    with Memd(settings) as app:
        library.bind_store(client, open_store(settings))
        turns = [{"role": "user", "content": f"I like tea number {number}.", "id": f"u{number}"} for number in range(4)]
        old = app.push(turns[:2], thread_id="t", user_id="ana").id or ""
        back_up(settings, client, folder)
        lose_inbox(client)
        library.install(client, settings)
        new = app.push(turns[1:3], thread_id="t", user_id="ana").id or ""
        for _ in range(2):  # the second one changes nothing
            restoring.restore_inbox(settings, client, folder, lambda _: quietly)
        later = app.push(turns[3:], thread_id="t", user_id="ana").id or ""
        assert [app.receipt(one).state for one in (old, new, later)] == ["unknown", "pending", "pending"]
        with daemon(settings):
            assert not app.flush(wait=True, timeout_s=60).timed_out
        assert told(app, "ana") == Counter(range(4))
        assert [app.receipt(one).state for one in (new, later)] == ["stored", "stored"]


def _many(store: Store) -> None:
    for number in range(60):
        learned(store, Bucket(f"user{number:02}"), "n1")


@SLOW
@pytest.mark.parametrize("command", ["backup", "restore"])
def test_a_killed_one_goes_on(
    command: str, settings: Settings, client: redis.Redis, folder: Path, data_dir: Path
) -> None:
    """Half a backup is none; half a restored store takes no writes."""
    store = open_store(settings)
    library.bind_store(client, store)
    _many(store)
    before = restorable(store)
    with Memd(settings) as app:
        tell(app, "ana", 1, now=False)
    if command == "restore":
        back_up(settings, client, folder)
        lose_store(settings)
        lose_inbox(client)
    run = [sys.executable, "-m", "memd", command, str(folder)]
    place = folder / "store" if command == "backup" else data_dir

    def arrived() -> int:
        if command == "restore" and STORE == "postgres":
            return len(list(open_store(settings).users()))
        return len(list(place.glob("users/*/memory.json")))

    with subprocess.Popen(run, env=environment(settings), stdout=subprocess.DEVNULL) as killed:
        wait_for(lambda: arrived() >= 3, "documents arrive")
        killed.kill()
    assert killed.returncode == -9
    if command == "backup":
        with pytest.raises(ConfigError, match="E_BACKUP_NONE"):
            restore(settings, client, folder, replaces=True)
    else:
        with pytest.raises(StoreSealed):
            save(store, "a part is no store")
    subprocess.run(run, env=environment(settings), capture_output=True, check=True)
    if command == "backup":
        lose_store(settings)
        lose_inbox(client)
        restore(settings, client, folder)
    assert restorable(open_store(settings)) == before
    with Memd(settings) as app:
        assert app.status().pending == 1
    save(open_store(settings), "it takes writes")


def test_workers_wait_for_the_restore(settings: Settings, client: redis.Redis, folder: Path) -> None:
    """Whoever runs while it does gets nothing into the store, and goes on when it is done."""
    store = open_store(settings)
    library.bind_store(client, store)
    _learn(store, "ben")
    back_up(settings, client, folder)
    lose_store(settings)
    refused = settings.data_dir / "worker0.log"
    with Memd(settings) as app, daemon(settings):

        def step(what: str) -> Progress:
            if what == "comparing":
                tell(app, "ana", 1)
                wait_for(lambda: "StoreSealed" in refused.read_text(), "a claim came back")
                assert "ana" not in set(open_store(settings).users())
            return quietly

        done = restoring.restore(settings, client, folder, step, replaces=False, takes_inbox=False)
        assert done.is_whole
        wait_for(lambda: told(app, "ana") == Counter([1]), "the context is stored")
        assert contents(open_store(settings), Bucket("ben")) != []


@pytest.mark.files
def test_into_a_new_folder(settings: Settings, client: redis.Redis, cli: Cli, folder: Path, tmp_path: Path) -> None:
    """The store is another one then: the inbox is given to it when somebody says that the first one is lost."""
    store = open_store(settings)
    fill(store)
    library.bind_store(client, store)
    back_up(settings, client, folder)
    where = str(tmp_path / "new")
    other = cli("restore", str(folder), MEMD_DATA_DIR=where)
    assert (other.returncode, "E_OTHER_STORE" in other.stderr) == (78, True)
    assert cli("restore", str(folder), "--take-inbox", MEMD_DATA_DIR=where).returncode == 0
    moved = make_settings(Path(where), inbox_url(settings))
    assert restorable(open_store(moved)) == restorable(store)
    assert library.store_of(client) == open_store(moved).read_id()
    with pytest.raises(OtherStore):
        Forgetting(settings, client, store).run(Wish("ana"))


def test_what_is_refused(settings: Settings, client: redis.Redis, cli: Cli, folder: Path, tmp_path: Path) -> None:
    """A store with memories, a folder with other files, of another store, without a backup, a damaged one."""
    store = open_store(settings)
    library.bind_store(client, store)
    _learn(store, "ben")
    back_up(settings, client, folder)
    full = cli("restore", str(folder))
    assert (full.returncode, "E_STORE_NOT_EMPTY" in full.stderr) == (78, True)
    other = make_settings(tmp_path, inbox_url(settings), **OF_FILES)
    library.give_to_store(client, open_store(other).make_id())
    with pytest.raises(ConfigError, match="E_BACKUP_OTHER"):
        back_up(other, client, folder)
    library.give_to_store(client, store.make_id())
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").touch()
    assert cli("backup", str(tmp_path / "home")).returncode == 78
    assert "E_BACKUP_NONE" in cli("restore", str(tmp_path / "none"), "--replace", "--yes").stderr
    assert cli("restore", str(folder), "--only-inbox", "--replace").returncode == 2
    assert "pass --yes" in cli("restore", str(folder), "--replace").stderr
    with (folder / "inbox.jsonl").open("ab") as file:
        file.write(b"{}")
    assert "E_BACKUP_DAMAGED" in cli("restore", str(folder), "--replace", "--yes").stderr
    assert (contents(store, Bucket("ben")) != [], seal_of(store)) == (True, None)


def test_an_earlier_backup_is_brought_up_to_date(settings: Settings, client: redis.Redis, folder: Path) -> None:
    """Only what has changed is written; who was forgotten leaves it."""
    store = open_store(settings)
    library.bind_store(client, store)
    _learn(store, "ana", "ben", "mallory")
    back_up(settings, client, folder)
    written = {user: (folder / "store" / "users" / user / "memory.json").stat().st_ino for user in ("ana", "ben")}
    learned(store, Bucket("ben"), "n2")
    Forgetting(settings, client, store).run(Wish("mallory"))
    back_up(settings, client, folder)
    now = {user: (folder / "store" / "users" / user / "memory.json").stat().st_ino for user in ("ana", "ben")}
    assert (now["ana"] == written["ana"], now["ben"] == written["ben"]) == (True, False)
    assert sorted(file.name for file in (folder / "store" / "users").iterdir()) == ["ana", "ben"]
    assert oct((folder / "backup.json").stat().st_mode & 0o777) == "0o600"
    assert oct((folder / "inbox.jsonl").stat().st_mode & 0o777) == "0o600"


@SLOW
def test_the_embedded_server_is_started_for_it(data_dir: Path, folder: Path, tmp_path: Path) -> None:
    """Where memd does not run, both commands run its server meanwhile."""
    settings = make_settings(data_dir, None)
    _learn(open_store(settings), "ana")
    env = environment(settings)

    def run(*words: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "memd", *words], env=env | more, capture_output=True, text=True, check=False
        )

    made = run("backup", str(folder))
    assert made.returncode == 0, made.stderr
    if STORE == "postgres":
        lose_store(settings)
    done = run("restore", str(folder), MEMD_DATA_DIR=str(tmp_path / "n"))
    assert done.returncode == 0, done.stderr
    assert "1 memory" in done.stdout
