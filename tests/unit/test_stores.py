"""Whatever store: what is committed is loaded, fenced, and forgotten. `make test-store` runs these on PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support import make_settings
from support.stores import ALICE, contents, make_store, ours, save

from memd.context import Bucket, Key, Message, identify, of_project
from memd.disk import files, lock
from memd.errors import ClaimLost, Conflict, DocumentTooNew, SessionChanged, SessionForgotten, StoreUnavailable
from memd.memory.document import Document
from memd.memory.said.changes import Append, Rewrite, append
from memd.memory.said.turns import Turn
from memd.memory.store.cache import CachedReader
from memd.memory.store.protocol import HALF_LIFE_S, Speaker, Store, Wish

NOW = 1_790_000_000.0
KEY = Key("t", ALICE.user_id)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return make_store(tmp_path / "data")


def state(text: str) -> Document:
    turn = {"role": "USER", "id": text, "content": text}
    return {"sessionId": "t", "components": {"memory": {"messages": [turn]}}}


def said(*texts: str) -> Append:
    found = append([Turn(text, "t", "user", text) for text in texts])
    assert found is not None
    return found


def commit(store: Store, change: Append | Rewrite | None) -> None:
    loaded = store.load(ALICE)
    store.commit(ALICE, loaded, {**loaded.document, "revision": loaded.revision + 1}, ours, said=change)


def texts(store: Store, last_bytes: int | None = None) -> list[str]:
    found = store.read_said(ALICE, store.load(ALICE).document, last_bytes)
    return [turn.text for turn in found.turns]


def test_what_is_committed_is_loaded(store: Store) -> None:
    """A document comes back as it was written, with its revision and hash."""
    committed = save(store, "The user likes tea")

    assert store.load(ALICE) == committed
    assert committed.revision == 1


def test_a_stale_document_is_not_written(store: Store) -> None:
    """Of two that loaded the same version, or none, the second one gets a conflict and nothing changes."""
    for number, drinks in enumerate((["tea"], ["tea", "coffee"]), 1):
        before = store.load(ALICE)
        save(store, drinks[-1])

        with pytest.raises(Conflict):
            store.commit(ALICE, before, {**before.document, "revision": number}, ours)
        assert contents(store) == drinks


def test_a_document_says_which_messages_it_has_taken_in(store: Store) -> None:
    """By thread; a single turn is also known by what it says, wherever it stood."""
    turns = identify("t", [Message("user", "a"), Message("user", "b"), Message("user", "c", id="3")])
    (alone,) = identify("t", [Message("user", "b")])
    held = [message.identity for message in turns]
    loaded = store.load(ALICE)
    assert (loaded.known, store.load(ALICE, {"t": held}).known) == (frozenset(), frozenset())
    store.commit(ALICE, loaded, {**loaded.document, "revision": 1, "ledger": {"t": held[:2]}}, ours, {"t": held[:2]})

    assert store.load(ALICE, {"t": [*held, alone.identity]}).known == {*held[:2], alone.identity}
    assert store.load(ALICE, {"u": held}).known == frozenset()


def test_no_update_is_lost_between_threads(store: Store) -> None:
    """Writers that reload on a conflict end with everybody's fact in the document."""

    def add(number: int) -> None:
        while True:
            try:
                save(store, f"The user has cat number {number}")
            except Conflict:
                continue
            return

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(add, range(40)))
    assert sorted(contents(store)) == sorted(f"The user has cat number {n}" for n in range(40))
    assert store.load(ALICE).revision == 40


def test_a_document_too_large_to_read_is_never_written(store: Store) -> None:
    """The limit holds on both sides."""
    loaded = save(store, "The user likes tea")

    with pytest.raises(StoreUnavailable, match="E_DOCUMENT_SIZE"):
        store.commit(ALICE, loaded, {**loaded.document, "plugin": "x" * files.MAX_BYTES}, ours)
    assert store.load(ALICE) == loaded


def test_a_hostile_id_never_reads_another_users_document(store: Store) -> None:
    """Ids that look like paths have documents of their own."""
    hostile = [
        "../alice@example.com",
        "alice@example.com/../alice@example.com",
        "Alice@example.com",
        "alice@example.com ",
    ]
    save(store, "The user likes tea")

    for user_id in hostile:
        assert contents(store, Bucket(user_id)) == []
        save(store, user_id, Bucket(user_id))
    assert sorted(store.users()) == sorted(["alice@example.com", *hostile])
    assert contents(store) == ["The user likes tea"]


