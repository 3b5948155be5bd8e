"""PostgreSQL that is frozen, away or refuses: nobody hangs, no answer is paid twice, and nothing old is read."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import redis
from structlog.testing import capture_logs
from support import ended, make_settings, part, wait_for
from support.fault_support import events, once, raw, tell
from support.postgres_server import PostgresServer, running
from support.postgres_writers import added, check, store_at
from support.stores import ALICE, contents, make_store, save

from memd.client import Memd
from memd.config import Settings
from memd.errors import StoreUnavailable
from memd.inbox.verbs import RAW
from memd.memory.store.cache import CachedReader
from memd.memory.store.postgres import PostgresStore, connecting
from memd.memory.store.postgres.migrations import VERSION, migrate
from memd.testing import ModelServer

NAME = "memd"
FREEZE_S = 60

Configured = Callable[..., Settings]

REFUSING = """
CREATE SEQUENCE memd.tries;
CREATE FUNCTION memd.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF nextval('memd.tries') <= {times} THEN RAISE EXCEPTION 'no' USING ERRCODE = '{code}'; END IF;
  RETURN NEW;
END $$;
CREATE CONSTRAINT TRIGGER refuses AFTER INSERT OR UPDATE ON memd.documents {when}
FOR EACH ROW EXECUTE FUNCTION memd.refuse();
"""
AGAIN = "DROP FUNCTION memd.refuse() CASCADE; DROP SEQUENCE memd.tries"


@pytest.fixture
def store(tmp_path: Path) -> PostgresStore:
    """The store in the empty database."""
    found = make_store(tmp_path)
    assert isinstance(found, PostgresStore)
    return found


@contextmanager
def refusing(postgres: PostgresServer, times: int, *, at_commit: bool) -> Iterator[None]:
    """The database reports so many serialisation failures, while it writes a document or when it commits one."""
    when = "DEFERRABLE INITIALLY DEFERRED" if at_commit else ""
    postgres.sql(REFUSING.format(times=times, code="40001", when=when), NAME)
    try:
        yield
    finally:
        postgres.sql(AGAIN, NAME)


@pytest.mark.parametrize("at_commit", [False, True])
def test_a_serialisation_failure_is_tried_again(
    postgres: PostgresServer, store: PostgresStore, *, at_commit: bool
) -> None:
    """The claim is asked for before each try. Where all fail it is an outage, and nothing is written."""
    with refusing(postgres, 1, at_commit=at_commit):
        assert added(store, "one") == 2
    check(store, {"one"})
    with (
        refusing(postgres, 9, at_commit=at_commit),
        pytest.raises(StoreUnavailable, match=r"E_STORE_(SQL_40001|UNKNOWN)"),
    ):
        added(store, "two")
    check(store, {"one"})


def _waiting(postgres: PostgresServer, but: int = 0) -> int:
    """The backend whose commit waits for a standby; 0 for none."""
    rows = postgres.sql(f"SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND pid <> {but}")  # noqa: S608
    return int(rows[0][0]) if rows else 0


def test_a_commit_that_no_standby_confirmed_is_not_acknowledged(
    postgres: PostgresServer, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody cancels the wait for a standby, which PostgreSQL tells by a warning alone: memd asks after the commit,
    and so waits for a standby again. Once that is cancelled as well, the end of the commit is unknown."""
    monkeypatch.setattr(connecting, "ANSWER_S", 60)
    added(store, "one")
    postgres.configure(synchronous_standby_names="'nobody'")
    postgres.sql("SELECT pg_reload_conf()")
    try:
        with ThreadPoolExecutor(1) as pool:
            adding = pool.submit(added, store, "two")
            first = wait_for(lambda: _waiting(postgres), "the commit waits for a standby")
            postgres.sql(f"SELECT pg_cancel_backend({first})")
            asking = wait_for(lambda: _waiting(postgres, first), "the question waits for a standby")
            assert not adding.done()
            postgres.sql(f"SELECT pg_cancel_backend({asking})")
            with pytest.raises(StoreUnavailable, match="E_STORE_UNKNOWN"):
                adding.result()
            adding = pool.submit(added, store, "three")
            first = wait_for(lambda: _waiting(postgres), "the commit waits for a standby")
            postgres.sql(f"SELECT pg_cancel_backend({first})")
            wait_for(lambda: _waiting(postgres, first), "the question waits for a standby")
            postgres.configure()
            postgres.sql("SELECT pg_reload_conf()")
            assert adding.result() == 1
    finally:
        postgres.configure()
        postgres.sql("SELECT pg_reload_conf()")
    check(store, {"one", "two", "three"})


def test_standbys_that_no_commit_waits_for_are_warned_of(postgres: PostgresServer, store: PostgresStore) -> None:
    """When a worker starts, which sweeps; nothing is said where commits wait, nor without standbys."""
    found = []
    with running(postgres):
        wait_for(lambda: postgres.sql("SELECT * FROM pg_stat_replication"), "the standby follows")
        for names in ("''", "'standby'"):
            postgres.configure(synchronous_standby_names=names)
            postgres.sql("SELECT pg_reload_conf()")
            shown = names.strip("'")
            wait_for(lambda: postgres.sql("SHOW synchronous_standby_names") == [(shown,)], "it is set")  # noqa: B023
            with capture_logs() as lines:
                store.sweep()
            found.append([line["event"] for line in lines])
        postgres.configure()
        postgres.sql("SELECT pg_reload_conf()")
    wait_for(lambda: postgres.sql("SHOW synchronous_standby_names") == [("",)], "it is set")
    assert found == [["store_not_synchronous"], []]


