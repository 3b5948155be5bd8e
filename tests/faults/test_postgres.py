"""The store in PostgreSQL and its faults: a commit is lost, done or refused, and never done twice or in part."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import wait_for
from support.postgres_proxy import PostgresProxy
from support.postgres_server import PostgresServer
from support.postgres_writers import added, check, hammered, store_at
from support.stores import ALICE, contents, make_store, options, ours, save

from memd.config import Secret
from memd.context import Bucket, Key
from memd.errors import ConfigError, Conflict, DocumentTooNew, MemdError, StoreUnavailable, StoreUnfit
from memd.memory.store import document_file
from memd.memory.store.postgres import PostgresStore, connecting
from memd.memory.store.postgres.committing import bucket_lock, owner_lock
from memd.memory.store.postgres.migrations import VERSION, migrate
from memd.memory.store.postgres.roles import statements
from memd.memory.store.protocol import Wish

NAME = "memd"


@pytest.fixture
def store(tmp_path: Path) -> PostgresStore:
    """The store in the empty database."""
    found = make_store(tmp_path)
    assert isinstance(found, PostgresStore)
    return found


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[PostgresProxy]:
    """A proxy before the server."""
    with PostgresProxy(postgres.port) as found:
        yield found
        connecting.Postgres.close_all()


def test_a_connection_that_is_cut_before_the_commit_arrives_costs_one_more_try(
    proxy: PostgresProxy, store: PostgresStore
) -> None:
    """The claim is asked for again, and the change is there once."""
    through = store_at(proxy.url(NAME))
    added(through, "one")
    proxy.cut = "before"

    assert added(through, "two") == 2
    check(store, {"one", "two"})


def test_a_connection_that_is_cut_after_the_commit_is_no_second_commit(
    proxy: PostgresProxy, store: PostgresStore
) -> None:
    """A new connection finds it done."""
    through = store_at(proxy.url(NAME))
    added(through, "one")
    proxy.cut = "after"

    assert added(through, "two") == 1
    check(store, {"one", "two"})


@pytest.mark.parametrize("cut", ["before", "after"])
def test_where_the_end_of_a_commit_cannot_be_found_out_nothing_is_acknowledged(
    proxy: PostgresProxy, store: PostgresStore, cut: Any
) -> None:
    """The next load tells what became of it."""
    through = store_at(proxy.url(NAME))
    added(through, "one")
    proxy.cut, proxy.shuts_then = cut, True

    with pytest.raises(StoreUnavailable, match="E_STORE_UNKNOWN"):
        added(through, "two")
    proxy.shut = False
    wait_for(lambda: (store.load(ALICE).revision == 2) == (cut == "after"), "the commit has ended")
    check(through, {"one", "two"} if cut == "after" else {"one"})


def test_sessions_and_forgettings_survive_a_cut_as_well(proxy: PostgresProxy, store: PostgresStore) -> None:
    """Each is done once, or again where that changes nothing."""
    through = store_at(proxy.url(NAME))
    for cut in ("before", "after"):
        save(through, "tea")
        wish = Wish(ALICE.user_id)
        proxy.cut = cut
        through.tombstones.begin(wish, ["i1"])
        proxy.cut = cut
        assert through.erase(ALICE.user_id, None).documents == 1
        proxy.cut = cut
        through.tombstones.close(wish)
        assert store.tombstones.unfinished() == []
        assert contents(store) == []
    found = store.tombstones.find(ALICE.user_id)
    assert found is not None
    assert len(found.hashes) == 1


def test_a_forgetting_waits_for_a_commit_that_has_asked_before_it(
    postgres: PostgresServer, proxy: PostgresProxy, store: PostgresStore
) -> None:
    """It erases what that writes; the next commit of what was loaded before is a conflict. So nothing comes back."""
    through, wish = store_at(proxy.url(NAME)), Wish(ALICE.user_id)
    loaded = through.load(ALICE)
    proxy.held, waiting = threading.Event(), "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(save, through, "tea")
        wait_for(lambda: proxy.commits == 1, "the commit is on its way")
        forgetting = pool.submit(store.tombstones.begin, wish, ["i1"])
        wait_for(lambda: postgres.sql(waiting)[0][0] == 1, "the tombstone waits for the commit")
        assert (store.tombstones.unfinished(), forgetting.done()) == ([wish], False)
        proxy.held.set()
        assert (writing.result().revision, forgetting.result().generation) == (1, 1)
    with pytest.raises(Conflict):
        store.commit(ALICE, loaded, {**loaded.document, "revision": 1}, ours)
    assert store.erase(ALICE.user_id, None).documents == 1
    assert contents(store) == []


def test_kill_9_of_the_server_loses_nothing_that_was_acknowledged(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """Nor is anything there twice or in part; the writers go on when it is back."""
    hammered(store, postgres.restart, 4)


def test_backends_that_are_terminated_lose_nothing(postgres: PostgresServer, store: PostgresStore) -> None:
    """An administrator ends all connections."""
    everybody = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'memd'"
    hammered(store, lambda: postgres.sql(everybody), 8)


def test_a_server_that_is_frozen_holds_nobody(
    postgres: PostgresServer, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are given up in time, and when it goes on nothing is lost or twice."""
    monkeypatch.setattr(connecting, "ANSWER_S", 0.5)
    save(store, "tea", Bucket("other"))

    def freeze() -> None:
        postgres.freeze(True)
        try:
            with pytest.raises(StoreUnavailable):
                store.load(Bucket("other"))
        finally:
            postgres.freeze(False)

    hammered(store, freeze, 3)


