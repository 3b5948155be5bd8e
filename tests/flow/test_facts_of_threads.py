"""Session facts from a push to the prompt: only their conversation sees them, and a day after it they are over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from flow.test_forgetting import new_fact, teller
from support import MakeSettings, daemon

from memd.adapters.longterm import LongTermMemory
from memd.client import Memd
from memd.memory import scoped
from memd.memory.document import archive_of
from memd.memory.scoped import NOWHERE, Places
from memd.push.times import moment
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

SAID = {
    "en": ("In this conversation answer me in French, please.", "The user wants answers in French"),
    "zh": ("这次对话请用法语回答我。", "用户希望用法语得到回答"),
}


def of_thread(content: str, quote: str, **fields: Any) -> dict[str, Any]:
    """What the model labels as true in this conversation only."""
    return new_fact(content, quote, category="preference", scope="thread", durability="temporary") | fields


def prompts(model: ModelServer) -> list[str]:
    """The user turns of all requests."""
    return [str(request.body["messages"][-1]["content"]) for request in model.requests]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_conversation_sees_its_own_facts_and_no_other_does(
    asking: MakeSettings, model: ModelServer, language: str
) -> None:
    """In prompts, searches, lists and requests; what is then said for good holds everywhere."""
    said, content = SAID[language]
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        tell = teller(app, model)
        stored = tell(said, thread="t1", newFacts=[of_thread(content, said)])
        assert (stored.state, stored.refused, len(stored.fact_ids)) == ("stored", {}, 1)
        [fact] = scoped.facts_of(app.document("ana"))
        end, last = moment(fact["validUntil"]), moment(fact["saidAt"])
        assert end is not None
        assert last is not None
        assert (end - last).total_seconds() == 86_400

        assert content in app.inject("ana", thread_id="t1")
        assert app.inject("ana") == app.inject("ana", thread_id="t2") == ""
        assert next(hit.fact["id"] for hit in app.search("ana", content, thread_id="t1")) == fact["id"]
        assert fact["id"] not in [hit.fact["id"] for hit in app.search("ana", content, thread_id="t2")]
        assert app.search("ana", content, include_said=False) == []
        assert app.facts("ana", places=NOWHERE) == app.facts("ana", places=Places("t2")) == []
        assert [one["id"] for one in app.facts("ana", places=Places("t1"))] == [fact["id"]]

        tell("I work as a nurse.", thread="t2")
        assert content.removeprefix("The user ").removeprefix("用户") not in prompts(model)[-1]
        tell("Go on, I like tea.", thread="t1")
        assert content.removeprefix("The user ").removeprefix("用户") in prompts(model)[-1]
        assert "in this conversation only" in prompts(model)[-1]
        [later] = scoped.facts_of(app.document("ana"))
        assert later["validUntil"] > fact["validUntil"]

        tell(said, "Always!", thread="t3", newFacts=[new_fact(content, said, category="preference")])
        document = app.document("ana")
        assert scoped.facts_of(document) == []
        [lasting] = [one for one in document["facts"] if one["content"] == content]
        assert [(one["id"], one["replacedBy"]) for one in archive_of(document)] == [(fact["id"], lasting["id"])]
        assert content in app.inject("ana")


def test_adapters_name_their_conversation(asking: MakeSettings, model: ModelServer) -> None:
    """An agent's long-term memory has the facts of its own thread, in its block and to its tool."""
    said, content = SAID["en"]
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        teller(app, model)(said, thread="t1", newFacts=[of_thread(content, said)])
        own = LongTermMemory(app, user_id="ana", thread_id="t1")
        other = LongTermMemory(app, user_id="ana", thread_id="t2")
        asked = {"role": "user", "content": "Which language do I want answers in?"}
        assert content in asyncio.run(own.retrieve(asked))
        assert content in str(asyncio.run(own.retrieve_from_memory(["answers in French"])))
        assert content not in asyncio.run(other.retrieve(asked))
        assert content not in str(asyncio.run(other.retrieve_from_memory(["answers in French"])))


def test_switched_off_nothing_is_kept_of_one_conversation(asking: MakeSettings, model: ModelServer) -> None:
    """`apply.session_facts: false` refuses such facts, as before there were any."""
    said, content = SAID["en"]
    settings = asking(apply={"session_facts": False})
    with daemon(settings), Memd(settings) as app:
        refused = teller(app, model)(said, thread="t1", newFacts=[of_thread(content, said)])
        assert refused.refused == {"not_user_scope": 1}
        assert scoped.facts_of(app.document("ana")) == []


def test_a_conversation_of_long_ago_brings_nothing(asking: MakeSettings, model: ModelServer) -> None:
    """What held only there was over before it came; the rest of it is kept."""
    said, content = SAID["en"]
    settings = asking()
    with daemon(settings), Memd(settings) as app:
        lasting = new_fact("The user has a cabin", "We own a cabin.")
        lasting["evidence"][0]["message"] = 1
        model.reply(
            {"newFacts": [of_thread(content, said), lasting], "confirmedFacts": [], "retiredFacts": [], "summaries": {}}
        )
        turns = [
            {"role": "user", "content": text, "created_at": "2026-03-01T10:00:00Z"}
            for text in (said, "We own a cabin.")
        ]
        receipt = app.push(turns, thread_id="old", user_id="ana")
        app.flush(wait=True)
        assert app.receipt(receipt.id or "").refused == {"expired": 1}
        document = app.document("ana")
        assert ([one["content"] for one in document["facts"]], archive_of(document)) == (["The user has a cabin"], [])
