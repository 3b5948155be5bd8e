"""A claim that the model cannot take is halved until the guilty messages are alone; the others are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support import ended, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.testing import ModelServer, Refused

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]


def refuse(model: ModelServer, status: int, *words: str) -> None:
    """Let the model return a status when a request contains one of the words, as new text or as context."""
    answer = model.responder

    def responder(request: dict[str, Any]) -> dict[str, Any]:
        if any(word in str(request["messages"]) for word in words):
            raise Refused(status, "prompt is too long: 9 tokens > 8 maximum" if status == 400 else "scripted")
        return answer(request)

    model.responder = responder


def conversation(*texts: str) -> list[dict[str, str]]:
    turns = []
    for number, text in enumerate(texts):
        turns.append({"role": "user", "content": text, "id": f"u{number}"})
        turns.append({"role": "assistant", "content": f"Reply {number} to it.", "id": f"a{number}"})
    return turns


def contents(app: Memd) -> list[str]:
    return [fact["content"] for fact in app.document("ana")["facts"]]


OWNED = [f"I own boat number {number}." for number in range(9)]


@pytest.mark.parametrize("place", [0, 4, 8])
@pytest.mark.parametrize("status", [400, 413])
def test_one_message_too_long_dies_alone(
    asking: Callable[..., Settings], model: ModelServer, place: int, status: int
) -> None:
    """L3: one of ten turns is too long: it is dead with its code, the nine others are stored in order."""
    refuse(model, status, "endless")
    settings = asking()
    texts = [*OWNED[:place], "an endless story", *OWNED[place:]]
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        pushed = app.push(conversation(*texts), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1, "dead": 1}
        assert contents(app) == OWNED
        [letter] = app.dead()
        found = app.dead_letter(letter.id)
        outcome = app.receipt(pushed.id or "")
        status_now = app.status()
    assert found is not None
    assert [message["content"] for message in found.messages] == ["an endless story"]
    assert (outcome.state, outcome.counts, len(outcome.fact_ids)) == ("dead", {"dead": 1, "stored": 1}, 9)
    assert (status_now.claimed, status_now.pending) == (0, 0)
    assert model.calls <= 16


def test_a_reply_that_is_too_long_dies_alone(asking: Callable[..., Settings], model: ModelServer) -> None:
    """When a question passes alone, its reply is to blame."""
    refuse(model, 413, "Reply 1 to it")
    settings = asking()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        app.push(conversation(*OWNED[:3]), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1, "dead": 1}
        assert contents(app) == OWNED[:3]
        [letter] = app.dead()
        found = app.dead_letter(letter.id)
    assert found is not None
    assert [message["content"] for message in found.messages] == ["Reply 1 to it."]


def test_a_single_message_too_long_dies_at_once(asking: Callable[..., Settings], model: ModelServer) -> None:
    """A single message cannot be split, and a retry would not be shorter: one call, no retries."""
    refuse(model, 413, "endless")
    settings = asking(drain__max_attempts=5)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        turns = [{"role": "user", "content": "an endless story", "id": "1"}]
        app.push(turns, thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"dead": 1}
    assert model.calls == 1


def test_what_is_refused_each_time_is_halved_on_the_last_attempt(
    asking: Callable[..., Settings], model: ModelServer
) -> None:
    """A refusal costs attempts; the last one finds the message that the model refuses, and stores the rest."""
    model.voice = lambda update, request: (
        ("I will not.", "refusal") if "riddle" in str(request["messages"]) else (update, "end_turn")
    )
    settings = asking(drain__max_attempts=2)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        app.push(conversation(*OWNED[:5], "a riddle", *OWNED[5:]), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1, "dead": 1}
        assert contents(app) == OWNED
        assert len(app.dead()) == 1


def test_an_outage_in_the_middle_of_it_loses_nothing(asking: Callable[..., Settings], model: ModelServer) -> None:
    """Stored halves stay stored; the rest waits for the model, then continues."""
    refuse(model, 413, "endless")
    settings = asking()
    texts = [*OWNED[:6], "an endless story", *OWNED[6:]]
    model.answer(times=2)
    model.fail(529, times=2)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        app.push(conversation(*texts), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1, "dead": 1}
        assert contents(app) == OWNED
        assert len(app.dead()) == 1
        wait_for(lambda: app.status().paused == (), "the breaker is closed")
