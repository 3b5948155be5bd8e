"""Reads and scopes: who names a conversation sees its facts, and nothing of them is in any other read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.recall_support import ANA, document, fact, reader, store, turn, write

from memd.context import Bucket
from memd.errors import FactUnknown
from memd.memory.document import Document, Fact
from memd.memory.facts import SCOPED
from memd.memory.ledger import name_of
from memd.memory.scoped import NOWHERE, Places
from memd.memory.store.paths import FILE, folder
from memd.push.times import iso
from memd.recall.inject import IN_SESSION, fact_line

NOW = datetime.now(UTC)


def scoping(*facts: Fact, bucket: Bucket = ANA) -> Document:
    """A document with these facts, those of a scope apart."""
    apart = [one for one in facts if "scope" in one]
    return {**document(*(one for one in facts if one not in apart), bucket=bucket), SCOPED: apart}


def of_session(fact_id: str, content: str, **fields: Any) -> Fact:
    """A session fact of t1."""
    return fact(fact_id, content, scope="session", scopeId="t1", **fields)


SOON = iso(datetime.now(UTC) + timedelta(hours=5))


def memory() -> Document:
    """Lasting facts, those of two threads, and a private one of a project."""
    return scoping(
        fact("tea", "Likes green tea"),
        fact("home", "Lives in Porto"),
        fact("cello", "Plays the cello"),
        fact("one", "Wants green tea with ice", 0.9, scope="session", scopeId="t1", validUntil=SOON),
        fact("two", "Wants green tea without ice", 0.9, scope="session", scopeId="t2", validUntil=SOON),
        fact("over", "Wanted green cake", 0.9, scope="session", scopeId="t1", validUntil=iso(NOW - timedelta(days=99))),
        fact("private", "Plans a green tea shop", 0.9, scope="project", scopeId="atlas"),
    )


def lasting() -> Document:
    """The same without all that."""
    return document(*memory()["facts"])


def found(app: Any, query: str = "green tea", **named: Any) -> list[str]:
    """The ids that a search finds."""
    return [hit.fact["id"] for hit in app.search("ana", query, **named)]


def test_only_a_read_that_names_the_thread_sees_its_facts(data_dir: Path) -> None:
    """By search, block, list, account and document; naming another thread shows that one's alone."""
    write(data_dir, memory())
    app = reader(data_dir)
    assert found(app) == ["tea"]
    assert found(app, thread_id="t3") == ["tea"]
    assert found(app, thread_id="t1") == ["one", "tea"]
    assert found(app, thread_id="t2") == ["two", "tea"]
    assert "ice" not in app.inject("ana")
    assert "with ice (in this conversation)" in app.inject("ana", thread_id="t1")
    assert "without ice" not in app.inject("ana", thread_id="t1")
    assert "green cake" not in app.inject("ana", thread_id="t1")
    assert [one["id"] for one in app.facts("ana", places=NOWHERE)] == ["tea", "home", "cello"]
    assert [one["id"] for one in app.facts("ana", scopes=["session"], places=Places("t2"))] == ["two"]
    assert [one["id"] for one in app.seen_document("ana", thread_id="t2")["facts"]] == ["tea", "home", "cello", "two"]
    assert app.why("ana", "one", thread_id="t1")["scopeId"] == "t1"
    for thread in (None, "t2"):
        with pytest.raises(FactUnknown):
            app.why("ana", "one", thread_id=thread)


def test_a_read_without_the_thread_changes_with_nothing_of_sessions(data_dir: Path, tmp_path: Path) -> None:
    """Scores, order, blocks and their versions are those of a memory without session facts, and so are its excerpts."""
    turns = [
        turn("i1", "I want green tea with ice now.", thread="t1"),
        turn("i2", "My cello is from Porto.", thread="t9"),
    ]
    quoted = memory()
    quoted[SCOPED][0]["evidence"] = [{"thread": "t1", "message": "i1", "quote": "I want green tea with ice now."}]
    store(data_dir, quoted, *turns)
    store(tmp_path, lasting(), *turns)
    with_sessions, without = reader(data_dir), reader(tmp_path)
    for query in ("green tea", "ice", "cello in Porto", "cake"):
        assert with_sessions.injection("ana", query=query) == without.injection("ana", query=query)
        ours, theirs = with_sessions.search("ana", query), without.search("ana", query)
        assert [(hit.fact["id"], hit.score, hit.similarity) for hit in ours] == [
            (hit.fact["id"], hit.score, hit.similarity) for hit in theirs
        ]
        found(with_sessions, query, thread_id="t1")  # what a thread has read before changes nothing either
    assert with_sessions.injection("ana") == without.injection("ana")