@pytest.mark.parametrize("cap", [0, 1, 3])
def test_the_cache_holds_no_more_than_its_cap(store: Store, cap: int, tmp_path: Path) -> None:
    """The least recently used documents are forgotten."""
    reader = CachedReader[None](store, make_settings(tmp_path, None, store__cache_documents=cap))
    buckets = [Bucket(f"user{n}") for n in range(4)]
    for bucket in buckets:
        save(store, "tea", bucket)
    documents: list[Document] = [reader.read(bucket) for bucket in buckets]

    kept = [reader.read(b) is document for b, document in reversed(list(zip(buckets, documents, strict=True)))]
    assert kept == [True] * cap + [False] * (4 - cap)


def test_making_a_document_durable_asks_for_nothing_when_there_is_none(store: Store) -> None:
    """Sync is harmless for a bucket without a document and for one with it."""
    store.sync(ALICE)
    save(store, "tea")
    store.sync(ALICE)
    assert contents(store) == ["tea"]


def test_two_stores_of_one_place_see_the_same(store: Store, tmp_path: Path) -> None:
    """One id, one key for names in logs, and each other's commits."""
    other = make_store(tmp_path / "data")
    save(store, "The user likes tea")

    assert contents(other) == ["The user likes tea"]
    assert store.make_id() == other.make_id() == other.read_id()
    assert store.pseudonym("0" * 32) == other.pseudonym("0" * 32) != ""
    assert store.marks([ALICE, Bucket("bob")]) == other.marks([ALICE, Bucket("bob")])
    before = store.marks([ALICE, Bucket("bob")])
    save(other, "The user likes coffee")
    assert store.marks([ALICE, Bucket("bob")])[0] != before[0]
    assert (before[1], store.marks([])) == (None, [])


def test_a_lost_claim_changes_nothing(store: Store) -> None:
    """The claim is asked for before anything is written."""
    with pytest.raises(ClaimLost):
        store.commit(ALICE, store.load(ALICE), {**store.load(ALICE).document, "revision": 1}, lambda: False)
    assert store.load(ALICE).content_hash is None


def test_a_writer_between_the_question_and_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the commit a conflict, or has to wait for it; never are both written."""
    monkeypatch.setattr(lock, "WAIT_S", 0.02)
    loaded = store.load(ALICE)

    def overtaken() -> bool:
        with ThreadPoolExecutor(1) as pool:
            try:
                pool.submit(save, store, "The user likes coffee").result(timeout=30)
            except StoreUnavailable:
                return True
        return True

    try:
        store.commit(ALICE, loaded, {**loaded.document, "revision": 1}, overtaken)
    except Conflict:
        assert contents(store) == ["The user likes coffee"]
    else:
        assert contents(store) == []


def test_a_commit_after_a_forgetting_began_is_a_conflict(store: Store) -> None:
    """Though there is no document, before and after; another user's is written all the same."""
    loaded, bob = store.load(ALICE), store.load(Bucket("bob"))
    store.tombstones.begin(Wish(ALICE.user_id), ["i1"])
    with pytest.raises(Conflict, match="forgotten"):
        store.commit(ALICE, loaded, {**loaded.document, "revision": 1}, ours)
    store.commit(Bucket("bob"), bob, {**bob.document, "revision": 1}, ours)
    again = store.load(ALICE)
    assert (again.content_hash, again.generation) == (None, 1)
    assert again.tombstone == store.tombstones.find(ALICE.user_id)
    store.commit(ALICE, again, {**again.document, "revision": 1}, ours)


def test_the_words_of_a_speaker_who_was_forgotten_are_not_written(store: Store) -> None:
    """A project's document is written for a member only while nothing of theirs was forgotten since."""
    place = of_project("apollo")
    loaded = store.load(place)
    store.commit(place, loaded, {**loaded.document, "revision": 1}, ours, speaker=Speaker("bob", 0))
    store.tombstones.begin(Wish("bob"), ["i1"])

    loaded = store.load(place)
    with pytest.raises(ClaimLost, match="speaker"):
        store.commit(place, loaded, {**loaded.document, "revision": 2}, ours, speaker=Speaker("bob", 0))
    store.commit(place, loaded, {**loaded.document, "revision": 2}, ours, speaker=Speaker("bob", 1))
    assert (list(store.projects()), list(store.users())) == (["apollo"], [])


