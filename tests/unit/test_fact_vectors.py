"""Vectors of facts beside each store: made after the commit, gone with their fact, and searched with the words.

`make test-store` runs these on PostgreSQL. The embedder is a real HTTP server that knows a few subjects.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from support import STORE, Cli, make_settings, wait_for
from support.stores import ALICE, make_store, ours, save

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.errors import ConfigError, Conflict, EmbedderFailed, StoreUnavailable
from memd.inbox.verbs import P
from memd.memory.store.moving import MovableStore, Seal
from memd.memory.store.protocol import Store, Wish
from memd.memory.store.vector_sets import VectorSet, VectorStore, embeddable, vectors_of
from memd.recall.embedded import Embedded, Made, VectorCounts
from memd.recall.embedding import Embedding
from memd.scheduler.missing_vectors import MissingVectors
from memd.testing import EmbeddingServer

SUBJECTS = (
    ("brother", "sister", "siblings", "哥哥", "姐姐", "兄弟姐妹"),
    ("vegetarian", "meat", "steak", "吃素", "牛排"),
    ("porto", "home", "city", "杭州", "城市"),
)
NAME = b"embedder of them"
OTHER = b"embedder another"
files_only = pytest.mark.skipif(STORE != "json", reason="about files")


def by_subject(text: str) -> list[float]:
    """A vector by subjects, in English and Chinese; what has none lies apart."""
    found = [float(any(word in text.lower() for word in words)) for words in SUBJECTS]
    return [*found, 0.0 if any(found) else 1.0]


@pytest.fixture
def store(data_dir: Path) -> Store:
    """An empty store."""
    return make_store(data_dir)


@pytest.fixture
def vectors(store: Store) -> VectorStore:
    """Its vectors."""
    return vectors_of(store)


@pytest.fixture
def embedder() -> Iterator[EmbeddingServer]:
    """An embedder that answers."""
    with EmbeddingServer(by_subject) as server:
        yield server


def with_embedder(data_dir: Path, embedder: EmbeddingServer, redis_url: str | None = None, **more: Any) -> Settings:
    """Settings with this embedder. No search gives it up for its slowness alone."""
    chosen = {"vectors__url": embedder.base_url, "vectors__model": "m", "vectors__query_s": 30, **more}
    return make_settings(data_dir, redis_url, **chosen)


def made_of(store: Store, *numbers: bytes, embedder: bytes = NAME) -> VectorSet:
    """Vectors of two numbers for the facts of the memory."""
    names = embeddable(store.load(ALICE).document)
    return VectorSet.of(embedder, 2, zip(names, numbers, strict=False))


def rewrite(store: Store, *facts: dict[str, Any]) -> None:
    """Commit a document with exactly these facts."""
    loaded = store.load(ALICE)
    store.commit(ALICE, loaded, {**loaded.document, "revision": loaded.revision + 1, "facts": list(facts)}, ours)


def facts_of(store: Store) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = store.load(ALICE).document["facts"]
    return found


# --- in the store --------------------------------------------------------------------------------------------------


def test_vectors_are_read_as_they_were_written(store: Store, vectors: VectorStore) -> None:
    """By fact and content; each write changes the mark."""
    save(store, "tea")
    save(store, "coffee")
    assert (vectors.marks([ALICE]), vectors.read(ALICE), vectors.held(ALICE, NAME)) == ([None], None, frozenset())

    assert vectors.write(ALICE, store.load(ALICE), made_of(store, b"1111")) == 1
    first = vectors.marks([ALICE])
    assert vectors.write(ALICE, store.load(ALICE), made_of(store, b"2222", b"3333")) == 2
    found = vectors.read(ALICE)

    assert found is not None
    assert dict(found.items()) == dict(made_of(store, b"2222", b"3333").items())
    assert vectors.held(ALICE, NAME) == embeddable(store.load(ALICE).document).keys()
    assert vectors.marks([ALICE]) not in (first, [None])
    assert vectors.read(Bucket("bob")) is None


def test_a_commit_removes_the_vectors_of_what_it_removes_or_changes(store: Store, vectors: VectorStore) -> None:
    """In its own step; what it leaves alone keeps its vector."""
    for text in ("tea", "coffee", "milk"):
        save(store, text)
    vectors.write(ALICE, store.load(ALICE), made_of(store, b"1111", b"2222", b"3333"))
    tea, coffee, milk = facts_of(store)

    rewrite(store, tea, {**milk, "content": "oat milk"})
    found = vectors.read(ALICE)
    assert found is not None
    assert [numbers for _, numbers in found.items()] == [b"1111"]

    rewrite(store, tea, coffee)
    assert len(vectors.held(ALICE, NAME)) == 1, "a fact that comes back has no vector until one is made"
    rewrite(store)
    assert vectors.held(ALICE, NAME) == frozenset()


def test_a_vector_is_written_only_for_a_fact_that_is_still_there(store: Store, vectors: VectorStore) -> None:
    """What was embedded while a commit removed it is dropped."""
    save(store, "tea")
    save(store, "coffee")
    before, made = store.load(ALICE), made_of(store, b"1111", b"2222")
    rewrite(store, facts_of(store)[1])

    assert vectors.write(ALICE, before, made) == 1
    assert vectors.held(ALICE, NAME) == embeddable(store.load(ALICE).document).keys()


def test_another_embedder_takes_the_place_of_all_vectors(store: Store, vectors: VectorStore) -> None:
    """Vectors of two embedders, or of two lengths, are never in one memory."""
    save(store, "tea")
    save(store, "coffee")
    loaded = store.load(ALICE)
    vectors.write(ALICE, loaded, made_of(store, b"1111", b"2222"))

    vectors.write(ALICE, loaded, made_of(store, b"3333", embedder=OTHER))
    assert (len(vectors.held(ALICE, NAME)), len(vectors.held(ALICE, OTHER))) == (0, 1)
    longer = VectorSet.of(OTHER, 4, [(next(iter(embeddable(loaded.document))), b"4" * 8)])
    vectors.write(ALICE, loaded, longer)
    assert vectors.read(ALICE) == longer


@pytest.mark.parametrize("agent", [None, ""])
def test_forgetting_erases_vectors(store: Store, vectors: VectorStore, agent: str | None) -> None:
    """And those that were embedded meanwhile are not written."""
    save(store, "tea")
    loaded, made = store.load(ALICE), made_of(store, b"1111")
    vectors.write(ALICE, loaded, made)
    wish = Wish(ALICE.user_id, agent)
    store.tombstones.begin(wish, ["identity"])
    store.erase(ALICE.user_id, agent)

    assert (vectors.read(ALICE), vectors.marks([ALICE])) == (None, [None])
    with pytest.raises(Conflict):
        vectors.write(ALICE, loaded, made)
    assert vectors.write(ALICE, store.load(ALICE), made) == 0, "no fact is there"
    assert vectors.marks([ALICE]) == [None]


@pytest.mark.parametrize("gone", [True, False])
def test_a_document_that_a_copy_replaces_takes_its_vectors_along(
    store: Store, vectors: VectorStore, gone: bool
) -> None:
    """They are not copied, but made anew; a sealed store takes none."""
    assert isinstance(store, MovableStore)
    save(store, "tea")
    vectors.write(ALICE, loaded := store.load(ALICE), made := made_of(store, b"1111"))
    store.moving.set_seal(Seal("target", "other"))
    try:
        store.moving.put_memory(ALICE, None if gone else store.moving.memory(ALICE))
        assert (vectors.read(ALICE), vectors.marks([ALICE])) == (None, [None])
        with pytest.raises(StoreUnavailable, match="E_STORE_SEALED"):
            vectors.write(ALICE, loaded, made)
    finally:
        store.moving.set_seal(None)


@files_only
def test_a_file_that_does_not_fit_is_ignored_and_replaced(store: Store, vectors: VectorStore, data_dir: Path) -> None:
    """One of a later document than the present one, which was restored; a torn, foreign or linked one."""
    file = data_dir / "users" / ALICE.user_id / "vectors.bin"
    save(store, "tea")
    older = file.with_name("memory.json").read_bytes()
    save(store, "coffee")
    vectors.write(ALICE, store.load(ALICE), made_of(store, b"1111", b"2222"))
    whole = file.read_bytes()

    file.with_name("memory.json").write_bytes(older)
    assert vectors.read(ALICE) is None
    for data in (whole[:-1], whole[:20], b"", b"x" * len(whole)):
        file.write_bytes(data)
        assert vectors.read(ALICE) is None
    file.unlink()
    file.symlink_to("memory.json")
    assert vectors.read(ALICE) is None
    assert vectors.write(ALICE, store.load(ALICE), made_of(store, b"3333")) == 1
    assert len(vectors.held(ALICE, NAME)) == 1
    assert not file.is_symlink()


@files_only
def test_what_a_crash_left_of_a_vector_file_is_swept(store: Store, data_dir: Path) -> None:
    """As temps of documents are."""
    save(store, "tea")
    (data_dir / "users" / ALICE.user_id / "vectors.bin.tmp").write_bytes(b"torn")
    assert [entry.path.name for entry in store.entries() if entry.leftover == "temp"] == ["vectors.bin.tmp"]  # type: ignore[attr-defined]  # of files
    assert store.sweep(older_than_s=-1) == 1  # type: ignore[call-arg]  # of files


# --- making them ---------------------------------------------------------------------------------------------------


def test_missing_vectors_are_made_once(store: Store, data_dir: Path, embedder: EmbeddingServer) -> None:
    """The newest first, in batches; what has one is not sent again."""
    for text in ("tea", "coffee", "milk"):
        save(store, text)
    embedded = Embedded(with_embedder(data_dir, embedder, vectors__batch=2, vectors__api_key="s3cret"), store)

    assert embedded.look(ALICE) == VectorCounts(3, 3)
    assert embedded.make(ALICE, most=1) == Made(2, 0, 1)
    assert embedder.texts == ["milk", "coffee"]
    assert embedded.make(ALICE) == Made(1, 0, 0)
    assert embedded.make(ALICE) == Made()
    assert (embedder.texts, embedded.look(ALICE)) == (["milk", "coffee", "tea"], VectorCounts(3, 0))
    assert embedder.requests[0] == {"model": "m", "input": ["milk", "coffee"], "encoding_format": "float"}
    assert embedder.headers[0]["authorization"] == "Bearer s3cret"
    assert embedded.make(ALICE, anew=True) == Made(3, 0, 0)


def test_another_model_makes_all_vectors_anew(store: Store, data_dir: Path, embedder: EmbeddingServer) -> None:
    """So does another length."""
    save(store, "tea")
    Embedded(with_embedder(data_dir, embedder), store).make(ALICE)
    shorter = Embedded(with_embedder(data_dir, embedder, vectors__dimensions=2), store)
    assert shorter.look(ALICE) == VectorCounts(1, 1)
    embedder.embed = lambda _: [1.0, 2.0, 3.0]
    assert shorter.make(ALICE) == Made(1)
    found = vectors_of(store).read(ALICE)
    assert found is not None
    assert found.dimensions == 2


def test_only_facts_that_a_search_may_find_are_sent(store: Store, data_dir: Path, embedder: EmbeddingServer) -> None:
    """Neither doubtful nor archived nor refused facts leave the machine, nor what was said."""
    save(store, "tea")
    loaded = store.load(ALICE)
    held = {name: [{"id": f"fact_{name}", "content": f"{name} text"}] for name in ("doubtful", "archive", "refused")}
    store.commit(ALICE, loaded, {**loaded.document, **held, "revision": 2}, ours)
    Embedded(with_embedder(data_dir, embedder), store).make(ALICE)
    assert embedder.texts == ["tea"]


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (503, b"{}", "E_EMBEDDER_STATUS_503"),
        (429, b"{}", "E_EMBEDDER_STATUS_429"),
        (302, b"", "E_EMBEDDER_STATUS_302"),
        (200, b"{}", "E_EMBEDDER_REPLY"),
        (200, b'{"data": [{"index": 0, "embedding": [0, 0]}]}', "E_EMBEDDER_REPLY"),
        (200, b'{"data": [{"index": 0, "embedding": [1e999]}]}', "E_EMBEDDER_REPLY"),
        (200, b'{"data": [{"index": 0, "embedding": ["tea"]}]}', "E_EMBEDDER_REPLY"),
        (200, b'{"data": [{"index": 1, "embedding": [1]}]}', "E_EMBEDDER_REPLY"),
        (200, b'{"data": []}', "E_EMBEDDER_REPLY"),
        (200, b" " * 2**20, "E_EMBEDDER_REPLY"),
    ],
)
def test_a_failing_embedder_is_asked_no_more_for_a_while(
    store: Store, data_dir: Path, embedder: EmbeddingServer, status: int, body: bytes, code: str
) -> None:
    """Whatever is wrong has a code, and no text of a fact; nothing is written."""
    save(store, "tea")
    embedded = Embedded(with_embedder(data_dir, embedder), store)
    embedder.fail(status, body)
    for _ in range(3):
        with pytest.raises(EmbedderFailed, match=code) as failure:
            embedded.make(ALICE)
        assert "tea" not in str(failure.value)
    assert (len(embedder.requests), embedded.look(ALICE)) == (1, VectorCounts(1, 1))


def test_after_a_pause_one_call_finds_out_whether_the_embedder_is_back(
    data_dir: Path, embedder: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile nobody else waits for it; when it answers, everybody asks again."""
    monkeypatch.setattr("memd.recall.embedding.PAUSE_S", 0.0)
    embedding = Embedding(with_embedder(data_dir, embedder).vectors)
    embedder.fail(503)
    with pytest.raises(EmbedderFailed, match="E_EMBEDDER_STATUS_503"):
        embedding.of_texts(["tea"])
    embedder.hold()
    first = threading.Thread(target=embedding.of_texts, args=(["coffee"],))
    first.start()
    wait_for(lambda: "coffee" in embedder.texts, "the first one asks")
    with pytest.raises(EmbedderFailed, match="not asked for a while"):
        embedding.of_texts(["milk"])
    embedder.release()
    first.join()
    assert len(embedding.of_texts(["milk"])) == 1
    assert embedder.texts == ["tea", "coffee", "milk"]


