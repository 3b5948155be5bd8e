"""What the file system and its neighbours may do to documents: kill, refuse, fill up, damage; never half a document."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
import redis
from support import ended, execute, part, strace, wait_for
from support.fault_support import events, family, tell, told
from support.http_support import Site, install, serving
from support.stores import ALICE, DAMAGE, contents, names, options, ours, save

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.errors import StoreUnavailable
from memd.inbox import library, verbs
from memd.memory.hand import edits
from memd.memory.store.json_store import JsonStore
from memd.ops import server
from memd.testing import ModelServer

Configured = Callable[..., Settings]

REFUSED = 3
"""What a child ends with whose commit was refused in the documented way."""

WHOLE = {"memory.json", "memory.prev.json"}
SPACE = {"openat", "write", "fsync", "mkdir", "linkat", "rename"}
FAILURES = {"EIO": None, "ENOSPC": SPACE, "EDQUOT": SPACE, "EMFILE": {"openat"}}
"""Errors, and the calls that may end with them; None: any."""


@pytest.fixture(scope="module")
def traceable() -> None:
    """Tests that need strace are skipped, and say why, where it cannot be used."""
    if reason := strace.why_not():
        pytest.skip(reason)


@pytest.fixture(params=[pytest.param(0, marks=pytest.mark.long), 2], ids=["the-first-version", "a-later-version"])
def old(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    """What the document says before: nothing, as there is none, or two facts; its folder is `template`."""
    facts = [f"old {number}" for number in range(request.param)]
    (tmp_path / "template").mkdir()
    for fact in facts:
        save(JsonStore(tmp_path / "template", options()), fact)
    return facts


def copied(tmp_path: Path, name: str) -> JsonStore:
    """A store of its own with the document of the template."""
    shutil.copytree(tmp_path / "template", tmp_path / name)
    return JsonStore(tmp_path / name, options())


def attempt(store: JsonStore) -> None:
    """Add a fact, in a child; a documented refusal is its exit code."""
    try:
        save(store, "new")
    except StoreUnavailable:
        os._exit(REFUSED)


def left(folder: Path) -> set[str]:
    """The names beside Alice's document."""
    place = folder / "users" / "alice@example.com"
    return names(place) if place.exists() else set()


@pytest.mark.usefixtures("traceable")
def test_a_commit_killed_at_any_system_call_leaves_a_whole_document(tmp_path: Path, old: list[str]) -> None:
    """W3: killed at each system call of a commit: the old or the new document, and the next commit leaves no trace."""
    calls = strace.calls(partial(attempt, copied(tmp_path, "traced")))
    assert {name for name, _ in calls} >= {"openat", "write", "fsync", "rename", "flock"}
    found = []
    for name, when in calls:
        store = copied(tmp_path, f"{name}-{when}")
        assert strace.inject(partial(attempt, store), f"{name}:signal=SIGKILL:when={when}").killed
        now = contents(store)
        assert now in (old, [*old, "new"]), (name, when)
        save(store, "next")
        assert contents(store) == [*now, "next"]
        assert left(tmp_path / f"{name}-{when}") <= WHOLE
        found.append(now != old)
    assert found == sorted(found), "once the new document is there, it stays"
    assert set(found) == {True, False}


@pytest.mark.usefixtures("traceable")
@pytest.mark.parametrize("code", FAILURES)
def test_a_commit_in_which_any_system_call_fails_is_whole_or_refused(tmp_path: Path, old: list[str], code: str) -> None:
    """D1: any one call fails: the commit is done, or refused with the old document intact and the temp file gone."""
    calls = strace.calls(partial(attempt, copied(tmp_path, "traced")))
    refused = set()
    for name, when in calls:
        if (among := FAILURES[code]) and name not in among:
            continue
        store = copied(tmp_path, f"{name}-{when}")
        ended = strace.inject(partial(attempt, store), f"{name}:error={code}:when={when}")
        assert (ended.code, contents(store)) in [(0, [*old, "new"]), (REFUSED, old)], (name, when)
        assert left(tmp_path / f"{name}-{when}") <= WHOLE, (name, when)
        refused |= {name} if ended.code == REFUSED else set()
    assert refused >= (FAILURES[code] or SPACE) - {"linkat", "mkdir"}


@pytest.mark.long
@pytest.mark.usefixtures("traceable")
@pytest.mark.parametrize("old", [2], ids=["a-later-version"], indirect=True)
def test_a_mending_killed_at_any_system_call_loses_neither_version(tmp_path: Path, old: list[str]) -> None:
    """D2: killed while a damaged file is set aside: the last good version comes back, the damage is kept."""
    (tmp_path / "template" / "users" / "alice@example.com" / "memory.json").write_text("{")
    contents(copied(tmp_path, "warm"))  # its log line has loaded the logger
    for name, when in strace.calls(partial(contents, copied(tmp_path, "traced"))):
        store = copied(tmp_path, f"{name}-{when}")
        assert strace.inject(partial(contents, store), f"{name}:signal=SIGKILL:when={when}").killed
        assert contents(store) == old[:1], (name, when)
        save(store, "next")
        assert left(tmp_path / f"{name}-{when}") == WHOLE | {"memory.json.corrupt"}, (name, when)