def test_a_ledger_is_whole_in_an_export_and_grows_with_each_commit(store: Store) -> None:
    """Wherever the store keeps it."""
    for number in range(3):
        held = store.read_ledger(ALICE, store.load(ALICE).document)
        loaded = store.load(ALICE)
        ledger = {**held, "t": [*held.get("t", []), f"i{number}"]}
        store.commit(
            ALICE, loaded, {**loaded.document, "revision": number + 1, "ledger": ledger}, ours, {"t": [f"i{number}"]}
        )
    loaded = store.load(ALICE)
    assert store.read_ledger(ALICE, loaded.document) == {"t": ["i0", "i1", "i2"]}
    assert store.load(ALICE, {"t": ["i2", "i3"]}).known == {"i2"}
    assert store.peek(ALICE, {"t": ["i2", "i3"]}).known == {"i2"}


def test_the_said_layer_grows_is_rewritten_and_goes(store: Store) -> None:
    """Each with the document that names it; its last lines are read alone."""
    assert texts(store) == []
    commit(store, said("one", "two"))
    commit(store, said("three"))
    commit(store, None)
    assert texts(store) == ["one", "two", "three"]
    size = store.load(ALICE).document["said"]["bytes"]
    assert texts(store, 10) == []
    assert texts(store, size - 1) == ["two", "three"]
    old = store.load(ALICE).document

    change = said("four")
    commit(store, Rewrite(change.lines, 1))
    assert texts(store) == ["four"]
    assert [turn.text for turn in store.read_said(ALICE, old).turns] == ["four"]
    commit(store, said("five"))
    assert texts(store) == ["four", "five"]
    commit(store, Rewrite(b"", 0))
    assert texts(store) == []
    assert "said" not in store.load(ALICE).document


def test_a_commit_that_is_refused_leaves_the_said_layer(store: Store) -> None:
    """Lines and document are one step."""
    commit(store, said("one"))
    loaded = store.load(ALICE)
    commit(store, said("two"))
    with pytest.raises(Conflict):
        store.commit(ALICE, loaded, {**loaded.document, "revision": 9}, ours, said=said("three"))
    assert texts(store) == ["one", "two"]


def test_a_forgetting_takes_documents_ledger_said_layer_and_sessions(store: Store) -> None:
    """And tells the identities of all of them; other users keep theirs. A second one finds nothing."""
    loaded = store.load(ALICE)
    document = {**loaded.document, "revision": 1, "ledger": {"t": ["i1"]}}
    store.commit(ALICE, loaded, document, ours, {"t": ["i1"]}, said=said("i2"))
    save(store, "The user likes tea", Bucket(ALICE.user_id, "coach"))
    save(store, "The user likes tea", Bucket("bob"))
    store.sessions.save(KEY, store.sessions.load(KEY), state("m"))
    store.reading_notes.note(ALICE, ["a"], NOW)

    look = store.erase(ALICE.user_id, None, dry_run=True)
    assert (look.documents, contents(store, Bucket(ALICE.user_id, "coach"))) == (2, ["The user likes tea"])
    assert store.erase(ALICE.user_id, None, still_wanted=lambda: False).documents == 0
    erased = store.erase(ALICE.user_id, None)
    assert erased == look
    assert {"i1", "i2"} < erased.identities
    assert len(erased.identities) == 3
    assert list(store.users()) == ["bob"]
    assert store.load(ALICE, {"t": ["i1"]}).known == frozenset()
    assert store.sessions.load(KEY).state is None
    assert store.erase(ALICE.user_id, None).documents == 0


def test_a_forgetting_of_one_agent_leaves_the_others(store: Store) -> None:
    """The user's own memory is one of them."""
    coach = Bucket(ALICE.user_id, "coach")
    save(store, "tea")
    save(store, "coffee", coach)
    assert store.agents(ALICE.user_id) == ["coach"]

    store.erase(ALICE.user_id, "coach")
    assert (contents(store), contents(store, coach)) == (["tea"], [])
    save(store, "coffee", coach)
    store.erase(ALICE.user_id, "")
    assert (contents(store), contents(store, coach)) == ([], ["coffee"])