def test_patient_callers_try_again(store: Store, data_dir: Path, embedder: EmbeddingServer) -> None:
    """With growing pauses, and not for ever."""
    save(store, "tea")
    embedded = Embedded(with_embedder(data_dir, embedder), store)
    pauses: list[float] = []
    embedder.fail(503, times=2)
    assert embedded.make(ALICE, tries=3, wait=pauses.append) == Made(1)
    assert pauses == [1.0, 2.0]


def test_a_text_that_is_refused_holds_up_no_other(store: Store, data_dir: Path, embedder: EmbeddingServer) -> None:
    """It is left out alone."""
    texts = [f"tea {number}" for number in range(9)]
    for text in texts:
        save(store, text)
    embedder.refuses = {"tea 4"}
    embedded = Embedded(with_embedder(data_dir, embedder), store)
    assert embedded.make(ALICE) == Made(8, 1)
    assert embedded.look(ALICE) == VectorCounts(9, 1)


def test_settings_that_the_embedder_refuses_are_no_fault_of_the_texts(
    store: Store, data_dir: Path, embedder: EmbeddingServer
) -> None:
    """Then nothing is tried text by text."""
    for number in range(9):
        save(store, f"tea {number}")
    embedder.fail(400, times=100)
    with pytest.raises(EmbedderFailed, match="E_EMBEDDER_STATUS_400"):
        Embedded(with_embedder(data_dir, embedder), store).make(ALICE)
    assert len(embedder.requests) == 2


