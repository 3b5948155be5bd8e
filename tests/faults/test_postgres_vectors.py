"""Vectors in pgvector's type: `make test-store` runs this, where a server with pgvector can be had."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from support import Cli
from support.postgres_server import PostgresServer
from support.postgres_writers import store_at
from support.stores import ALICE, make_store, save

from memd.context import Bucket
from memd.errors import StoreUnavailable
from memd.memory.store.postgres import PostgresStore, connecting
from memd.memory.store.postgres.migrations import migrate
from memd.memory.store.vector_sets import KEY_BYTES, Cosines, VectorSet, embeddable
from memd.recall.embedding_calls import packed

NAME = "memd"
EMBEDDER = b"embedder of them"
NEAR, FAR = b"\x00\x3c\x00\x00", b"\x00\x00\x00\x3c"
"""(1, 0) and (0, 1) as half-precision floats."""


@pytest.fixture
def store(tmp_path: Path) -> PostgresStore:
    """The store in the empty database."""
    found = make_store(tmp_path)
    assert isinstance(found, PostgresStore)
    return found


@pytest.fixture
def without(postgres: PostgresServer) -> Iterator[str]:
    """The address of a database that was set up before pgvector came; the extension is there now."""
    postgres.sql("CREATE DATABASE early")
    url = postgres.url("early")
    migrate(url)
    postgres.sql("ALTER TABLE memd.vectors ALTER vector TYPE bytea USING ''", "early")
    yield url
    connecting.Postgres.close_all()
    postgres.sql("DROP DATABASE early")


def vectors_for(store: PostgresStore, bucket: Bucket, *numbers: bytes) -> VectorSet:
    """Vectors for the facts of a memory."""
    return VectorSet.of(EMBEDDER, 2, zip(embeddable(store.load(bucket).document), numbers, strict=True))


def by_name(found: Cosines) -> dict[bytes, float]:
    """The cosines by the names of their vectors."""
    names = [found.names[start : start + KEY_BYTES] for start in range(0, len(found.names), KEY_BYTES)]
    return dict(zip(names, found.values, strict=True))


def test_the_database_compares_the_vectors_of_these_memories_alone(store: PostgresStore) -> None:
    """Those of another embedder, of another length and of other users are never compared."""
    coach, bob = Bucket(ALICE.user_id, "coach"), Bucket("bob")
    for bucket in (ALICE, coach, bob):
        save(store, "tea", bucket)
    save(store, "coffee", ALICE)
    store.vectors.write(ALICE, store.load(ALICE), vectors_for(store, ALICE, NEAR, FAR))
    for bucket in (coach, bob):
        store.vectors.write(bucket, store.load(bucket), vectors_for(store, bucket, NEAR))
    compare = store.vectors.comparing()

    assert compare is not None
    tea, coffee = embeddable(store.load(ALICE).document)
    (other,) = embeddable(store.load(coach).document)
    assert by_name(compare([ALICE], EMBEDDER, NEAR)) == {tea: 1.0, coffee: 0.0}
    assert by_name(compare([ALICE, coach], EMBEDDER, FAR)) == {tea: 0.0, coffee: 1.0, other: 0.0}
    assert compare([ALICE], b"another embedder", NEAR) == Cosines()
    assert compare([ALICE], EMBEDDER, NEAR + NEAR) == Cosines()
    assert compare([Bucket("nobody")], EMBEDDER, NEAR) == Cosines()


def test_vectors_of_usual_lengths_lie_in_their_rows(postgres: PostgresServer, store: PostgresStore) -> None:
    """Up to 2,000 numbers; longer ones work as well."""
    save(store, "tea")
    (name,) = embeddable(store.load(ALICE).document)
    random = Random(1)  # noqa: S311  (no secret)
    for dimensions in (1_536, 4_096):
        numbers = packed([random.gauss(0, 1) for _ in range(dimensions)])
        store.vectors.write(ALICE, store.load(ALICE), VectorSet.of(EMBEDDER, dimensions, [(name, numbers)]))
        compare = store.vectors.comparing()
        assert compare is not None
        assert by_name(compare([ALICE], EMBEDDER, numbers)) == {name: pytest.approx(1.0, abs=0.001)}
        found = store.vectors.read(ALICE)
        assert found is not None
        assert dict(found.items()) == {name: numbers}
        beside = "SELECT pg_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'memd.vectors'::regclass"
        assert (postgres.sql(beside, NAME)[0][0] > 0) == (dimensions == 4_096)


def test_a_store_from_before_pgvector_adopts_it(without: str, cli: Cli) -> None:
    """Vectors that were bytes are made anew; a process that runs meanwhile fails once and goes on."""
    running = store_at(without)
    save(running, "tea")
    made = vectors_for(running, ALICE, NEAR)
    assert running.vectors.write(ALICE, running.load(ALICE), made) == 1
    assert running.vectors.comparing() is None

    assert "kept and compared by pgvector 0." in cli("store", "init", MEMD_STORE__URL=without).stdout
    assert running.vectors.held(ALICE, EMBEDDER) == frozenset()
    with pytest.raises(StoreUnavailable):
        running.vectors.write(ALICE, running.load(ALICE), made)
    assert running.vectors.write(ALICE, running.load(ALICE), made) == 1
    compare = running.vectors.comparing()
    assert compare is not None
    assert list(compare([ALICE], EMBEDDER, NEAR).values) == [1.0]
    migrate(without)
    assert running.vectors.held(ALICE, EMBEDDER), "init again removes nothing"


def test_a_role_that_may_not_create_the_extension_keeps_bytes(postgres: PostgresServer, cli: Cli) -> None:
    """And init says what to do."""
    postgres.sql("CREATE ROLE plain LOGIN")
    postgres.sql("CREATE DATABASE modest")
    postgres.sql("GRANT CREATE ON DATABASE modest TO plain")
    url = postgres.url("modest").replace("postgres@", "plain@")
    trusted = postgres.sql("SELECT bool_or(trusted) FROM pg_available_extension_versions WHERE name = 'vector'")[0][0]
    try:
        said = cli("store", "init", MEMD_STORE__URL=url).stdout
        assert ("CREATE EXTENSION vector" in said) is not trusted
        postgres.sql("CREATE EXTENSION IF NOT EXISTS vector", "modest")
        assert "compared by pgvector" in cli("store", "init", MEMD_STORE__URL=url).stdout
    finally:
        connecting.Postgres.close_all()
        postgres.sql("DROP DATABASE modest")
        postgres.sql("DROP ROLE plain")
