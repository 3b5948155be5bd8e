"""Edits by hand while a worker is in its model call or its commit: neither is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import redis
from support import daemon, part, wait_for
from support.fault_stores import KeptStore

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.memory.hand.editing import Editing
from memd.memory.store.protocol import NO_IDENTITIES, Identities, Loaded
from memd.testing import ModelServer

pytestmark = pytest.mark.timing


def contents(app: Memd) -> list[str]:
    """The contents of Ana's facts."""
    return [fact["content"] for fact in app.facts("ana")]


def test_an_edit_during_a_model_call_is_not_lost(asking: Callable[..., Settings], model: ModelServer) -> None:
    """The model answers about a memory that was edited meanwhile: both the edit and the answer are there."""
    settings = asking()
    with Memd(settings) as hand, daemon(settings):
        fact_id = hand.add_fact("ana", "Lives in Porto")
        model.hold()
        hand.push([{"role": "user", "content": "I play the cello.", "id": "1"}], thread_id="t", user_id="ana", now=True)
        model.wait_for_calls(1)
        hand.edit_fact("ana", fact_id, content="Lives in Lisbon")
        hand.add_fact("ana", "喜欢短的回答")
        model.go_on()
        hand.flush(user_id="ana", wait=True)
        assert contents(hand) == ["Lives in Lisbon", "喜欢短的回答", "I play the cello."]


def test_a_fact_removed_during_a_model_call_does_not_come_back(
    asking: Callable[..., Settings], model: ModelServer
) -> None:
    """What the model says again, from the same conversation or later, is refused, and the receipt says why."""
    settings = asking()
    turn = {"role": "user", "content": "I play the cello.", "id": "1"}
    with Memd(settings) as hand, daemon(settings):
        hand.push([turn], thread_id="t", user_id="ana", now=True)
        hand.flush(user_id="ana", wait=True)
        (fact,) = hand.facts("ana")
        model.hold()
        again = {**turn, "content": "我说过：I play the cello.", "id": "2"}
        model.reply({"newFacts": [wanted("I play the CELLO", [{"message": 0, "quote": "I play the cello"}])]})
        receipt = hand.push([turn, again], thread_id="t", user_id="ana", now=True)
        model.wait_for_calls(2)
        hand.remove_fact("ana", fact["id"])
        model.go_on()
        hand.flush(user_id="ana", wait=True)
        assert hand.facts("ana") == []
        assert hand.receipt(receipt.id or "").refused == {"removed": 1}
        assert hand.document("ana")["removed"][0]["threads"] == ["t"]


def wanted(content: str, evidence: list[dict[str, Any]]) -> dict[str, Any]:
    """A fact as the model proposes it."""
    return {
        "content": content,
        "category": "context",
        "confidence": 0.9,
        "scope": "user",
        "durability": "durable",
        "authority": "descriptive",
        "evidence": evidence,
    }


class NotingStore(KeptStore):
    """Notes its first load."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings.data_dir, settings.store)
        self.loaded = threading.Event()

    def load(self, bucket: Bucket, identities: Identities = NO_IDENTITIES) -> Loaded:
        """Load, and say so."""
        found = super().load(bucket, identities)
        self.loaded.set()
        return found


def test_an_edit_that_meets_a_commit_is_done_again(configured: Callable[..., Settings], client: redis.Redis) -> None:
    """A worker stands in its commit, with the lock, when the edit has loaded: both are there afterwards."""
    settings, hanging = configured(), configured(store__class="support.fault_stores.HangingStore")
    store = NotingStore(settings)
    turn = {"role": "user", "content": "I live in Porto.", "id": "1"}
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with (
        Memd(settings) as hand,
        part("scheduler", hanging),
        part("worker", hanging, paths),
        ThreadPoolExecutor(1) as threads,
    ):
        hand.push([turn], thread_id="t", user_id="ana", now=True)
        wait_for((settings.data_dir / "in-commit").exists, "the worker is in its commit")
        added = threads.submit(Editing(settings, store).add, Bucket("ana"), "喜欢短的回答")
        assert store.loaded.wait(20)
        (settings.data_dir / "go").touch()
        assert added.result(20).changed
        hand.flush(user_id="ana", wait=True)
        found = [fact["content"] for fact in hand.facts("ana")]
    assert len(found) == 2
    assert "喜欢短的回答" in found