def test_what_is_asked_within_a_forgetting_is_asked_in_it(store: Store) -> None:
    """Whoever holds the lock may read the tombstones."""
    wish = Wish(ALICE.user_id)
    save(store, "tea")
    store.tombstones.begin(wish, [])

    def still_wanted() -> bool:
        found = store.tombstones.find(ALICE.user_id)
        return found is not None and wish in found.open

    assert store.erase(ALICE.user_id, None, still_wanted=still_wanted).documents == 1
    store.tombstones.close(wish)
    save(store, "coffee")
    assert store.erase(ALICE.user_id, None, still_wanted=still_wanted).documents == 0


def test_a_tombstone_grows_and_its_wishes_are_fulfilled_one_by_one(store: Store) -> None:
    """Each change is seen by others at once."""
    wish, other = Wish(ALICE.user_id), Wish(ALICE.user_id, "coach")
    assert store.tombstones.find(ALICE.user_id) is None
    store.tombstones.begin(wish, ["i1"])
    store.tombstones.begin(other, ["i2"])
    found = store.tombstones.extend(wish, ["i3"])
    assert found == store.tombstones.find(ALICE.user_id)
    assert store.tombstones.extend(wish, ["i3"]) == found
    assert found.generation == 3
    assert [found.holds(ALICE, name) for name in ("i1", "i2", "i3")] == [True, False, True]
    assert found.holds(Bucket(ALICE.user_id, "coach"), "i2")

    store.tombstones.note(wish, "emptied")
    store.tombstones.note(wish, "erased")
    store.tombstones.note(Wish("bob"), "erased")
    noted = store.tombstones.find(ALICE.user_id)
    assert noted is not None
    assert (set(noted.emptied), set(noted.erased)) == ({wish}, {wish})
    assert set(noted.open) == {wish, other}
    assert set(store.tombstones.unfinished()) == {wish, other}
    store.tombstones.close(wish)
    assert store.tombstones.unfinished() == [other]
    store.tombstones.close(other)
    assert store.tombstones.unfinished() == []
    assert store.tombstones.owners() == [found.owner]
    assert store.tombstones.of(found.owner) == store.tombstones.find(ALICE.user_id)


def test_a_session_is_saved_with_its_lines_by_one_at_a_time(store: Store) -> None:
    """Who loaded an older one is refused and changes nothing."""
    first = store.sessions.load(KEY)
    saved = store.sessions.save(KEY, first, state("one"), [b"1", b"2"])
    with pytest.raises(SessionChanged):
        store.sessions.save(KEY, first, state("two"), [b"3"])
    saved = store.sessions.save(KEY, saved, state("three"), [b"4"])
    assert store.sessions.load(KEY) == saved
    assert list(store.sessions.lines(KEY, saved)) == [b"1", b"2", b"4"]
    assert saved.revision == 2
    [entry] = store.sessions.entries(ALICE)
    assert (entry.thread_id, entry.revision) == ("t", 2)
    assert (list(store.users()), store.sessions.entries(Bucket("bob"))) == ([ALICE.user_id], [])
    assert store.sessions.remove(KEY)
    assert not store.sessions.remove(KEY)
    assert store.sessions.load(KEY).state is None


def test_a_session_of_a_forgotten_user_is_refused(store: Store) -> None:
    """Also one that had nothing stored yet."""
    loaded = store.sessions.load(KEY)
    store.tombstones.begin(Wish(ALICE.user_id), [])
    with pytest.raises(SessionForgotten):
        store.sessions.save(KEY, loaded, state("one"))
    with pytest.raises(SessionForgotten):
        store.sessions.put_checkpoint(KEY, loaded, "a", {})
    assert store.sessions.entries(ALICE) == []


def test_a_newer_session_is_left_alone(store: Store) -> None:
    """By whoever reads it."""
    saved = store.sessions.save(KEY, store.sessions.load(KEY), state("one"))
    assert saved.state is not None
    with pytest.MonkeyPatch.context() as newer:
        newer.setattr("memd.memory.store.session_format.VERSION", 2)
        store.sessions.save(KEY, saved, state("two"))
    with pytest.raises(DocumentTooNew):
        store.sessions.load(KEY)


