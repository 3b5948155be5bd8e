"""One inbox, one store: whoever drains, schedules or forgets with another store stops and changes nothing."""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from support import Cli, daemon, ended, exit_code, make_settings, part, wait_for

from memd.client import Memd
from memd.config import Settings, StoreSettings
from memd.errors import OtherStore
from memd.inbox import library
from memd.inbox.bell import bell_queue, ring
from memd.inbox.connection import connect
from memd.inbox.verbs import P
from memd.memory.store import JsonStore

TURNS = [{"role": "user", "content": "I live in Porto.", "id": "m1"}]


@pytest.fixture
def other(settings: Settings, tmp_path: Path) -> Settings:
    """The same server with another, empty data folder."""
    assert settings.redis_url is not None
    return make_settings(tmp_path, settings.redis_url.reveal())


@pytest.fixture
def bound(client: redis.Redis, settings: Settings) -> str:
    """The id of the store that the inbox belongs to."""
    store = JsonStore(settings.data_dir, settings.store)
    library.bind_store(client, store)
    return store.make_id()


def recorded(client: redis.Redis) -> str | None:
    """The id of the store that the inbox names."""
    value = client.hget(f"{P}:config", "store")
    return value.decode() if isinstance(value, bytes) else None


def test_an_older_folder_and_inbox_are_taken_as_they_are(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Neither has an id: the scheduler makes one and records it, and everything works; a restart changes nothing."""
    assert memd.document("ana")["facts"] == []
    assert not (settings.data_dir / "store.id").exists()
    for number in range(2):
        with daemon(settings):
            memd.push([{**TURNS[0], "id": f"m{number}"}], thread_id="t", user_id=f"ana-{number}", now=True)
            assert ended(memd)["stored"] == number + 1
        file = settings.data_dir / "store.id"
        assert re.fullmatch(r"[0-9a-f]{32}\n", file.read_text())
        assert oct(file.stat().st_mode & 0o777) == "0o600"
        assert recorded(client) == file.read_text().strip()


def test_an_inbox_that_lost_its_entry_gets_it_again(client: redis.Redis, settings: Settings, bound: str) -> None:
    """The folder's id stays; a server that was emptied learns it from the scheduler."""
    client.hdel(f"{P}:config", "store")
    with part("scheduler", settings):
        wait_for(lambda: recorded(client), "the store is recorded")
    assert recorded(client) == bound


@pytest.mark.parametrize("name", ["scheduler", "worker"])
@pytest.mark.parametrize("id_there", [None, "0" * 32 + "\n"])
def test_a_daemon_with_another_store_does_not_start(
    client: redis.Redis, memd: Memd, bound: str, other: Settings, name: str, id_there: str | None
) -> None:
    """Code 78 and one sentence; the inbox is as it was, and no id is made."""
    file = other.data_dir / "store.id"
    if id_there:
        file.write_text(id_there)
    memd.push(TURNS, thread_id="t", user_id="ana", now=True)
    with part(name, other) as process:
        assert exit_code(process, 20) == OtherStore.exit_code == 78
    said = (other.data_dir / f"{name}0.log").read_text()
    assert "E_OTHER_STORE" in said
    assert "Traceback" not in said
    assert (file.read_text() if file.exists() else None) == id_there
    assert recorded(client) == bound
    assert memd.status().pending == 1


def test_forgetting_with_another_store_forgets_nothing(
    cli: Cli, memd: Memd, bound: str, other: Settings, client: redis.Redis
) -> None:
    """Neither in the inbox nor in the folder; the dry run says so too."""
    memd.push(TURNS, thread_id="t", user_id="ana")
    for words in (["forget", "ana", "--yes"], ["forget", "ana", "--dry-run"]):
        done = cli(*words, MEMD_DATA_DIR=str(other.data_dir))
        assert (done.returncode, done.stderr.count("E_OTHER_STORE")) == (78, 1)
    assert memd.status().pending == 1
    assert {path.name for path in other.data_dir.iterdir()} == {"empty.yaml"}


def test_a_daemon_stops_when_the_inbox_is_given_away(
    client: redis.Redis, settings: Settings, memd: Memd, bound: str
) -> None:
    """Also while it runs: the scheduler at its next look, a worker at its next bell; nothing more is claimed."""
    with daemon(settings) as (scheduler, worker), connect(settings, retries=0) as own:
        memd.push(TURNS, thread_id="t", user_id="ana", now=True)
        assert ended(memd) == {"stored": 1}
        client.hset(f"{P}:config", "store", "f" * 32)
        assert exit_code(scheduler, 20) == 78
        memd.push([{**TURNS[0], "id": "m2"}], thread_id="t", user_id="ana", now=True)
        ring(bell_queue(own))
        assert exit_code(worker, 20) == 78
        assert memd.status().pending == 1


def _make_id(data_dir: Path, start: Callable[[], int], ids: multiprocessing.SimpleQueue[str]) -> None:
    start()
    ids.put(JsonStore(data_dir, StoreSettings()).make_id())


def test_many_at_once_make_one_id(data_dir: Path) -> None:
    """Whoever is first decides."""
    context = multiprocessing.get_context("fork")
    barrier, ids = context.Barrier(8), context.SimpleQueue()
    processes = [context.Process(target=_make_id, args=(data_dir, barrier.wait, ids)) for _ in range(8)]
    for process in processes:
        process.start()
    found = {ids.get() for _ in processes}
    for process in processes:
        process.join()
    assert found == {(data_dir / "store.id").read_text().strip()}
