"""PostgreSQL with a standby, and on a full disk."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from support import wait_for
from support.databases import Missing
from support.postgres_server import PostgresServer, running
from support.postgres_writers import added, check, hammered, hammering, lost, more_commits, store_at
from support.stores import ALICE, contents, save

from memd.errors import StoreUnavailable
from memd.memory.store.postgres import connecting

NAME = "memd"


@pytest.mark.parametrize("turns", [2])
def test_a_failover_to_a_synchronous_standby_loses_nothing_that_was_acknowledged(turns: int) -> None:
    """The primary is killed, the standby takes its place under the same address; then once more."""
    with running() as first:
        first.make(NAME)
        servers = [first]
        stack = []
        try:
            for _ in range(turns):
                standing = running(servers[-1])
                stack.append(standing)
                standby = standing.__enter__()
                servers[-1].configure(synchronous_standby_names="'standby'")
                servers[-1].sql("SELECT pg_reload_conf()")
                servers.append(standby)
                store = store_at(_address(servers))
                hammered(store, partial(_fail_over, servers[-2], standby), 1)
        finally:
            connecting.Postgres.close_all()
            for standing in reversed(stack):
                standing.__exit__(None, None, None)


def _address(servers: list[PostgresServer]) -> str:
    hosts = ",".join(f"127.0.0.1:{server.port}" for server in servers[-2:])
    return f"postgresql://postgres@{hosts}/{NAME}"


def _fail_over(old: PostgresServer, new: PostgresServer) -> None:
    wait_for(
        lambda: old.sql("SELECT sync_state FROM pg_stat_replication") == [("sync",)], "the standby confirms commits"
    )
    old.kill()
    new.sql("SELECT pg_promote()")


def test_a_failover_to_another_standby_loses_what_that_did_not_have(capsys: pytest.CaptureFixture[str]) -> None:
    """Counted: of a standby that keeps up the last moments, of one that was cut off all since. The rest is whole."""
    with running() as first, running(first) as standby:
        first.make(NAME)
        both = store_at(_address([first, standby]))
        with hammering(both) as done:
            more_commits(done)
            first.kill()
            standby.sql("SELECT pg_promote()")
            more_commits(done)
        keeping_up, of = lost(both, done), sum(map(len, done.values()))
        connecting.Postgres.close_all()
    with running() as first:
        store = store_at(first.make(NAME))
        with running(first) as standby:
            names = [f"n{number}" for number in range(20)]
            for name in names[:5]:
                added(store, name)
            wait_for(lambda: _revision(standby) == 5, "the standby has five commits")
            standby.configure(primary_conninfo="''")
            standby.sql("SELECT pg_reload_conf()")
            wait_for(lambda: not standby.sql("SELECT * FROM pg_stat_wal_receiver"), "the standby is cut off")
            for name in names[5:]:
                added(store, name)
            first.kill()
            standby.sql("SELECT pg_promote()")
            after = store_at(standby.url(NAME))
            cut_off = lost(after, {ALICE: set(names)})
            check(after, set(names[:5]))
            added(after, "again")
            connecting.Postgres.close_all()
    with capsys.disabled():
        print(  # noqa: T201  (the figures of docs/guarantees.md)
            f"\nlost at a failover to an asynchronous standby: {keeping_up} of {of} commits of one that kept up, "
            f"{cut_off} of the 15 since one was cut off"
        )
    assert cut_off == 15


def _revision(server: PostgresServer) -> int:
    return sum(row[0] for row in server.sql("SELECT revision FROM memd.documents", NAME))


def test_a_standby_is_never_read(postgres: PostgresServer) -> None:
    """Its documents may be old: without the primary there is none."""
    with running(postgres) as standby:
        store = store_at(standby.url(NAME))
        with pytest.raises(StoreUnavailable, match="E_STORE_READ_ONLY"):
            store.load(ALICE)
        store = store_at(f"postgresql://postgres@127.0.0.1:{standby.port},127.0.0.1:{postgres.port}/{NAME}")
        save(store, "tea")
        assert contents(store) == ["tea"]
        connecting.Postgres.close_all()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 96 MB."""
    folder = Path(tempfile.mkdtemp(prefix="memd-disk-"))
    words = ["mount", "-t", "tmpfs", "-o", "size=96m,mode=0711", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(words, capture_output=True, check=False).returncode:
        folder.rmdir()
        pytest.skip("not run: no right to mount a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)
    folder.rmdir()


def test_a_full_disk_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    """Commits are refused; when there is room again, the server goes on, or is started again."""
    place = small_disk / "pg"
    place.mkdir()
    server = PostgresServer(place, min_wal_size="32MB", max_wal_size="48MB")
    server.start()
    try:
        store = store_at(server.make(NAME))
        filler = small_disk / "filler"

        def fill() -> None:
            with suppress(OSError), filler.open("wb") as file:
                while True:
                    file.write(bytes(65_536))
            wait_for(lambda: _is_refused(server, str(small_disk)), "a commit is refused")
            filler.unlink()
            with suppress(Missing):
                if server.is_ready():
                    return
            server.restart()

        hammered(store, fill, 2)
    finally:
        connecting.Postgres.close_all()
        server.kill()


def _is_refused(server: PostgresServer, word: str) -> bool:
    store = store_at(server.url(NAME))
    try:
        save(store, word * 2_000)
    except StoreUnavailable:
        return True
    return False