def test_a_restarted_server_costs_no_error(postgres: PostgresServer, store: PostgresStore) -> None:
    """All connections of the pool are dead, and the next load has a new one."""
    save(store, "tea")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: store.load(ALICE), range(64)))
    postgres.restart()
    with ThreadPoolExecutor(8) as pool:
        assert {loaded.revision for loaded in pool.map(lambda _: store.load(ALICE), range(16))} == {1}
    save(store, "coffee")


def test_a_deadlock_is_tried_again(postgres: PostgresServer, store: PostgresStore) -> None:
    """PostgreSQL ends one of two that wait for each other."""
    first = owner_lock(ALICE.owner).key
    second = bucket_lock(ALICE.hash).key
    with psycopg.connect(postgres.url(NAME)) as other, ThreadPoolExecutor(1) as pool:
        other.execute(f"SELECT pg_advisory_xact_lock({second})")
        saving = pool.submit(save, store, "tea")
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        wait_for(lambda: postgres.sql(waiting)[0][0] == 1, "the commit waits for the bucket's lock")
        try:
            other.execute(f"SELECT pg_advisory_xact_lock({first})")
        except psycopg.errors.DeadlockDetected:
            other.rollback()
        else:
            other.commit()
        assert saving.result().revision == 1
    assert contents(store) == ["tea"]


def test_a_lock_that_stays_taken_is_an_outage(postgres: PostgresServer, store: PostgresStore) -> None:
    """A commit does not wait for ever; the pool has its connection back."""
    save(store, "tea")
    with psycopg.connect(postgres.url(NAME)) as other:
        other.execute(f"SELECT pg_advisory_xact_lock({bucket_lock(ALICE.hash).key})")
        with pytest.raises(StoreUnavailable, match="E_STORE_LOCKED"):
            save(store, "coffee")
    save(store, "coffee")