def test_an_embedder_out_of_reach_is_said(store: Store, data_dir: Path) -> None:
    """Nobody listens there."""
    save(store, "tea")
    settings = make_settings(data_dir, None, vectors__url="http://127.0.0.1:1/v1", vectors__model="m")
    with pytest.raises(EmbedderFailed, match="E_EMBEDDER_CONNECTION"):
        Embedded(settings, store).make(ALICE)


def test_schedulers_make_up_for_what_is_missing(
    store: Store, data_dir: Path, embedder: EmbeddingServer, client: redis.Redis, server_url: str
) -> None:
    """For all memories, once an hour; soon again after a failure, and at once for another embedder."""
    save(store, "tea")
    save(store, "coffee", Bucket("bob", "coach"))
    settings = with_embedder(data_dir, embedder, server_url)
    duty = MissingVectors(settings, store)
    embedder.fail(401, times=3)
    duty.run()
    [name] = client.keys(f"{P}:round:vectors*")
    assert 0 < client.pttl(name) <= 120_000
    client.delete(name)
    later = MissingVectors(settings, store)  # its own pause after a failure is over
    later.run()
    assert sorted(embedder.texts[-2:]) == ["coffee", "tea"]
    assert client.pttl(name) > 3_000_000
    other = MissingVectors(with_embedder(data_dir, embedder, server_url, vectors__model="other"), store)
    assert other.round_name != later.round_name


