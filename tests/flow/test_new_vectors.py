"""Vectors of new facts in a running daemon: made after the commit, and never at the cost of a fact."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import redis
from support import MakeSettings, daemon, ended, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.memory.store.json_store import open_store
from memd.recall.embedded import Embedded, VectorCounts
from memd.testing import EmbeddingServer

pytestmark = pytest.mark.timing


@pytest.fixture
def embedder() -> Iterator[EmbeddingServer]:
    """An embedder that answers."""
    with EmbeddingServer() as server:
        yield server


@pytest.fixture
def chosen(configured: MakeSettings, client: redis.Redis, embedder: EmbeddingServer) -> Settings:
    """Settings with this embedder."""
    return configured(vectors__url=embedder.base_url, vectors__model="m", vectors__query_s=30)


def held(settings: Settings) -> VectorCounts:
    return Embedded(settings, open_store(settings)).look(Bucket("ana"))


def log_of(settings: Settings) -> str:
    return "".join(file.read_text() for file in settings.data_dir.glob("worker*.log"))


def say(app: Memd, text: str, name: str) -> None:
    messages = [
        {"role": "user", "content": text, "id": name},
        {"role": "assistant", "content": "I see.", "id": f"{name}a"},
    ]
    app.push(messages, thread_id="t", user_id="ana", now=True)


def test_a_new_fact_gets_its_vector_and_is_found_by_it(chosen: Settings, embedder: EmbeddingServer) -> None:
    """In any language; only the facts are sent, not what was said."""
    with Memd(chosen) as app, daemon(chosen):
        say(app, "My name is Ana.", "1")
        assert ended(app) == {"stored": 1}
        say(app, "我住在杭州。", "2")
        assert ended(app) == {"stored": 2}
        wait_for(lambda: held(chosen) == VectorCounts(2, 0), "both facts have their vectors")
        contents = [fact["content"] for fact in app.document("ana")["facts"]]
        found = app.search("ana", "Whats her naame? Anna?")
    assert set(embedder.texts[:-1]) == set(contents)  # worker and scheduler may both have asked
    assert "Ana" in found[0].fact["content"]
    assert found.words_only == ""


def test_a_failing_embedder_costs_no_fact_and_is_made_up_for(chosen: Settings, embedder: EmbeddingServer) -> None:
    """The receipt says stored, the log says why there is no vector, and the next commit makes both."""
    with Memd(chosen) as app:
        embedder.fail(503, times=1_000)
        with daemon(chosen):
            say(app, "I live in Porto.", "1")
            assert ended(app) == {"stored": 1}
            wait_for(lambda: "vectors_delayed" in log_of(chosen), "the failure is logged")
        assert "E_EMBEDDER_STATUS_503" in log_of(chosen)
        assert "Porto" not in log_of(chosen)
        assert held(chosen) == VectorCounts(1, 1)
        embedder.recover()
        with daemon(chosen):
            say(app, "My name is Ana.", "2")
            assert ended(app) == {"stored": 2}
            wait_for(lambda: held(chosen) == VectorCounts(2, 0), "both facts have vectors")


def test_a_worker_that_waits_for_the_embedder_stops_in_time(chosen: Settings, embedder: EmbeddingServer) -> None:
    """The fact is stored and acknowledged by then."""
    embedder.hold()
    with Memd(chosen) as app, daemon(chosen) as (_, worker):
        say(app, "I live in Porto.", "1")
        assert ended(app) == {"stored": 1}
        wait_for(lambda: embedder.texts, "the embedder is asked")
        worker.terminate()
        assert worker.wait(60) == 0
        assert len(app.document("ana")["facts"]) == 1