def test_a_host_that_is_cut_off_in_a_commit_lets_others_commit_within_20_s(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """Its idle transaction is ended by the server, and its locks with it."""
    with psycopg.connect(postgres.url(NAME), options=connecting.SETTINGS) as cut_off:
        cut_off.execute(f"SELECT pg_advisory_xact_lock({bucket_lock(ALICE.hash).key})")

        def saved() -> bool:
            try:
                save(store, "tea")
            except StoreUnavailable:
                return False
            return True

        wait_for(saved, "another host commits", timeout_s=20)
        with pytest.raises(psycopg.Error):
            cut_off.execute("COMMIT")


def test_an_exhausted_pool_is_an_outage_and_no_hang(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits too long for a connection is told so; a forgetting needs only one."""
    monkeypatch.setattr(connecting, "FREE_S", 0.2)
    store = store_at(postgres.url(NAME), connections=1)
    save(store, "tea")

    def still_wanted() -> bool:
        with ThreadPoolExecutor(1) as pool, pytest.raises(StoreUnavailable, match="E_STORE_CONNECTIONS"):
            pool.submit(store.load, ALICE).result()
        return store.tombstones.find(ALICE.user_id) is None

    assert store.erase(ALICE.user_id, None, still_wanted=still_wanted).documents == 1
    save(store, "tea")


def test_a_server_without_free_connections_is_an_outage(postgres: PostgresServer) -> None:
    """And works when there is one again."""
    postgres.sql("ALTER ROLE postgres CONNECTION LIMIT -1")
    postgres.sql("CREATE ROLE few SUPERUSER LOGIN")
    postgres.sql("ALTER DATABASE memd CONNECTION LIMIT 0")
    postgres.sql("ALTER ROLE few NOSUPERUSER")
    store = store_at(postgres.url(NAME).replace("postgres@", "few@"))
    try:
        with pytest.raises(StoreUnavailable, match="E_STORE_CONNECTIONS"):
            store.load(ALICE)
    finally:
        postgres.sql("ALTER DATABASE memd CONNECTION LIMIT -1")
        postgres.sql("DROP ROLE few")


def test_commits_are_read_committed_and_durable_whatever_the_database_says(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """The defaults of a database do not change what is promised."""
    postgres.sql("ALTER DATABASE memd SET default_transaction_isolation = 'serializable'")
    postgres.sql("ALTER DATABASE memd SET synchronous_commit = off")
    found = "SELECT current_setting('transaction_isolation'), current_setting('synchronous_commit')"
    try:
        seen = store._transactions.run((), lambda connection: connection.execute(found).fetchone())
        assert seen == ("read committed", "on")
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: save(store, "tea", Bucket(f"user{number}")), range(40)))
    finally:
        postgres.sql("ALTER DATABASE memd RESET ALL")


def test_a_database_that_only_reads_is_an_outage(postgres: PostgresServer, store: PostgresStore) -> None:
    """As after a failover to a standby that was not promoted."""
    save(store, "tea")
    store.close()
    postgres.sql("ALTER DATABASE memd SET default_transaction_read_only = on")
    try:
        with pytest.raises(StoreUnavailable):
            save(store, "coffee")
    finally:
        postgres.sql("ALTER DATABASE memd RESET ALL")
    assert contents(store) == ["tea"]


def test_a_server_that_loses_what_it_acknowledged_is_refused(postgres: PostgresServer, store: PostgresStore) -> None:
    """With fsync off, or torn pages after a crash."""
    for name in ("fsync", "full_page_writes"):
        postgres.configure(**{name: "off"})
        postgres.restart()
        try:
            with pytest.raises(StoreUnfit, match="E_STORE_UNFIT") as raised:
                store.sweep()
            assert raised.value.exit_code == 78
        finally:
            postgres.configure()
            postgres.restart()
    assert store.sweep() == 0


def test_documents_are_the_bytes_that_files_have(postgres: PostgresServer, store: PostgresStore) -> None:
    """Without their ledger; key order, numbers and odd characters included."""
    loaded = store.load(ALICE)
    plugin = {"b": 2e2, "a": -0.0, "\u0000": "\u0000\u2028\ufeff", "é": "e\u0301", "big": 2**63}
    document = {**loaded.document, "revision": 1, "plugin": plugin, "ledger": {"t": ["i1"]}}
    store.commit(ALICE, loaded, document, ours)

    [(data,)] = postgres.sql("SELECT first FROM memd.documents", NAME)
    assert data == document_file.serialised({**document, "ledger": {}})
    again = store.load(ALICE)
    assert (again.document["plugin"], again.content_hash) == (plugin, document_file.hash_of(data))


def test_a_damaged_document_is_set_aside_and_the_version_before_restored(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """A reader leaves it; the writer that finds it mends it. Then one that no version is left of starts anew."""
    save(store, "tea")
    save(store, "coffee")
    postgres.sql("UPDATE memd.documents SET second = substr(second, 1, 20) WHERE latest = 2", NAME)
    assert [fact["content"] for fact in store.peek(ALICE).document["facts"]] == ["tea"]
    with pytest.raises(MemdError, match="E_DOCUMENT_HASH"):
        store.inspect(ALICE)

    assert contents(store) == ["tea"]
    save(store, "water")
    assert contents(store) == ["tea", "water"]
    assert postgres.sql("SELECT length(data) FROM memd.damaged", NAME) == [(20,)]
    postgres.sql("UPDATE memd.documents SET first = '{', second = '{'", NAME)
    assert contents(store) == []
    save(store, "milk")
    assert contents(store) == ["milk"]


def test_a_newer_document_is_left_alone(postgres: PostgresServer, store: PostgresStore) -> None:
    """It is neither read nor set aside nor overwritten."""
    loaded = save(store, "tea")
    [(data,)] = postgres.sql("SELECT first FROM memd.documents", NAME)
    newer = bytes(data).replace(b'"1.0"', b'"1.1"')
    with psycopg.connect(postgres.url(NAME)) as connection:
        values = [newer, bytes.fromhex(document_file.hash_of(newer))]
        connection.execute("UPDATE memd.documents SET first = %s, hash = %s", values)
    with pytest.raises(DocumentTooNew):
        store.load(ALICE)
    with pytest.raises(Conflict):
        store.commit(ALICE, loaded, loaded.document, ours)


def test_what_is_removed_stays_in_no_column(postgres: PostgresServer, store: PostgresStore) -> None:
    """After a removal no old version and nothing set aside has it; after a forgetting no row has."""
    canary = "quokka"
    save(store, canary)
    save(store, "tea")
    postgres.sql("INSERT INTO memd.damaged (bucket, data) SELECT bucket, first FROM memd.documents", NAME)
    loaded = store.load(ALICE)
    facts = [fact for fact in loaded.document["facts"] if fact["content"] != canary]
    document = {**loaded.document, "revision": 3, "facts": facts, "removed": [{"hash": "0" * 40}]}
    assert canary in _everything(postgres)
    store.commit(ALICE, loaded, document, ours)
    assert canary not in _everything(postgres)
    assert contents(store) == ["tea"]

    added(store, canary)
    store.sessions.save(
        key := _key(),
        store.sessions.load(key),
        {"sessionId": "t", "components": {"m": {"messages": [{"role": "USER", "id": "1", "content": canary}]}}},
        [canary.encode()],
    )
    assert canary in _everything(postgres)
    store.erase(ALICE.user_id, None)
    store.reading_notes.forget(ALICE.user_id, None)
    assert canary not in _everything(postgres)
    assert ALICE.user_id not in _everything(postgres)


def _key() -> Key:
    return Key("t", ALICE.user_id)


def _everything(postgres: PostgresServer) -> str:
    """All rows of all tables as text."""
    tables = postgres.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'memd'", NAME)
    values = (value for (table,) in tables for row in postgres.sql(f"TABLE memd.{table}", NAME) for value in row)
    return str([value.decode(errors="replace") if isinstance(value, bytes) else value for value in values])


def _child(store: PostgresStore, done: Any) -> None:
    save(store, "child")
    done.put(len(contents(store)))
    done.close()
    done.join_thread()
    os._exit(0)


def test_a_forked_child_opens_its_own_connections(store: PostgresStore) -> None:
    """And ends none of its parent's, whether it exits or is killed."""
    save(store, "parent")
    context = multiprocessing.get_context("fork")
    for count in (2, 3):
        done = context.Queue()
        child = context.Process(target=_child, args=(store, done))
        child.start()
        assert done.get(timeout=60) == count
        child.join(60)
        assert len(contents(store)) == count

    child_id = os.fork()
    if child_id == 0:
        store.load(ALICE)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child_id, 0)
    assert len(contents(store)) == 3


def test_no_error_shows_the_address_or_the_password(postgres: PostgresServer, tmp_path: Path) -> None:
    """Whatever is wrong with the address or the server."""
    password = "correct-horse-battery"  # noqa: S105
    nowhere = store_at(f"postgresql://someone:{password}@127.0.0.1:1/elsewhere")
    unknown = store_at(postgres.url("unknown").replace("postgres@", f"nobody:{password}@"))
    texts = []
    for store in (nowhere, unknown):
        with pytest.raises(StoreUnavailable) as raised:
            store.load(ALICE)
        texts.append(f"{raised.value} {raised.value!r} {raised.value.__cause__} {raised.value.__context__}")
        assert raised.value.__suppress_context__
    with pytest.raises(MemdError) as wrong:
        store_at(f"postgresql://{password}@[nowhere")
    texts += [f"{wrong.value}", repr(options(url=Secret(f"postgresql://a:{password}@b/c")))]
    assert not [text for text in texts if password in text.partition(" None ")[0]]


def test_tables_of_another_version_are_refused(postgres: PostgresServer, store: PostgresStore) -> None:
    """Who writes asks in each statement; who sets up refuses what is newer and changes nothing."""
    assert migrate(postgres.url(NAME))[:2] == (VERSION, VERSION)
    save(store, "tea")
    postgres.sql("UPDATE memd.store SET version = version + 1, min_writer = version + 1", NAME)
    try:
        with pytest.raises(StoreUnfit, match="E_STORE_TOO_NEW"):
            save(store, "coffee")
        with pytest.raises(ConfigError, match="E_STORE_TOO_NEW"):
            migrate(postgres.url(NAME))
        assert contents(store) == ["tea"]
    finally:
        postgres.sql("UPDATE memd.store SET version = version - 1, min_writer = version - 1", NAME)
    postgres.sql("CREATE DATABASE fresh")
    try:
        with pytest.raises(StoreUnfit, match="memd store init"):
            store_at(postgres.url("fresh")).load(ALICE)
        with ThreadPoolExecutor(3) as pool:
            made = list(pool.map(migrate, [postgres.url("fresh")] * 3))
        assert {one.after for one in made} == {VERSION}
        save(store_at(postgres.url("fresh")), "tea")
    finally:
        connecting.Postgres.close_all()
        postgres.sql("DROP DATABASE fresh")


def test_tables_of_version_1_are_brought_up_to_date(postgres: PostgresServer) -> None:
    """What is there stays. Until then nothing is written, and it is said what to do."""
    postgres.sql("CREATE DATABASE old")
    try:
        url = postgres.url("old")
        migrate(url)
        old = store_at(url)
        save(old, "tea")
        for undone in (
            "DROP TABLE memd.vectors, memd.vector_sets", "DROP FUNCTION memd.refuse_sealed", "DROP TABLE memd.seals",
            "ALTER TABLE memd.documents DROP before_is_file", "UPDATE memd.store SET version = 1, min_writer = 1",
        ):  # fmt: skip
            postgres.sql(undone, "old")
        loaded = old.load(ALICE)
        with pytest.raises(StoreUnfit, match="memd store init"):
            old.commit(ALICE, loaded, {**loaded.document, "revision": 2, "facts": []}, ours)
        with pytest.raises(StoreUnfit, match="memd store init"):
            save(old, "coffee")
        assert migrate(url)[:2] == (1, VERSION)
        save(old, "coffee")
        assert contents(old) == ["tea", "coffee"]
    finally:
        connecting.Postgres.close_all()
        postgres.sql("DROP DATABASE old")


def _as(postgres: PostgresServer, role: str) -> str:
    return postgres.url(NAME).replace("postgres@", f"{role}@")


def test_the_roles_have_no_more_rights_than_they_need(postgres: PostgresServer, store: PostgresStore) -> None:
    """The writer changes rows and no tables; the reader reads, and notes what it found."""
    passwords = {
        "STORE_PASSWORD_MEMD_WRITER": "writer-password-long",
        "STORE_PASSWORD_MEMD_READER": "reader-password-l",
    }
    for _ in range(2):
        text = "\n".join(statements(passwords))
        assert not [password for password in passwords.values() if password in text]
        postgres.sql(text, NAME)
    writer, reader = (
        store_at(postgres.url(NAME).replace("postgres@", f"{name}@")) for name in ("memd_writer", "memd_reader")
    )
    added(writer, "one")
    writer.sessions.save(_key(), writer.sessions.load(_key()), {"sessionId": "t", "components": {}}, [b"1"])
    writer.tombstones.begin(Wish("bob"), ["i1"])
    writer.probe(ALICE)
    assert (writer.sweep(), writer.make_id()) == (0, store.make_id())
    assert writer.pseudonym("0" * 32) != ""

    assert contents(reader) == ["one"]
    assert reader.read_said(ALICE, reader.peek(ALICE).document).turns
    assert reader.reading_notes.note(ALICE, ["fact_one"], 1.0)
    assert reader.pseudonym("0" * 32) == ""
    for refused in (
        lambda: save(reader, "two"),
        lambda: reader.sessions.load(_key()),
        lambda: reader.erase(ALICE.user_id, None),
        lambda: reader.probe(ALICE),
    ):
        with pytest.raises(StoreUnavailable, match="E_STORE_RIGHTS"):
            refused()
    forbidden = (
        "TRUNCATE memd.documents",
        "DROP TABLE memd.said",
        "CREATE TABLE memd.x ()",
        "UPDATE memd.store SET id = ''",
    )
    for role in ("memd_writer", "memd_reader"):
        for statement in forbidden:
            with (
                psycopg.connect(_as(postgres, role)) as connection,
                pytest.raises(psycopg.errors.InsufficientPrivilege),
            ):
                connection.execute(statement)
    assert writer.erase(ALICE.user_id, None).documents == 1