# --- searching -----------------------------------------------------------------------------------------------------


def contents(found: Any) -> list[str]:
    return [hit.fact["content"] for hit in found]


@pytest.fixture
def known(store: Store, data_dir: Path, embedder: EmbeddingServer) -> Settings:
    """A memory in two languages, with its vectors."""
    for text in ("Her brother is called Tom", "Has been vegetarian since school", "用户住在杭州", "用户有一个姐姐"):
        save(store, text)
    settings = with_embedder(data_dir, embedder)
    Embedded(settings, store).make(ALICE)
    return settings


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Any siblings?", {"Her brother is called Tom", "用户有一个姐姐"}),
        ("兄弟姐妹呢", {"Her brother is called Tom", "用户有一个姐姐"}),
        ("Can I suggest a steak?", {"Has been vegetarian since school"}),
        ("想请客吃牛排", {"Has been vegetarian since school"}),
        ("Which city?", {"用户住在杭州"}),
        ("在哪个城市", {"用户住在杭州"}),
    ],
)
def test_meaning_finds_what_words_do_not(known: Settings, query: str, found: set[str]) -> None:
    """Across languages; without an embedder the same question finds none of it by its words."""
    with Memd(known) as memd:
        hits = memd.search(ALICE.user_id, query)
        block = memd.injection(ALICE.user_id, query=query, max_tokens=100)
    assert (set(contents(hits)), hits.words_only, block.words_only) == (found, "", "")
    assert all(text in block.text for text in found)