# --- a removal, which replaces every copy --------------------------------------------------------------------------

GONE, KEPT = "Likes the lighthouse", ["Works at night", "Has a cat"]


@pytest.fixture
def told_before(tmp_path: Path) -> None:
    """Two facts; the removed one is also in the previous version and in a damaged file that was set aside."""
    store = JsonStore(tmp_path / "template", options())
    for fact in (GONE, "Works at night", "Has a cat"):
        save(store, fact)
    (tmp_path / "template" / "users" / ALICE.user_id / "memory.json.corrupt-1").write_text(GONE)


def remove(store: JsonStore) -> None:
    """Remove the fact, durably."""
    loaded = store.load(ALICE)
    fact_id = next(fact["id"] for fact in loaded.document["facts"] if fact["content"] == GONE)
    store.commit(ALICE, loaded, edits.remove(loaded.document, fact_id, datetime.now(UTC)).document, ours)


def attempt_removal(store: JsonStore) -> None:
    """Remove the fact, in a child; a documented refusal is its exit code."""
    try:
        remove(store)
    except StoreUnavailable:
        os._exit(REFUSED)


def holding_it(folder: Path) -> list[str]:
    """The files that still have the removed fact."""
    return [path.name for path in folder.rglob("*") if path.is_file() and GONE in path.read_text(errors="replace")]


def assert_a_removal_holds(store: JsonStore, folder: Path) -> None:
    """Done, or done now: no copy is left, also when the document is damaged later."""
    if GONE in contents(store):
        remove(store)
    assert holding_it(folder) == []
    DAMAGE["truncated"](folder / "users" / ALICE.user_id / "memory.json")
    assert contents(store) == KEPT


@pytest.mark.long
@pytest.mark.usefixtures("traceable", "told_before")
def test_a_removal_killed_at_any_system_call_is_done_or_not(tmp_path: Path) -> None:
    """Killed at each system call: the old or the new document; once it is acknowledged, no copy has the fact."""
    done = []
    for name, when in strace.calls(partial(attempt_removal, copied(tmp_path, "traced"))):
        store = copied(tmp_path, f"{name}-{when}")
        assert strace.inject(partial(attempt_removal, store), f"{name}:signal=SIGKILL:when={when}").killed
        now = contents(store)
        assert now in ([GONE, *KEPT], KEPT), (name, when)
        done.append(now == KEPT)
        assert_a_removal_holds(store, tmp_path / f"{name}-{when}")
    assert done == sorted(done), "once the fact is gone, it stays away"
    assert set(done) == {True, False}
    assert_a_removal_holds(JsonStore(tmp_path / "traced", options()), tmp_path / "traced")


@pytest.mark.long
@pytest.mark.usefixtures("traceable", "told_before")
def test_a_removal_in_which_any_system_call_fails_is_whole_or_refused(tmp_path: Path) -> None:
    """Refused, the document is the old one; also when the last call, the sync of the folder, is the one that fails."""
    refused = Counter[str]()
    for name, when in strace.calls(partial(attempt_removal, copied(tmp_path, "traced"))):
        store = copied(tmp_path, f"{name}-{when}")
        ended = strace.inject(partial(attempt_removal, store), f"{name}:error=EIO:when={when}")
        assert (ended.code, contents(store)) in [(0, KEPT), (REFUSED, [GONE, *KEPT])], (name, when)
        assert not list((tmp_path / f"{name}-{when}").rglob("*.tmp")), (name, when)
        refused[name] += ended.code == REFUSED
        assert_a_removal_holds(store, tmp_path / f"{name}-{when}")
    assert refused["fsync"] == 4, "two files, and their folder twice"


@pytest.mark.usefixtures("traceable")
def test_a_commit_without_hard_links_is_whole_or_refused(tmp_path: Path, old: list[str]) -> None:
    """Where no previous version can be kept, a commit that is refused at any sync leaves the old document as well."""
    codes = []
    for when in range(1, sum(name == "fsync" for name, _ in strace.calls(partial(attempt, copied(tmp_path, "t")))) + 1):
        store = copied(tmp_path, f"{when}")
        ended = strace.inject(partial(attempt, store), "linkat:error=EPERM", f"fsync:error=EIO:when={when}")
        assert (ended.code, contents(store)) == (REFUSED, old)
        assert left(tmp_path / f"{when}") <= WHOLE
        codes.append(ended.code)
    assert codes


