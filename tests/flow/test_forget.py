"""Forgetting (F1): nothing pushed before comes back, whenever it happens; and no trace is left but the tombstone."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
import redis
from support import Cli, daemon, ended, execute, make_settings, part, wait_for
from support.inbox_view import look

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket, Key, user_hash
from memd.disk import lock
from memd.disk.lock import locked
from memd.errors import DocumentDamaged, StoreUnavailable
from memd.forget import Forgetting
from memd.inbox import forgetting, library, verbs
from memd.inbox.connection import connect, send
from memd.inbox.raw_door import RawDoor
from memd.inbox.verbs import RAW, P
from memd.memory.store.json_store import open_store
from memd.memory.store.paths import bucket_lock, folder
from memd.memory.store.protocol import Cut, Wish
from memd.memory.store.tombstone import TombstoneFiles
from memd.ops import server
from memd.tasks import TaskGraph, TodoList
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

MEMORY_DISK = Path("/dev/shm")  # noqa: S108  (a second file system, in a folder of our own)
MANY = 100
USERS = [f"secret-{number}" for number in range(MANY)]
TEXT = "I live in Wolkenkuckucksheim."
TURNS = [{"role": "user", "content": TEXT, "id": "m1"}, {"role": "assistant", "content": "Far away.", "id": "m2"}]


def push_all(app: Memd, *, now: bool = False) -> None:
    for user in USERS:
        app.push(TURNS, thread_id="thread-1", user_id=user, now=now)


def push_again(app: Memd, users: list[str]) -> set[str | None]:
    return {app.push(TURNS, thread_id="thread-1", user_id=user, now=True).reason for user in users}


def remembered(app: Memd) -> list[str]:
    return [user for user in USERS if app.document(user)["facts"] or app.document(user)["ledger"]]


def nothing_comes_back(app: Memd, users: list[str] = USERS) -> None:
    """Pushed again, all is skipped; and nothing is on its way."""
    assert push_again(app, users) == {"forgotten"}
    assert app.flush(wait=True).counts == {}
    assert remembered(app) == []


def test_forgotten_while_pending(memd: Memd, settings: Settings) -> None:
    """What waits for its quiet time is gone, and pushed again it is skipped."""
    push_all(memd)
    assert [memd.forget(user).pushes for user in USERS] == [1] * MANY
    assert (memd.status().pending, memd.status().by_reason) == (0, {})
    with daemon(settings):
        nothing_comes_back(memd)


def test_forgotten_in_the_model_call(asking: Callable[..., Settings], model: ModelServer) -> None:
    """The claims are taken away; what the model says of them is not stored."""
    settings = asking(drain__concurrency=MANY)
    model.hold()
    with Memd(settings) as app, daemon(settings):
        push_all(app, now=True)
        wait_for(lambda: model.concurrent == MANY, "all are in the model call")
        assert [app.forget(user).pushes for user in USERS] == [1] * MANY
        model.go_on()
        wait_for(lambda: model.concurrent == 0, "the model has answered")
        nothing_comes_back(app)
        assert app.status().claimed == 0


@pytest.mark.files
def test_forgotten_in_the_commit(asking: Callable[..., Settings]) -> None:
    """A commit that had asked before the tombstone, and writes after it: what it wrote is erased with the rest."""
    settings = asking(store__class="support.killing_store.WaitingStore")
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with Memd(asking()) as app, part("scheduler", settings), part("worker", settings, paths):
        for user in USERS[:20]:
            app.push(TURNS, thread_id="thread-1", user_id=user, now=True)
            asked = settings.data_dir / "asked" / Bucket(user).hash
            wait_for(asked.exists, "the commit has asked whether the claim is its own")
            app.forget(user)
        nothing_comes_back(app, USERS[:20])


@pytest.mark.files
def test_forgotten_between_the_question_and_a_first_commit(
    asking: Callable[..., Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The forgetting waits for a commit that has asked already, so it erases the first document of a new agent too."""
    settings = asking(store__class="support.killing_store.PausingStore")
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    asked, tombstones = settings.data_dir / "asked", TombstoneFiles(settings.data_dir)
    with Memd(asking()) as app, part("scheduler", settings), part("worker", settings, paths):
        for user in USERS[:20]:
            app.push(TURNS, thread_id="thread-1", user_id=user, agent_name="chef", now=True)
            wait_for((asked / user).exists, "the commit has asked whether anything was forgotten")
            with monkeypatch.context() as patched, suppress(StoreUnavailable):
                patched.setattr(lock, "WAIT_S", 0.05)
                app.forget(user)
            held_up = tombstones.unfinished() != []
            (asked / f"{user}.go").touch()
            wait_for((asked / f"{user}.done").exists, "the commit has ended")
            if held_up:
                app.forget(user)
        left = [user for user in USERS[:20] if app.document(user, agent_name="chef")["facts"]]
    assert left == []


