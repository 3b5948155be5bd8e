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
from support.postgres_writers import hammered, store_at
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
