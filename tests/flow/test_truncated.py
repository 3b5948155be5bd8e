"""Truncated replies: the claim is asked about in halves, one dense message in pieces, and all of it is one commit."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest
import redis
from support import MakeSettings, daemon, ended, part, wait_for
from support.fault_support import family

from memd.client import Memd
from memd.config import Settings
from memd.extraction.prompt import parse_messages
from memd.testing import ModelServer
from memd.workers import ask
from memd.workers.drain import Drain

pytestmark = pytest.mark.timing

FACTS = [f"I own boat number {number}." for number in range(60)]
ROOM = 9
"""Facts that fit into one reply."""


def one_fact_a_sentence(request: dict[str, Any]) -> dict[str, Any]:
    """A fact for each sentence of the new messages."""
    facts = [
        fact(sentence, message.number)
        for message in parse_messages(request["messages"][-1]["content"])
        if message.role == "user"
        for sentence in re.findall(r"I own [^.。]*[.。]", message.content)
    ]
    return {"newFacts": facts, "summaries": {"topOfMind": f"Boats up to {facts[-1]['content']}"} if facts else {}}


def fact(sentence: str, number: int) -> dict[str, Any]:
    return {
        "content": sentence,
        "category": "context",
        "confidence": 0.9,
        "scope": "user",
        "durability": "durable",
        "authority": "descriptive",
        "evidence": [{"message": number, "quote": sentence}],
    }


def brief(update: str, _: dict[str, Any]) -> tuple[str, str]:
    """A voice with room for some facts; a reply with more breaks off in the midst of the next one."""
    facts = json.loads(update)["newFacts"]
    if len(facts) <= ROOM:
        return update, "end_turn"
    return update[: update.index(json.dumps(facts[ROOM], ensure_ascii=False)) + 20], "max_tokens"


def dense(text: str) -> list[dict[str, str]]:
    return [
        {"role": "user", "content": text, "id": "u"},
        {"role": "assistant", "content": "That is a fleet.", "id": "a"},
    ]


def contents(app: Memd) -> list[str]:
    return [fact["content"] for fact in app.document("ana")["facts"]]


@pytest.mark.parametrize(
    "text",
    [
        " ".join(FACTS),
        "\n\n".join(" ".join(FACTS[n : n + 5]) for n in range(0, 60, 5)),
        "\n".join(f"* {fact}" for fact in FACTS),
        "。".join(FACTS),
    ],
    ids=["sentences", "paragraphs", "list", "cjk"],
)
def test_all_facts_of_one_message_are_stored_in_one_commit(asking: MakeSettings, model: ModelServer, text: str) -> None:
    """60 facts, nine to a reply: the message is asked about in pieces, and its document is written once."""
    model.responder, model.voice = one_fact_a_sentence, brief
    settings = asking()
    with Memd(settings) as app, daemon(settings):
        app.push(dense(text), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1}
        document = app.document("ana")
        app.push(dense(text), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1, "skipped": 1}  # the whole message and its reply are known
    assert [fact["content"].rstrip("。") for fact in document["facts"]] == [fact.rstrip("。") for fact in FACTS]
    assert (document["revision"], document["user"]["topOfMind"]["summary"]) == (1, f"Boats up to {FACTS[-1]}")
    assert model.calls <= 2 * 12 - 1  # each reply holds five facts at least, so there are at most twelve pieces


def test_what_cannot_be_split_gives_its_complete_items(asking: MakeSettings, model: ModelServer) -> None:
    """A sentence with more than a reply has room for: the facts in front of the break are stored, and nothing dies."""

    text = json.dumps({"newFacts": [fact("I own boat 0", 0), fact("I own boat 1", 0)]})
    model.text(text[: text.rindex("boat 1")], stop_reason="max_tokens", times=None)
    settings = asking()
    with Memd(settings) as app, daemon(settings):
        app.push(dense("I own boat 0 and I own boat 1"), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1}
        assert contents(app) == ["I own boat 0"]
    assert model.calls == 1


def test_more_facts_than_one_reply_may_have_are_all_stored(asking: MakeSettings, model: ModelServer) -> None:
    """250 turns with a fact each are asked about in halves; of 201 facts of one sentence the last is counted."""
    model.responder = one_fact_a_sentence
    facts = [f"I own boat number {number}." for number in range(250)]
    turns = [{"role": "user", "content": said, "id": f"{number}"} for number, said in enumerate(facts)]
    settings = asking(apply__max_facts=500)
    with Memd(settings) as app, daemon(settings):
        app.push(turns, thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1}
        assert (contents(app), model.calls) == (facts, 3)
        many = [{**fact("I own boats", 0), "content": f"The user owns boat x{n}."} for n in range(201)]
        model.text(json.dumps({"newFacts": many}), times=None)
        app.push(dense("I own boats"), thread_id="t2", user_id="leo", now=True)
        assert ended(app) == {"stored": 2}
        assert (len(app.document("leo")["facts"]), app.status().refused) == (200, {"too_many_items": 1})


def test_turns_are_asked_about_in_halves(asking: MakeSettings, model: ModelServer) -> None:
    """Sixty turns: halves that fit are stored as they are, in order; no message is in pieces, and no reply is dead."""
    model.responder, model.voice = one_fact_a_sentence, brief
    settings = asking()
    turns = [
        turn
        for number, fact in enumerate(FACTS)
        for turn in (
            {"role": "user", "content": fact, "id": f"u{number}"},
            {"role": "assistant", "content": "Noted.", "id": f"a{number}"},
        )
    ]
    with Memd(settings) as app, daemon(settings):
        app.push(turns, thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1}
        assert contents(app) == FACTS
    assert model.calls == 15


@pytest.mark.parametrize("how", ["outage", "killed"])
def test_an_interruption_between_the_pieces_stores_nothing_twice(
    asking: Callable[..., Settings], client: redis.Redis, model: ModelServer, how: str
) -> None:
    """Nothing is stored before all pieces are answered. After an outage the answered ones are not paid again."""
    model.responder, model.voice = one_fact_a_sentence, brief
    model.answer(times=3)
    if how == "outage":
        model.fail(529)
    else:
        model.answer(delay_s=30)
    settings = asking(drain__lease_s=120)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings) as worker:
        app.push(dense(" ".join(FACTS[:36])), thread_id="t", user_id="ana", now=True)
        model.wait_for_calls(4)
        assert not app.document("ana").get("facts")
        if how == "killed":
            os.kill(family(worker.pid)[1], signal.SIGKILL)
        assert ended(app) == {"stored": 1}
        wait_for(lambda: app.status().claimed == 0, "the claim has ended")
        assert contents(app) == FACTS[:36]
        assert app.document("ana")["revision"] == 1
    assert (
        model.calls == {"outage": 4 + 4, "killed": 4 + 7}[how]
    )  # 36 facts: seven calls for wholes, halves and quarters


class OneClaim(Drain):
    """A drain that claims once."""

    async def _work(self) -> None:
        await self._top_up()


def test_a_drain_without_time_for_another_call_hands_the_rest_on(
    asking: MakeSettings, model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RQ ends a drain that takes too long. What its calls brought is kept, and the next drains go on from there."""

    def voice(update: str, request: dict[str, Any]) -> tuple[str, str]:
        monkeypatch.setattr(ask, "LAST_CALL_S", 0)  # each call takes all the time that its drain has
        return brief(update, request)

    model.responder, model.voice = one_fact_a_sentence, voice
    settings = asking()
    with Memd(settings) as app:
        app.push(dense(" ".join(FACTS[:36])), thread_id="t", user_id="ana", now=True)
        for drains in range(1, 8):
            assert app.status().stored == 0
            monkeypatch.setattr(ask, "LAST_CALL_S", 1_000)
            asyncio.run(OneClaim(settings, "here:1:aa").run())
            assert model.calls == drains
        assert contents(app) == FACTS[:36]
        assert app.document("ana")["revision"] == 1