@pytest.mark.files
def test_forgotten_after_it_was_stored(memd: Memd, settings: Settings) -> None:
    """Documents, old versions and outcomes go; the messages are known by a salted hash."""
    with daemon(settings):
        push_all(memd, now=True)
        assert ended(memd) == {"stored": MANY}
        found = [memd.forget(user) for user in USERS]
        assert {(one.documents, one.messages, one.complete) for one in found} == {(1, 2, True)}
        nothing_comes_back(memd)
    assert list((settings.data_dir / "users").iterdir()) == []


def test_forgotten_while_the_server_is_down(data_dir: Path) -> None:
    """The documents go at once; the inbox when the server is back, before anything of these users is worked on."""
    settings = make_settings(data_dir, None, server__appendfsync="always")
    process = server.start(settings)
    with Memd(settings) as app, connect(settings) as client:
        library.install(client, settings)
        with daemon(settings):
            app.push(TURNS, thread_id="thread-0", user_id=USERS[0], now=True)
            app.flush(wait=True)
        push_all(app, now=True)
        process.kill()
        process.wait()
        first = [app.forget(user) for user in USERS[:3]]
        assert [(one.documents, one.complete) for one in first] == [(1, False), (0, False), (0, False)]
        assert app.document(USERS[0])["facts"] == []
        again = server.start(settings)
        try:
            with daemon(settings):
                assert ended(app)["stored"] == 1 + MANY - 3
            assert remembered(app) == USERS[3:]
            assert open_store(settings).tombstones.unfinished() == []
            with daemon(settings):
                assert app.push(TURNS, thread_id="thread-1", user_id=USERS[1]).reason == "forgotten"
        finally:
            server.stop(again)


def test_what_is_accepted_after_the_server_is_back_survives(data_dir: Path) -> None:
    """Pushed between the server's return and the mending, by both doors: stored, with a receipt; the old stays gone."""
    settings = make_settings(data_dir, None, server__appendfsync="always")
    process = server.start(settings)
    with Memd(settings) as app, connect(settings) as client:
        library.install(client, settings)
        app.push(TURNS, thread_id="t", user_id="ana", now=True)
        client.rpush(RAW, raw_push("u", "m3", "I live in Wolkenkuckucksheim, too."))
        process.kill()
        process.wait()
        assert not app.forget("ana").complete
        process = server.start(settings)
        try:
            door = RawDoor(settings, client)
            door.take_in()
            client.rpush(RAW, raw_push("v", "m4", "I like tea."))
            door.take_in()
            new = {"role": "user", "content": "I like rowing.", "id": "m5"}
            receipt = app.push([*TURNS, new], thread_id="t", user_id="ana", now=True)
            with daemon(settings):
                wait_for(lambda: open_store(settings).tombstones.unfinished() == [], "the wish is fulfilled")
                app.flush(wait=True)
                assert app.receipt(receipt.id or "").state == "stored"
                assert app.push([new], thread_id="t", user_id="ana").reason is None
                for thread, gone in (("t", TURNS[0]), ("u", {**TURNS[0], "id": "m3"})):
                    assert app.push([gone], thread_id=thread, user_id="ana").reason == "forgotten"
            said = {fact["evidence"][0]["quote"] for fact in app.document("ana")["facts"]}
            assert said == {"I like tea.", "I like rowing."}
        finally:
            server.stop(process)


def raw_push(thread: str, message: str, text: str) -> bytes:
    turns = [{"role": "user", "content": text, "id": message}]
    return orjson.dumps({"thread_id": thread, "user_id": "ana", "now": True, "messages": turns})