def test_nothing_old_is_read_while_the_server_is_away(
    postgres: PostgresServer, store: PostgresStore, tmp_path: Path
) -> None:
    """Readers keep parsed documents, and ask the primary whether they are the latest ones, each time."""
    reader = CachedReader[None](store, make_settings(tmp_path, None))
    save(store, "tea")
    assert reader.read(ALICE) is reader.read(ALICE)
    postgres.kill()
    try:
        with pytest.raises(StoreUnavailable):
            reader.read(ALICE)
    finally:
        postgres.start()
    assert [fact["content"] for fact in reader.read(ALICE)["facts"]] == ["tea"]


def test_a_full_ledger_makes_no_commit_larger(postgres: PostgresServer, store: PostgresStore) -> None:
    """It has rows of its own, without a cap: a commit writes the new ones alone."""
    taken = [f"i{number}" for number in range(30_000)]
    loaded = store.load(ALICE)
    document = {**loaded.document, "revision": 1, "ledger": {"t": taken}}
    store.commit(ALICE, loaded, document, lambda: True, {"t": taken})
    postgres.sql("CHECKPOINT")
    added(store, "one")  # the first change of a page after a checkpoint writes it whole
    before = postgres.sql("SELECT pg_current_wal_insert_lsn()")[0][0]
    added(store, "two")
    [(written,)] = postgres.sql(f"SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '{before}')::int")
    assert written < 100_000
    assert len(store.read_ledger(ALICE, store.load(ALICE).document)["t"]) == 30_002
    assert store.load(ALICE, {"t": ["i0", "i29999", "new"]}).known == {"i0", "i29999"}


def test_setting_up_waits_for_no_long_lock(postgres: PostgresServer) -> None:
    """Two seconds; writers would queue behind it for as long."""
    with psycopg.connect(postgres.url(NAME)) as other:
        other.execute("LOCK TABLE memd.store IN ACCESS EXCLUSIVE MODE")
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="E_STORE_LOCKED"):
            migrate(postgres.url(NAME))
        assert time.monotonic() - began >= 2
    assert migrate(postgres.url(NAME)).after == VERSION


def _given_back(settings: Settings) -> int:
    released = events(settings, "worker", "released")
    return len([event for event in released if event["code"] == "StoreUnavailable"])


def test_answers_that_could_not_be_stored_are_paid_once(
    postgres: PostgresServer, asking: Configured, model: ModelServer
) -> None:
    """The database goes away during the model calls: each answer waits with its claim, and nobody asks the model in
    vain meanwhile; no attempt is spent."""
    keys = 6
    settings = asking(drain__max_attempts=1, drain__concurrency=keys, drain__slice_s=1, log__format="json")
    model.hold()
    with part("scheduler", settings), part("worker", settings), Memd(settings) as app:
        for number in range(keys):
            tell(app, f"u{number}", number)
        wait_for(lambda: model.calls == keys, "the model is asked about each")
        postgres.kill()
        try:
            model.go_on()
            wait_for(lambda: _given_back(settings) >= keys, "no answer can be stored")
            tell(app, "u0", keys)
            again = lambda: _given_back(settings) >= 2 * keys or events(settings, "worker", "forgetting_waits")  # noqa: E731
            wait_for(again, "nor can the kept ones, or the worker finds out before it claims them")
            assert model.calls == keys
        finally:
            postgres.start()
        assert ended(app) == {"stored": keys + 1}
        assert model.calls == keys + 1
        assert once(app, range(keys + 1), keys)


@pytest.mark.timeout(400)
def test_a_minutes_freeze_hangs_nobody(
    postgres: PostgresServer,
    client: redis.Redis,
    asking: Configured,
    model: ModelServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Pushes are taken in meanwhile, by both doors, and no model is asked; afterwards all is stored, each once."""
    settings = asking(drain__max_attempts=1, log__format="json")
    with part("scheduler", settings), part("worker", settings), part("worker", settings), Memd(settings) as app:
        tell(app, "u0", 0)
        assert ended(app) == {"stored": 1}
        postgres.freeze(True)
        began = time.monotonic()
        try:
            for number in range(1, 12):
                tell(app, f"u{number % 4}", number)
            client.rpush(RAW, raw("u0", 12))
            wait_for(lambda: not client.llen(RAW), "the scheduler takes in raw pushes")
            wait_for(lambda: time.monotonic() - began > FREEZE_S, "a minute has passed", 2 * FREEZE_S)
            assert app.status().stored == 1
        finally:
            postgres.freeze(False)
        thawed = time.monotonic()
        assert ended(app) == {"stored": 13}
        took = time.monotonic() - thawed
        assert once(app, range(13), 4)
        assert model.calls == 13
        assert app.status().dead == 0
    with capsys.disabled():
        print(f"\nfrozen for {FREEZE_S} s: all stored {took:.1f} s after it went on")  # noqa: T201  (a figure)


def test_tls_is_demanded_by_the_address(postgres: PostgresServer) -> None:
    """A server without it is not talked to, and the refusal has its own code."""
    store = store_at(f"{postgres.url(NAME)}?sslmode=require")
    with pytest.raises(StoreUnavailable, match="E_STORE_TLS"):
        store.load(ALICE)
    assert contents(store_at(f"{postgres.url(NAME)}?sslmode=prefer")) == []