def test_a_fact_without_a_vector_is_found_by_its_words(
    known: Settings, store: Store, embedder: EmbeddingServer
) -> None:
    """Until its vector is made, which the next search then has."""
    save(store, "Has two sisters and likes steak")
    with Memd(known) as memd:
        found = memd.search(ALICE.user_id, "steak")
        assert set(contents(found)) == {"Has two sisters and likes steak", "Has been vegetarian since school"}
        assert "Has two sisters and likes steak" not in contents(memd.search(ALICE.user_id, "Any siblings?"))
        Embedded(known, store).make(ALICE)
        assert "Has two sisters and likes steak" in contents(memd.search(ALICE.user_id, "Any siblings?"))
    assert embedder.texts.count("Any siblings?") == 1, "the vector of a query is kept"


def test_an_agents_search_compares_the_users_facts_too(known: Settings, store: Store) -> None:
    """Each fact has its vector in its own memory."""
    save(store, "The user's home is small", coach := Bucket(ALICE.user_id, "coach"))
    Embedded(known, store).make(coach)
    with Memd(known) as memd:
        found = memd.search(ALICE.user_id, "Which city?", agent_name="coach")
    assert set(contents(found)) == {"用户住在杭州", "The user's home is small"}


def test_another_users_vectors_are_never_compared(known: Settings, store: Store) -> None:
    """Whatever they ask."""
    save(store, "Lives in Porto", Bucket("bob"))
    Embedded(known, store).make(Bucket("bob"))
    with Memd(known) as memd:
        assert contents(memd.search("bob", "兄弟姐妹")) == []
        assert contents(memd.search("bob", "Which city?")) == ["Lives in Porto"]


def test_a_failing_embedder_leaves_the_words_and_is_said(known: Settings, embedder: EmbeddingServer) -> None:
    """With the reason, in search and in the block; the next searches do not wait for it."""
    embedder.fail(500)
    with Memd(known) as memd:
        for _ in range(2):
            found = memd.search(ALICE.user_id, "vegetarian siblings")
            assert contents(found) == ["Has been vegetarian since school"]
            assert found.words_only.startswith("E_EMBEDDER_STATUS_500: ")
        assert memd.injection(ALICE.user_id, query="siblings").words_only.startswith("E_EMBEDDER_STATUS_500: ")
        assert memd.injection(ALICE.user_id).words_only == "", "without a query nobody asks it"


def test_a_late_embedder_holds_no_search_up(known: Settings, data_dir: Path, embedder: EmbeddingServer) -> None:
    """The search goes by words; the answer that comes later is kept for the next one."""
    embedder.hold()
    with Memd(with_embedder(data_dir, embedder, vectors__query_s=0.05)) as memd:
        late = memd.search(ALICE.user_id, "Any siblings?")
        assert (contents(late), late.words_only.partition(":")[0]) == ([], "E_EMBEDDER_TIMEOUT")
        embedder.release()


def test_an_answer_within_time_is_waited_for(known: Settings, embedder: EmbeddingServer) -> None:
    """A search and its embedder work at the same time."""
    embedder.hold()
    with Memd(known) as memd:
        found: list[list[str]] = []
        search = threading.Thread(target=lambda: found.append(contents(memd.search(ALICE.user_id, "Which city?"))))
        search.start()
        wait_for(lambda: "Which city?" in embedder.texts, "the embedder is asked")
        embedder.release()
        search.join()
    assert found == [["用户住在杭州"]]