def test_the_block_of_each_asker_is_cached_apart(data_dir: Path) -> None:
    """An event loop gets the block of the thread that it names, or none at all."""
    write(data_dir, memory())
    app = reader(data_dir)
    bucket = Bucket("ana")
    assert app.injection_at_hand(bucket, thread_id="t1") is None
    plain = app.injection("ana")
    assert app.injection_at_hand(bucket, thread_id="t1") is None
    one = app.injection("ana", thread_id="t1")
    assert app.injection_at_hand(bucket, thread_id="t1") == one != plain
    assert app.injection_at_hand(bucket) == app.injection_at_hand(bucket, thread_id="t3") == plain
    for number in range(9):
        app.injection("ana", thread_id=f"t{number}")
    write(data_dir, lasting())
    assert app.injection_at_hand(bucket, thread_id="t1") is None
    assert app.injection("ana", thread_id="t1") == plain


def test_a_session_fact_ranks_by_its_score_among_the_others(data_dir: Path) -> None:
    """0.5 similarity + 0.3 confidence + 0.2 scope, in one list."""
    write(data_dir, memory())
    hits = reader(data_dir).search("ana", "green tea", thread_id="t1")
    assert [(hit.fact["id"], hit.scope) for hit in hits] == [("one", 1.0), ("tea", 0.6)]
    for hit in hits:
        assert hit.score == pytest.approx(0.5 * hit.similarity + 0.3 * 0.9 + 0.2 * hit.scope)


def test_the_facts_of_a_session_end_the_list_of_a_block(data_dir: Path) -> None:
    """They change most, so that a cache of prefixes holds the lines before them; with little room they come first."""
    write(data_dir, memory())
    app = reader(data_dir)
    lines = app.inject("ana", thread_id="t1").splitlines()
    assert [line for line in lines if line.startswith("- [")][-1].endswith("with ice (in this conversation)")
    small = app.inject("ana", thread_id="t1", max_tokens=40)
    assert "with ice" in small
    assert "cello" not in small


def test_what_lasts_is_not_shown_twice(data_dir: Path) -> None:
    """A session fact that says what the memory says is left out where both are seen."""
    held = scoping(fact("tea", "Likes green tea"), fact("again", "likes green tea.", scope="session", scopeId="t1"))
    write(data_dir, held)
    assert found(reader(data_dir), thread_id="t1") == ["tea"]


def test_a_thread_sees_the_session_facts_of_both_memories(data_dir: Path) -> None:
    """Those of the agent that is asked, and those of the user's own."""
    write(data_dir, memory())
    own = fact("chef", "Cooks green tea noodles", scope="session", scopeId="t1", validUntil=SOON)
    write(data_dir, scoping(own, bucket=Bucket("ana", "chef")))
    app = reader(data_dir)
    assert found(app, agent_name="chef") == ["tea"]
    assert set(found(app, agent_name="chef", thread_id="t1")) == {"one", "tea", "chef"}
    assert set(found(app, thread_id="t1")) == {"one", "tea"}


def test_archived_session_facts_are_seen_by_their_thread_alone(data_dir: Path) -> None:
    """Also by `why`, and by what it says of other facts."""
    ended = of_session("old", "Wanted cake", archivedAt=iso(NOW), archiveReason="replaced", replacedBy="tea")
    write(data_dir, {**memory(), "archive": [ended]})
    app = reader(data_dir)
    assert app.facts("ana", status="archived", places=NOWHERE) == []
    assert app.why("ana", "old", thread_id="t1")["status"] == "superseded"
    with pytest.raises(FactUnknown):
        app.why("ana", "old")


def test_in_a_store_that_all_share_a_thread_is_its_users(data_dir: Path) -> None:
    """Two users may name their threads alike; each sees the facts of their own."""
    names = {user: name_of("t1", user, shared=True) for user in ("ana", "bob")}
    own = fact("f1", "Wants green tea with ice", scope="session", scopeId=names["ana"], validUntil=SOON)
    made = {**scoping(fact("tea", "Likes green tea"), own), "userId": ""}
    app = reader(data_dir, store={"shared": True})
    file = folder(data_dir, Bucket(""), shared=True) / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(orjson.dumps(made))
    assert found(app, thread_id="t1") == ["f1", "tea"]
    assert [hit.fact["id"] for hit in app.search("bob", "green tea", thread_id="t1")] == ["tea"]
    assert [one["id"] for one in app.facts("ana", places=Places("t1"))] == ["tea", "f1"]
    assert [one["id"] for one in app.facts("bob", places=Places("t1"))] == ["tea"]
    assert "ice" in app.inject("ana", thread_id="t1")
    assert "ice" not in app.inject("bob", thread_id="t1")


def test_a_pending_message_is_of_no_conversation_that_is_named() -> None:
    """Its line does not claim to be of the conversation that asks."""
    assert IN_SESSION not in fact_line(fact("pending_1", "I like tea", scope="session"))
    assert fact_line(of_session("one", "Likes tea")).endswith(IN_SESSION)