def test_checkpoints_are_listed_archived_and_expire(store: Store) -> None:
    """One in the archive is still found, until it is too old; so is the session."""
    saved = store.sessions.save(KEY, store.sessions.load(KEY), state("one"))
    for name in ("a", "b"):
        store.sessions.put_checkpoint(KEY, saved, name, {"name": name})
    assert [entry.id for entry in store.sessions.checkpoints(KEY)] == ["a", "b"]
    assert store.sessions.archive(KEY, ["a", "c"]) == 1
    assert [entry.id for entry in store.sessions.checkpoints(KEY)] == ["b"]
    found = store.sessions.checkpoint(KEY, "a")
    assert found is not None
    assert found["name"] == "a"
    assert store.sessions.checkpoint(KEY, "c") is None

    now = datetime.now(UTC)
    assert store.sessions.expire(ALICE, now - timedelta(days=1)) == 0
    assert store.sessions.expire(ALICE, now + timedelta(days=1)) == 1
    assert store.sessions.load(KEY).state is None
    assert store.sessions.checkpoint(KEY, "b") is None


def test_reading_notes_fade_and_go_with_their_user(store: Store) -> None:
    """Each counts one when it happens, and half of that after a half-life."""
    save(store, "tea")
    assert store.reading_notes.note(ALICE, ["a", "b"], NOW - HALF_LIFE_S)
    assert store.reading_notes.note(ALICE, ["a", "a b", ""], NOW)

    found = store.reading_notes.read(ALICE, NOW)
    assert (found.heat("a"), found.heat("b"), found.heat("c")) == (1.5, 0.5, 0.0)
    assert (found.by_fact["a"].last, found.by_fact["a"].count) == (NOW, 2)
    assert store.reading_notes.read(ALICE, NOW, ["b", "c"]).heat("b") == 0.5
    store.reading_notes.note(Bucket(ALICE.user_id, "coach"), ["a"], NOW)
    store.reading_notes.forget(ALICE.user_id, "coach")
    assert store.reading_notes.read(Bucket(ALICE.user_id, "coach"), NOW).by_fact == {}
    store.reading_notes.forget(ALICE.user_id, None)
    assert store.reading_notes.read(ALICE, NOW).by_fact == {}


def test_the_time_of_the_last_change_is_that_of_the_last_commit(store: Store) -> None:
    """0 without any."""
    assert store.changed_ns(ALICE.user_id) == 0
    save(store, "tea")
    first = store.changed_ns(ALICE.user_id)
    save(store, "coffee", Bucket(ALICE.user_id, "coach"))
    assert 0 < first < store.changed_ns(ALICE.user_id)
    assert store.changes() == {ALICE.user_id: store.changed_ns(ALICE.user_id)}


def test_the_facts_of_a_memory_are_counted(store: Store) -> None:
    """Without its document none; a document that was changed by hand is counted as it is read."""
    assert store.fact_count(ALICE) == 0
    save(store, "tea")
    save(store, "coffee")
    assert store.fact_count(ALICE) == 2
    assert store.fact_count(Bucket(ALICE.user_id, "coach")) == 0


def test_a_store_that_all_users_share(tmp_path: Path) -> None:
    """Everybody reads and writes the same document; agents have their own, and nobody's is erased."""
    store = make_store(tmp_path / "data", shared=True)
    save(store, "tea", Bucket("alice"))
    save(store, "coffee", Bucket("bob"))
    save(store, "milk", Bucket("bob", "coach"))

    assert contents(store, Bucket("carol")) == ["tea", "coffee"]
    assert (list(store.users()), store.agents("carol")) == ([], ["coach"])
    assert store.erase("alice", None).documents == 0
    assert contents(store, Bucket("carol")) == ["tea", "coffee"]


def test_users_are_listed_by_their_ids(store: Store) -> None:
    """Whatever the ids are made of."""
    long = "用户" * 40
    for bucket in (ALICE, Bucket("bob", "coach"), Bucket(long, long), Bucket(long, "Émile")):
        save(store, "The user likes tea", bucket)
    assert set(store.users()) == {"alice@example.com", "bob", long}
    assert store.agents(long) == sorted([long, "Émile"])
    assert store.agents("nobody") == []


def test_a_closed_store_opens_again(store: Store) -> None:
    """Whoever forks closes it before."""
    save(store, "tea")
    store.close()
    assert contents(store) == ["tea"]
    store.close()
    store.probe(ALICE)
    assert store.sweep() == 0
    loaded = store.load(ALICE)
    assert replace(loaded, tombstone=None) == store.peek(ALICE)
    store.inspect(ALICE)
