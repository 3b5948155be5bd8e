"""`memd reextract USER --dry-run`: a memory as it is, beside what the model makes of what was said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import Cli
from support.evaluation_support import fact, update
from support.stores import ours

from memd.config import Settings
from memd.context import Bucket, identity_of_id
from memd.memory.document import Fact
from memd.memory.said.changes import append
from memd.memory.said.turns import Turn
from memd.memory.store.json_store import open_store
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

ANA = Bucket("ana")


def asking(model: ModelServer) -> dict[str, str]:
    return {
        "MEMD_EXTRACTION__EXTRACTOR": "anthropic",
        "MEMD_EXTRACTION__BASE_URL": model.base_url,
        "MEMD_EXTRACTION__API_KEY": "test-key",
    }


def held(number: int, content: str, **fields: Any) -> Fact:
    given: Fact = {"id": f"fact_{number:08x}", "content": content, "category": "context", "confidence": 0.9}
    return {**given, "createdAt": "2026-01-01T00:00:00Z", "source": "t", **fields}


@pytest.fixture
def memory(settings: Settings) -> bytes:
    """A memory of two conversations; returns the document's bytes."""
    quoting = {"evidence": [{"thread": "t", "message": "m0", "quote": "I live in Porto"}]}
    facts = [
        held(1, "The user lives in Porto.", **quoting),
        held(2, "The user is a nurse.", **quoting),
        held(3, "The user owns a boat.", source="manual"),
    ]
    turns = [
        Turn(identity_of_id("t", "m0"), "t", "user", "I live in Porto.", at="2026-11-01T10:00:00.000Z"),
        Turn("x1", "t", "assistant", "Noted.", at="2026-11-01T10:00:05.000Z"),
        Turn("x2", "t", "user", "I own a cello.", at="2026-11-01T15:00:00.000Z"),
    ]
    store = open_store(settings)
    loaded = store.load(ANA)
    store.commit(ANA, loaded, {**loaded.document, "revision": 1, "facts": facts}, ours, said=append(turns))
    return (settings.data_dir / "users" / "ana" / "memory.json").read_bytes()


def test_the_diff_names_what_is_gone_added_and_the_same(
    cli: Cli, settings: Settings, memory: bytes, model: ModelServer
) -> None:
    """Each conversation is asked about at its own time; nothing is written; the cost is printed."""
    model.reply(update(fact("The user lives in Porto.", "I live in Porto")))
    model.reply(update(fact("The user owns a cello.", "I own a cello")))
    told = cli("reextract", "ana", "--dry-run", "--json", **asking(model))
    diff = json.loads(told.stdout)
    assert [fact["content"] for fact in diff["added"]] == ["The user owns a cello."]
    assert [fact["content"] for fact in diff["gone"]] == ["The user is a nurse."]
    assert (diff["same"], diff["reworded"], diff["not_compared"], diff["requests"]) == (1, [], 1, 2)
    assert diff["usd"] > 0
    assert "3 turns in 2 conversations" in told.stderr
    assert "<today>2026-11-01</today>" in json.dumps(model.requests[0].body)
    assert (settings.data_dir / "users" / "ana" / "memory.json").read_bytes() == memory


def test_it_is_told_for_people_and_refused_without_dry_run(cli: Cli, memory: bytes, model: ModelServer) -> None:
    """An outage ends it with the endpoint's code; a memory without turns ends with 1."""
    assert memory
    refused = cli("reextract", "ana", **asking(model))
    assert refused.returncode == 2
    assert "there is only a dry run" in refused.stderr
    assert not model.requests
    assert cli("reextract", "otto", "--dry-run", **asking(model)).returncode == 1
    model.reply(update(fact("The user lives in Porto.", "I live in Porto")))
    model.fail(529)
    broken = cli("reextract", "ana", "--dry-run", **asking(model))
    assert broken.returncode == 70
    assert "- [context | 0.90] The user is a nurse." in broken.stdout
    assert "1 fact the same" in broken.stdout
    assert "later conversations are missing" in broken.stderr