def test_vectors_that_are_missing_or_another_models_are_said(
    store: Store, data_dir: Path, embedder: EmbeddingServer
) -> None:
    """No search by meaning seems to work where it does not."""
    save(store, "Has been vegetarian since school")
    settings = with_embedder(data_dir, embedder)
    with Memd(settings) as memd:
        assert memd.search("nobody", "steak").words_only == "", "there is nothing to compare"
        found = memd.search(ALICE.user_id, "vegetarian")
        assert (len(found), found.words_only.partition(":")[0]) == (1, "E_VECTORS_NONE")
        Embedded(settings, store).make(ALICE)
        assert memd.search(ALICE.user_id, "vegetarian").words_only == ""
    with Memd(with_embedder(data_dir, embedder, vectors__model="other")) as memd:
        assert memd.search(ALICE.user_id, "vegetarian").words_only.startswith("E_VECTORS_OTHER")


def test_the_least_cosine_is_a_setting(known: Settings, data_dir: Path, embedder: EmbeddingServer) -> None:
    """Models differ in how near unrelated texts lie."""
    embedder.embed = lambda _: [0.6, 0.8, 0.0, 0.0]
    with Memd(with_embedder(data_dir, embedder, vectors__min_cosine=0.7)) as memd:
        assert contents(memd.search(ALICE.user_id, "Xylophone?")) == ["Has been vegetarian since school"]
    with Memd(with_embedder(data_dir, embedder, vectors__min_cosine=0.9)) as memd:
        assert contents(memd.search(ALICE.user_id, "Xylophone?")) == []


def test_without_an_embedder_nothing_is_asked(store: Store, data_dir: Path) -> None:
    """And nothing is said."""
    save(store, "Has been vegetarian since school")
    with Memd(make_settings(data_dir, None)) as memd:
        assert memd.search(ALICE.user_id, "vegetarian").words_only == ""
    with pytest.raises(ConfigError, match=r"vectors\.url"):
        Embedding(make_settings(data_dir, None).vectors)


@pytest.mark.parametrize(
    "wrong",
    [
        {"vectors__url": "http://ana:s3cret@host/v1", "vectors__model": "m"},
        {"vectors__url": "ftp://host", "vectors__model": "m"},
        {"vectors__url": "http://host/v1"},
        {"vectors__url": "http://host/v1", "vectors__model": "m", "recall__embedder": "json.dumps"},
    ],
)
def test_settings_that_cannot_work_are_refused(data_dir: Path, wrong: dict[str, str]) -> None:
    """In a sentence that names them and repeats no secret."""
    with pytest.raises(ConfigError, match="vectors") as failure:
        make_settings(data_dir, None, **wrong)
    assert "s3cret" not in str(failure.value)


# --- the commands --------------------------------------------------------------------------------------------------


def test_the_commands_count_and_make_vectors(store: Store, data_dir: Path, embedder: EmbeddingServer, cli: Cli) -> None:
    """Scripts read their exit codes and JSON."""
    assert cli("vectors", "status").returncode == 78
    env = {"MEMD_VECTORS__URL": embedder.base_url, "MEMD_VECTORS__MODEL": "m", "MEMD_VECTORS__QUERY_S": "30"}
    save(store, "Has been vegetarian since school")
    compared_by = Embedded(with_embedder(data_dir, embedder), store).compared_by

    before = cli("vectors", "status", "--json", **env)
    assert before.returncode == 1
    assert orjson.loads(before.stdout) == {
        "model": "m", "dimensions": None, "memories": 1, "facts": 1, "missing": 1, "damaged": 0,
        "compared_by": compared_by,
    }  # fmt: skip
    searched = cli("search", ALICE.user_id, "vegetarian", **env)
    assert "searched by words only: E_VECTORS_NONE" in searched.stderr
    made = cli("vectors", "rebuild", ALICE.user_id, **env)
    assert (made.returncode, made.stdout) == (0, "model m  memories 1  written 1\n")
    after = cli("vectors", "status", **env)
    assert (after.returncode, after.stdout) == (
        0,
        f"model m  memories 1  facts 1  missing 0  compared_by {compared_by}\n",
    )
    embedder.fail(401, times=9)
    failed = cli("vectors", "rebuild", "--all", "--json", **env)
    assert (failed.returncode, orjson.loads(failed.stdout)["written"]) == (69, 0)
    assert "E_EMBEDDER_STATUS_401" in failed.stderr


def test_a_store_of_ones_own_need_not_keep_vectors() -> None:
    """Then the setting says so."""

    class Plain:
        pass

    with pytest.raises(ConfigError, match=r"vectors\.url"):
        vectors_of(Plain())  # type: ignore[arg-type]  # any other store