# --- a worker on a file system that refuses ------------------------------------------------------------------------


@contextmanager
def mounted(folder: Path, size: str) -> Iterator[Path]:
    """A small file system of its own; skipped, with the reason, where it cannot be mounted."""
    folder.mkdir(mode=0o700)
    mount = ["mount", "-t", "tmpfs", "-o", f"{size},mode=0700", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@contextmanager
def no_space(disk: Path) -> Iterator[None]:
    """Every block is taken."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    yield
    filler.unlink()


@contextmanager
def no_inodes(disk: Path) -> Iterator[None]:
    """There is room, but no file can be made."""
    fillers = disk / "fillers"
    fillers.mkdir()
    with suppress(OSError):
        for number in range(10_000):
            (fillers / str(number)).touch()
    yield
    for path in list(fillers.iterdir()):
        path.unlink()
    fillers.rmdir()


@contextmanager
def read_only(disk: Path) -> Iterator[None]:
    """Everything can be read, nothing written."""
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)


def refusals(settings: Settings, code: str = "StoreUnavailable") -> int:
    """How often workers have given a claim back with this code."""
    return sum(event["code"] == code for event in events(settings, "worker", "released"))


def assert_waits(app: Memd, client: redis.Redis, settings: Settings) -> None:
    """Refused again and again, the context waits at no cost and the document is as it was."""
    before = refusals(settings)
    wait_for(lambda: refusals(settings) >= before + 3, "the commit was refused and tried again")

    def waits_unspent() -> bool:  # it is claimed again at any moment
        keys: list[bytes] = execute(client, "ZRANGE", f"{verbs.P}:due", 0, 0)
        return bool(keys) and client.hget(f"{verbs.P}:ctx:{keys[0].decode()}", ".attempts") == b"0"

    wait_for(waits_unspent, "the context waits for its next try, at no attempt")
    assert told(app, "ana") == {0: 1}
    assert not list(settings.data_dir.glob("users/**/*.tmp"))
    assert app.status().dead == 0


@pytest.mark.parametrize("fault", [no_space, no_inodes, read_only])
def test_a_disk_that_takes_nothing_costs_time_only(
    configured: Configured, client: redis.Redis, data_dir: Path, fault: Callable[[Path], AbstractContextManager[None]]
) -> None:
    """D1: space, inodes, the right to write are gone: the context waits, unspent, and is stored when they are back."""
    settings = configured(drain__max_attempts=1)
    library.install(client, settings)
    with ExitStack() as stack:
        disk = stack.enter_context(mounted(data_dir / "users", "size=256k,nr_inodes=60"))
        app = stack.enter_context(Memd(settings))
        stack.enter_context(part("scheduler", settings))
        stack.enter_context(part("worker", settings))
        tell(app, "ana", 0)
        assert ended(app) == {"stored": 1}
        with fault(disk):
            tell(app, "ana", 1)
            tell(app, "bob", 2)
            assert_waits(app, client, settings)
        assert ended(app) == {"stored": 3}
        assert (told(app, "ana"), told(app, "bob")) == ({0: 1, 1: 1}, {2: 1})


def test_ready_follows_the_inbox_and_the_store() -> None:
    """`/ready` is 200 when inbox and store take writes, 503 with the code when one does not; `/health` stays 200."""

    def code(site: Site) -> tuple[int, str]:
        answer = site.ask("GET", "/ready")
        return answer.status, answer.code if answer.status != 200 else answer.json["store"]

    with ExitStack() as stack:
        site = stack.enter_context(serving(None))
        assert code(site) == (503, "E_INBOX_UNAVAILABLE")
        embedded = server.start(site.settings)
        stack.callback(server.stop, embedded)
        wait_for(lambda: code(site) == (503, "E_INBOX_NOT_READY"), "the server answers, empty")
        install(site)
        wait_for(lambda: code(site) == (200, "ok"), "all is there")
        disk = stack.enter_context(mounted(site.settings.data_dir / "users", "size=256k,nr_inodes=60"))
        for fault in (no_space, read_only):
            with fault(disk):
                wait_for(lambda: code(site) == (503, "E_STORE_UNAVAILABLE"), "the store takes no write")
                assert site.ask("GET", "/health").status == 200
            wait_for(lambda: code(site) == (200, "ok"), "the store takes writes again")
        assert not list(disk.iterdir())


@pytest.mark.parametrize("fault", [no_space, read_only])
def test_an_answer_that_cannot_be_stored_is_paid_once(
    asking: Configured,
    client: redis.Redis,
    model: ModelServer,
    data_dir: Path,
    fault: Callable[[Path], AbstractContextManager[None]],
) -> None:
    """The store takes no writes: the answers wait with their claims, nobody asks again, and none is asked in vain."""
    keys, concurrency = 20, 4
    settings = asking(drain__max_attempts=1, drain__concurrency=concurrency, drain__slice_s=1)
    model.delay = 0.5
    with ExitStack() as stack:
        disk = stack.enter_context(mounted(data_dir / "users", "size=256k,nr_inodes=90"))
        app = stack.enter_context(Memd(settings))
        stack.enter_context(part("scheduler", settings))
        for number in range(keys):
            tell(app, f"u{number}", number)
        workers = [stack.enter_context(part("worker", settings)) for _ in range(2)]
        wait_for(lambda: model.calls >= concurrency, "the model is asked")
        with fault(disk):
            wait_for(lambda: len(given_back(settings)) == keys, "the store refuses each of them")
            asked, before = model.calls, given_back(settings)
            turns = [{"role": "user", "content": "I like tea number 99.", "id": "later"}]
            app.push(turns, thread_id="thread-0", user_id="u0", now=True)
            pids = {family(worker.pid)[-1] for worker in workers}
            again = {key: times + 2 for key, times in before.items()}
            wait_for(lambda: given_back(settings) >= Counter(again), "again and again", 60)
            wait_for(lambda: len({family(worker.pid)[-1] for worker in workers} - pids) == 2, "in other processes, too")
            assert model.calls == asked <= 2 * concurrency
        assert ended(app) == {"stored": keys + 1}
        assert told(app, "u0") == {0: 1, 99: 1}
        assert all(told(app, f"u{number}") == {number: 1} for number in range(1, keys))
        assert model.calls == keys + 1
        assert app.status().usage["model_calls"] == keys + 1


def given_back(settings: Settings) -> Counter[str]:
    """How often workers have given each key back because of the store."""
    released = events(settings, "worker", "released")
    return Counter(event["key"] for event in released if event["code"] == "StoreUnavailable")


@pytest.mark.parametrize(
    ("limit", "to"), [(resource.RLIMIT_FSIZE, 100_000), (resource.RLIMIT_NOFILE, 3)], ids=["short-write", "open-files"]
)
def test_a_worker_at_its_limits_loses_nothing(
    configured: Configured, client: redis.Redis, data_dir: Path, limit: int, to: int
) -> None:
    """D1: files are cut short at a size, or none can be opened: the context waits, unspent, until the worker may."""
    settings = configured(drain__max_attempts=1, drain__linger_s=30)
    library.install(client, settings)
    store = JsonStore(data_dir, options())
    loaded = store.load(Bucket("ana"))
    store.commit(Bucket("ana"), loaded, {**loaded.document, "revision": 1, "plugin": "x" * 200_000}, lambda: True)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings) as worker:
        tell(app, "ana", 0)
        app.flush(wait=True)
        drain = family(worker.pid)[1]
        before, most = resource.prlimit(drain, limit, (to, resource.prlimit(drain, limit)[1]))
        tell(app, "ana", 1)
        assert_waits(app, client, settings)
        resource.prlimit(drain, limit, (before, most))
        assert ended(app) == {"stored": 2}
        assert told(app, "ana") == {0: 1, 1: 1}
        assert app.document("ana")["plugin"] == "x" * 200_000


def test_a_worker_mends_what_it_meets_and_sweeps_what_crashes_left(
    configured: Configured, client: redis.Redis, data_dir: Path
) -> None:
    """D2: every kind of damage at once: each user gets the last good version back and the new fact, others nothing."""
    settings = configured()
    library.install(client, settings)
    store = JsonStore(data_dir, options())
    users = {f"u{number}": kind for number, kind in enumerate(DAMAGE)}
    for user in [*users, "well"]:
        save(store, "first", Bucket(user))
        save(store, "second", Bucket(user))
        place = data_dir / "users" / user
        (place / "memory.json.tmp").write_text("{")
        os.utime(place / "memory.json.tmp", (0, 0))
        if user in users:
            DAMAGE[users[user]](place / "memory.json")
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        wait_for(lambda: app.status().workers, "the worker listens")
        assert not list(data_dir.glob("users/*/*.tmp"))
        for number, user in enumerate([*users, "well"]):
            tell(app, user, number)
        assert ended(app) == {"stored": len(users) + 1}
    for user in users:
        assert contents(store, Bucket(user))[0] == "first"
        assert len(contents(store, Bucket(user))) == 2
        assert len(list((data_dir / "users" / user).glob("memory.json.corrupt-*"))) == 1
    assert contents(store, Bucket("well"))[:2] == ["first", "second"]
    assert not list((data_dir / "users" / "well").glob("*.corrupt-*"))
    assert [event["restored"] for event in events(settings, "worker", "document_damaged")] == [True] * len(users)