def test_a_wish_that_was_fulfilled_meanwhile_erases_nothing(
    memd: Memd, client: redis.Redis, settings: Settings
) -> None:
    """A second worker that read the open wish before the first one closed it leaves what is new."""
    tombstones = open_store(settings).tombstones
    tombstones.begin(Wish("ana", None, Cut(1, 0)), ())
    [stale] = tombstones.unfinished()
    with daemon(settings):
        memd.push(TURNS, thread_id="t", user_id="ana", now=True)
        assert ended(memd) == {"stored": 1}
    assert tombstones.unfinished() == []
    TaskGraph(settings.data_dir, "ana").create("something new")
    Forgetting(settings, client, open_store(settings)).finish(stale)
    assert len(memd.document("ana")["facts"]) == 1
    assert len(TaskGraph(settings.data_dir, "ana").list()) == 1


def test_what_is_new_is_remembered(memd: Memd, settings: Settings) -> None:
    """A forgotten user is no banned one: what they say next is remembered, what they said before is not."""
    with daemon(settings):
        memd.push(TURNS, thread_id="t", user_id="ana", now=True)
        memd.flush(wait=True)
        memd.forget("ana")
        new = {"role": "user", "content": "I like tea.", "id": "m3"}
        assert memd.push([*TURNS, new], thread_id="t", user_id="ana", now=True).status == "queued"
        assert ended(memd) == {"stored": 2}
    assert [fact["evidence"][0]["quote"] for fact in memd.document("ana")["facts"]] == ["I like tea."]
    assert "Wolken" not in str(memd.document("ana"))


def test_one_agent_forgets_and_the_others_do_not(memd: Memd, settings: Settings) -> None:
    """With an agent named, only its memory goes."""
    with daemon(settings):
        for agent in ("", "chef", "coach"):
            memd.push(TURNS, thread_id="t", user_id="ana", agent_name=agent, now=True)
        memd.flush(wait=True)
        assert memd.forget("ana", agent_name="chef").documents == 1
        for agent, count in (("", 1), ("chef", 0), ("coach", 1)):
            assert len(memd.document("ana", agent_name=agent)["facts"]) == count
        assert memd.push(TURNS, thread_id="t", user_id="ana", agent_name="chef").reason == "forgotten"
        assert memd.push(TURNS, thread_id="t", user_id="ana", agent_name="coach").reason is None


@pytest.mark.parametrize("shared", [False, True], ids=["a folder each", "one memory for all"])
@pytest.mark.usefixtures("client")
def test_todo_lists_and_tasks_go_with_their_owner(configured: Callable[..., Settings], shared: bool) -> None:
    """Those of the agent that is named, or of all; other users keep theirs. A shared store keeps nobody's."""
    owners = [("ana", ""), ("ana", "chef"), ("eve", ""), ("ana2", "chef")]

    def left() -> list[tuple[str, str]]:
        return [owner for owner in owners if TaskGraph(settings.data_dir, *owner).list()]

    settings = configured(store__shared=shared)
    for owner in owners:
        TaskGraph(settings.data_dir, *owner).create("Book the hall")
        TodoList(settings.data_dir, *owner).write([{"text": "book"}])
    with Memd(settings) as app:
        assert app.forget("ana", agent_name="chef").files == 2
        assert left() == [("ana", ""), ("eve", ""), ("ana2", "chef")]
        assert app.forget("ana").files == 2
    assert left() == [("eve", ""), ("ana2", "chef")]
    assert {file.name for file in (settings.data_dir / "tasks").iterdir()} == {"eve", "ana2"}


def test_a_message_without_an_id_does_not_come_back(memd: Memd, settings: Settings) -> None:
    """Recognised as the ledger would: in its place, and as a single turn that says the same."""
    turns = [{"role": turn["role"], "content": turn["content"]} for turn in [*TURNS, TURNS[0]]]
    memd.push(turns, thread_id="t", user_id="ana")
    memd.forget("ana")
    assert memd.push(turns, thread_id="t", user_id="ana").reason == "forgotten"
    assert memd.push(turns[2:], thread_id="t", user_id="ana").reason == "forgotten"


def test_nobody_else_loses_anything(memd: Memd, settings: Settings) -> None:
    """Keys, documents and dead of other users stay as they were."""
    with daemon(settings):
        memd.push(TURNS, thread_id="t", user_id="bob", now=True)
        memd.flush(wait=True)
    memd.push(TURNS, thread_id="t2", user_id="bob")
    memd.push(TURNS, thread_id="t", user_id="ana")
    before = memd.document("bob")
    memd.forget("ana")
    assert memd.document("bob") == before
    assert memd.status().pending == 1


def test_forgetting_twice_is_forgetting_once(memd: Memd, settings: Settings) -> None:
    """Idempotent, also for somebody who was never known."""
    memd.push(TURNS, thread_id="t", user_id="ana")
    assert memd.forget("ana").pushes == 1
    again = memd.forget("ana")
    assert (again.pushes, again.documents, again.messages, again.complete) == (0, 0, 2, True)
    assert memd.forget("nobody").messages == 0


def test_a_dry_run_removes_nothing(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """It counts what would go, and nothing has changed afterwards."""
    with daemon(settings):
        memd.push(TURNS, thread_id="t", user_id="ana", now=True)
        memd.flush(wait=True)
    memd.push(TURNS, thread_id="t2", user_id="ana")
    found = memd.forget("ana", dry_run=True)
    assert (found.pushes, found.documents, found.messages) == (1, 1, 4)
    assert memd.status().pending == 1
    assert memd.document("ana")["facts"]
    assert not (settings.data_dir / "forgotten").exists()


@pytest.mark.files
def test_no_trace_but_the_tombstone(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Memory, old versions, damaged files, pending, dead, raw, receipts: nothing in files or keys names or quotes."""
    with daemon(settings):
        for number in range(3):
            turns = [{"role": "user", "content": f"I live in Wolkenkuckucksheim {number}.", "id": f"m{number}"}]
            memd.push(turns, thread_id="thread-x", user_id="secret", agent_name="" if number else "chef", now=True)
            memd.flush(wait=True)
        bad = {"thread_id": "thread-x", "user_id": "secret", "messages": [], "note": "Wolkenkuckucksheim"}
        client.rpush("memd:in", orjson.dumps(bad))
        client.rpush("memd:in", b"not json, but secret and Wolkenkuckucksheim")
        wait_for(lambda: len(memd.dead()) == 2, "the raw pushes died")
    (folder(settings.data_dir, Bucket("secret"), shared=False) / "memory.json.corrupt-1").write_text("Wolken secret")
    memd.push(TURNS, thread_id="thread-x", user_id="secret", now=True)
    [claim] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    send(client, verbs.bury(claim.id, "E_TEST", "E_TEST: for a test"))
    memd.push([{**TURNS[0], "id": "m9"}], thread_id="thread-x", user_id="secret")
    TaskGraph(settings.data_dir, "secret", "chef").create("Cook in Wolkenkuckucksheim")
    TodoList(settings.data_dir, "secret", name="secret").write([{"text": "Move to Wolkenkuckucksheim"}])
    assert memd.forget("secret", dry_run=True).files == 8
    found = memd.forget("secret")
    assert (found.pushes, found.dead, found.documents, found.files) == (1, 3, 2, 8), "two with what was said, two tasks"
    assert traces_in_files(settings.data_dir) == []
    assert traces_in_keys(client) == []
    assert memd.document("secret")["facts"] == []


def test_the_embedded_server_writes_its_file_anew(data_dir: Path) -> None:
    """The append-only file of a server of our own holds no trace either, and is not named as out of reach."""
    settings = make_settings(data_dir, None)
    process = server.start(settings)
    try:
        with Memd(settings) as app, connect(settings) as client:
            library.install(client, settings)
            app.push(TURNS, thread_id="thread-x", user_id="secret")
            wait_for(lambda: traces_in_files(data_dir), "the text is in the append-only file")
            found = app.forget("secret")
            assert not any("append-only" in place for place in found.unreachable)
            wait_for(lambda: traces_in_files(data_dir) == [], "the old file is gone")
    finally:
        server.stop(process)


def traces_in_files(data_dir: Path) -> list[str]:
    """Files that name the user, the thread or the text; names of files and logs have no plain hash of them either."""
    words = (b"secret", b"Wolken", b"thread-x")
    key = Key("thread-x", "secret")
    hashes = (user_hash("secret"), *(name.hash for name in (key, key.bucket, Bucket("secret", "chef"))))
    found = []
    for file in data_dir.rglob("*"):
        try:
            data = file.read_bytes() if file.is_file() else b""
        except FileNotFoundError:  # replaced by the server since it was listed
            continue
        plain = any(name in file.name or (file.suffix == ".log" and name.encode() in data) for name in hashes)
        if plain or any(word in data + file.name.encode() for word in words):
            found.append(str(file))
    return found


def traces_in_keys(client: redis.Redis) -> list[str]:
    """Keys that hold the user's hash beside the tombstone's mirror, or any of the words."""
    owner = user_hash("secret")
    found = []
    for key in client.scan_iter(count=1000):
        if key == f"{P}:forgotten:{owner}".encode():
            continue
        value = execute(client, "DUMP", key)
        if any(word in key + value for word in (b"secret", b"Wolken", b"thread-x", owner.encode())):
            found.append(key.decode())
    return found


@pytest.mark.files
def test_a_tombstone_that_cannot_be_read_lets_nothing_through(
    memd: Memd, client: redis.Redis, settings: Settings
) -> None:
    """A damaged tombstone stops its user's contexts at no attempt, until somebody mends it."""
    memd.push(TURNS, thread_id="t", user_id="ana")
    memd.forget("ana")
    [file] = (settings.data_dir / "forgotten").glob("*.json")
    good = file.read_bytes()
    file.write_bytes(b"{")
    with pytest.raises(DocumentDamaged):
        TombstoneFiles(settings.data_dir).find("ana")
    execute(client, "DEL", f"{P}:forgotten:{user_hash('ana')}")
    with daemon(settings):
        memd.push(TURNS, thread_id="t", user_id="ana", now=True)
        wait_for(lambda: client.hget(f"{P}:stats", "released:paused"), "it was held back")
        file.write_bytes(good)
        assert ended(memd) == {"skipped": 1}
    assert memd.document("ana")["facts"] == []


def test_a_server_that_lost_its_tombstones_gets_them_again(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """The files are the truth; a worker that starts mirrors them, and without the mirror the drain skips."""
    memd.push(TURNS, thread_id="t", user_id="ana")
    memd.forget("ana")
    client.flushall()
    library.install(client, settings)
    assert memd.push(TURNS, thread_id="t", user_id="ana", now=True).status == "queued"
    with daemon(settings):
        assert ended(memd) == {"skipped": 1}
        wait_for(lambda: client.exists(f"{P}:forgotten:{user_hash('ana')}"), "the tombstone is mirrored")


def test_a_forgetting_cut_short_is_finished_by_the_next_worker(
    memd: Memd, client: redis.Redis, settings: Settings
) -> None:
    """Killed after the tombstone was written: the worker does the rest before it works on anything of that user."""
    memd.push(TURNS, thread_id="t", user_id="ana", now=True)
    tombstones = open_store(settings).tombstones
    tombstones.begin(Wish("ana"), ())
    with daemon(settings):
        wait_for(lambda: tombstones.unfinished() == [], "the wish is fulfilled")
        assert memd.flush(wait=True).counts == {}
        assert memd.push(TURNS, thread_id="t", user_id="ana").reason == "forgotten"
    assert memd.document("ana")["facts"] == []


@pytest.mark.files
def test_what_is_accepted_after_an_interrupted_forgetting_survives_it(
    memd: Memd, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The inbox was emptied, the documents could not be erased: the mending takes nothing that was pushed since."""
    users, tombstones = USERS[:20], open_store(settings).tombstones
    with daemon(settings):
        push_all(memd, now=True)
        assert ended(memd) == {"stored": MANY}
    for user in users:
        with locked(bucket_lock(settings.data_dir, Bucket(user))), monkeypatch.context() as patched:
            patched.setattr(lock, "WAIT_S", 0.05)
            with pytest.raises(StoreUnavailable):
                memd.forget(user)
    assert {wish.user_id for wish in tombstones.unfinished()} == set(users)
    new = {"role": "user", "content": "I like tea.", "id": "m3"}
    receipts = [memd.push([new], thread_id="thread-1", user_id=user, now=True).id for user in users]
    assert push_again(memd, users) == {"forgotten"}
    with daemon(settings):
        memd.flush(wait=True)
        assert tombstones.unfinished() == []
    assert {memd.receipt(receipt or "").state for receipt in receipts} == {"stored"}
    for user in users:
        assert [fact["evidence"][0]["quote"] for fact in memd.document(user)["facts"]] == ["I like tea."]


@pytest.mark.parametrize("place", ["pending", "claimed", "dead"])
def test_what_is_sent_again_before_the_forgetting_has_ended_goes_too(
    memd: Memd, client: redis.Redis, settings: Settings, place: str
) -> None:
    """An app sends its window, old messages and a new one: wherever that lies when the wish is fulfilled, one stays."""
    with daemon(settings):
        memd.push(TURNS, thread_id="t", user_id="ana", now=True)
        assert ended(memd) == {"stored": 1}
    open_store(settings).tombstones.begin(Wish("ana", cut=send(client, forgetting.cut())), ())
    new = {"role": "user", "content": "I like tea.", "id": "m3"}
    again = memd.push(TURNS, thread_id="t", user_id="ana", now=True)
    window = memd.push([*TURNS, new], thread_id="t", user_id="ana", now=True)
    only_old = memd.push(TURNS, thread_id="t", user_id="ana", agent_name="other", now=True)
    claims = [] if place == "pending" else send(client, verbs.claim(settings, 2, 0, "w:1:a", "model")).taken
    for claim in claims if place == "dead" else ():
        send(client, verbs.bury(claim.id, "E_TEST", "E_TEST: for a test"))
    Forgetting(settings, client, open_store(settings)).mend()
    assert TEXT not in str(look(client).keys)
    assert "I like tea." in str(look(client).keys)
    assert memd.receipt(only_old.id or "").state != "stored"
    with daemon(settings):
        memd.retry(memd.dead())
        memd.flush(wait=True)
    assert [fact["evidence"][0]["quote"] for fact in memd.document("ana")["facts"]] == ["I like tea."]
    assert memd.receipt(window.id or "").state == "stored"
    assert memd.receipt(again.id or "").reason == "forgotten"
    assert memd.receipt(only_old.id or "").reason == ("E_TEST" if place == "dead" else "forgotten")


@pytest.mark.files
def test_a_second_wish_takes_what_was_accepted_after_the_first(
    memd: Memd, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forgetting that is asked for again empties the inbox again, whatever the first one left to do."""
    memd.push(TURNS, thread_id="t", user_id="ana")
    with locked(bucket_lock(settings.data_dir, Bucket("ana"))), monkeypatch.context() as patched:
        patched.setattr(lock, "WAIT_S", 0.05)
        with pytest.raises(StoreUnavailable):
            memd.forget("ana")
    later = {**TURNS[0], "id": "m5"}
    assert memd.push([later], thread_id="t", user_id="ana").status == "queued"
    assert memd.forget("ana").pushes == 1
    assert memd.push([later], thread_id="t", user_id="ana").reason == "forgotten"


@pytest.mark.files
def test_users_on_a_disk_of_their_own_are_forgotten(memd: Memd, settings: Settings) -> None:
    """Nothing can be renamed from there into the data folder, so what is erased is put aside on the same disk."""
    if not MEMORY_DISK.is_dir() or MEMORY_DISK.stat().st_dev == settings.data_dir.stat().st_dev:
        pytest.skip("this machine has no second file system to write to")
    with tempfile.TemporaryDirectory(dir=MEMORY_DISK) as disk:
        (settings.data_dir / "users").symlink_to(disk)
        with daemon(settings):
            for agent in ("", "chef"):
                memd.push(TURNS, thread_id="t", user_id="ana", agent_name=agent, now=True)
            assert ended(memd) == {"stored": 2}
        assert memd.forget("ana", agent_name="chef").documents == 1
        assert memd.forget("ana").documents == 1
        assert (TombstoneFiles(settings.data_dir).unfinished(), list(Path(disk).iterdir())) == ([], [])


def test_the_command_line(memd: Memd, cli: Cli, settings: Settings) -> None:
    """--dry-run counts; the command itself removes, says what is out of reach, and show knows nothing."""
    memd.push(TURNS, thread_id="t", user_id="ana")
    dry = cli("forget", "ana", "--dry-run")
    assert "would be removed" in dry.stdout
    assert "1  pending push\n" in dry.stdout
    asked = cli("forget", "ana")
    assert (asked.returncode, "--yes" in asked.stderr) == (2, True)
    done = json.loads(cli("forget", "ana", "--yes", "--json").stdout)
    assert (done["pushes"], done["messages"], done["complete"]) == (1, 2, True)
    assert any("backups" in place for place in done["unreachable"])
    assert "0 facts" in cli("show", "ana").stdout
    assert cli("forget", "ana", "--yes").returncode == 0
    down = cli("forget", "ana", "--yes", MEMD_REDIS_URL="unix:///nowhere/s")
    assert (down.returncode, "a worker does the rest" in down.stderr) == (75, True)
    assert "unix:///nowhere/s is out of reach" in down.stderr
    assert cli("forget", "a\x07", "--yes").returncode == 65


@pytest.mark.parametrize("dry", [True, False])
@pytest.mark.parametrize("agent", [(), ("--agent", "chef")])
def test_a_user_that_nobody_knows(cli: Cli, settings: Settings, dry: bool, agent: tuple[str, ...]) -> None:
    """It is said, with the places searched; the exit code is 1, and neither a tombstone nor a folder is left."""
    way = ("--dry-run",) if dry else ("--yes",)
    done = cli("forget", "nobody", *agent, *way)
    assert (done.returncode, done.stdout) == (1, "")
    assert str(settings.data_dir) in done.stderr
    assert "nobody" not in done.stderr
    assert json.loads(cli("forget", "nobody", *agent, *way, "--json").stdout)["known"] is False
    assert open_store(settings).tombstones.owners() == []
    assert not (settings.data_dir / "users").exists()


@pytest.mark.parametrize("trace", ["raw", "broken raw", "pending", "document", "task", "spent", "tombstone"])
def test_each_trace_makes_a_user_known(
    memd: Memd, cli: Cli, client: redis.Redis, settings: Settings, trace: str
) -> None:
    """A raw push not taken in yet, one that dies, a key, a document, a task, a day's cost, an earlier forgetting."""
    push = {"thread_id": "t", "user_id": "ana", "messages": TURNS}
    if trace == "raw":
        client.rpush("memd:in", json.dumps(push))
    elif trace == "broken raw":
        client.rpush("memd:in", json.dumps({**push, "messages": []}))
    elif trace == "pending":
        memd.push(TURNS, thread_id="t", user_id="ana")
    elif trace == "document":
        memd.add_fact("ana", "Lives in Porto.")
    elif trace == "task":
        TaskGraph(settings.data_dir, "ana").create("Book the hall")
    elif trace == "spent":
        client.hset(f"{P}:spent:{client.time()[0] // 86_400}", user_hash("ana"), 5)
    else:
        open_store(settings).tombstones.begin(Wish("ana"), ())
    assert cli("forget", "ana", "--dry-run").returncode == 0
    assert cli("forget", "ana", "--yes").returncode == 0
    assert not client.keys(f"{P}:spent:*")
    assert cli("forget", "ana", "--yes").returncode == 0, "a repeated forgetting is no error"


def test_a_frozen_worker_cannot_bring_it_back(asking: Callable[..., Settings], model: ModelServer) -> None:
    """A worker that sleeps through the forgetting, lease and all, writes nothing when it wakes."""
    settings = asking(drain__lease_s=1)
    model.hold()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings) as worker:
        app.push(TURNS, thread_id="t", user_id="ana", now=True)
        wait_for(lambda: model.calls == 1, "the model is asked")
        [child] = [int(pid) for pid in Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text().split()]
        stop = [worker.pid, child]
        for pid in stop:
            os.kill(pid, signal.SIGSTOP)
        model.go_on()
        wait_for(lambda: model.concurrent == 0, "the model has answered")
        app.forget("ana")
        for pid in stop:
            os.kill(pid, signal.SIGCONT)
        assert app.push([{**TURNS[0], "id": "m7"}], thread_id="t", user_id="ana", now=True).status == "queued"
        assert ended(app) == {"stored": 1}
        [fact] = app.document("ana")["facts"]
    assert fact["evidence"][0]["message"] == "m7"
