"""Replies that are no update: one repair, one new attempt, then dead; an endpoint that gives no other is paused."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
import redis
from support import Cli, MakeSettings, daemon, ended, part, wait_for
from support.fault_support import family
from support.inbox_view import look

from memd.client import Memd
from memd.config import Settings
from memd.inbox import verbs
from memd.inbox.breaker import UNFIT, UNFIT_HELP
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

PROSE = "I am sorry, I cannot write JSON."
ASKED_AGAIN = "Your last answer to this request could not be used: bad_reply"


def prompts(model: ModelServer) -> list[str]:
    """The user turns of the requests so far."""
    return [request.body["messages"][-1]["content"] for request in model.requests]


def prose_about(word: str) -> Callable[[str, dict[str, Any]], tuple[str, str]]:
    """The voice of a model that writes prose when a new message has this word."""

    def voice(update: str, request: dict[str, Any]) -> tuple[str, str]:
        said = request["messages"][-1]["content"].rpartition("<messages>")[2]
        return (PROSE if word in said else update), "end_turn"

    return voice


def counted(client: redis.Redis, name: str) -> int:
    """A counter of the inbox."""
    return int(client.hget(f"{verbs.P}:stats", name) or 0)


def turns(*texts: str, name: str = "m") -> list[dict[str, str]]:
    return [{"role": "user", "content": text, "id": f"{name}{number}"} for number, text in enumerate(texts)]


def contents(app: Memd, user: str = "ana") -> list[str]:
    return [fact["content"] for fact in app.document(user)["facts"]]


@pytest.mark.parametrize("max_attempts", [1, 5])
def test_eight_turns_without_an_update_cost_four_calls(
    asking: MakeSettings, model: ModelServer, max_attempts: int
) -> None:
    """Two claims of two calls, whatever `max_attempts`; the second call of each names the error. Then they are dead."""
    model.text(PROSE, times=None)
    settings = asking(drain__max_attempts=max_attempts)
    with Memd(settings) as app, daemon(settings):
        app.push(turns(*(f"I own boat number {n}." for n in range(8))), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"dead": 1}
        [letter] = app.dead()
        found = app.dead_letter(letter.id)
    assert found is not None
    assert (letter.code, letter.attempts, len(found.messages), model.calls) == ("bad_reply", 1, 8, 4)
    assert [ASKED_AGAIN in prompt for prompt in prompts(model)] == [False, True, False, True]


def test_a_repaired_reply_is_stored(asking: MakeSettings, model: ModelServer, client: redis.Redis) -> None:
    """An endpoint whose every other reply is prose loses nothing, and its breaker stays closed."""
    numbers = count()
    model.voice = lambda update, _: (update if next(numbers) % 2 else PROSE, "end_turn")
    settings = asking(drain__concurrency=1)
    with Memd(settings) as app, daemon(settings):
        for number in range(12):
            app.push(turns(f"I own boat {number}."), thread_id="t", user_id=f"user-{number}", now=True)
        assert ended(app) == {"stored": 12}
        assert counted(client, "model_calls") == model.calls == 24
        assert counted(client, "outages") == 0


def test_an_endpoint_that_gives_no_update_pauses_and_nothing_dies(
    asking: MakeSettings, model: ModelServer, client: redis.Redis, cli: Cli
) -> None:
    """Ten replies in a row open the breaker: claims wait, one at a time tries; status and doctor say what to do."""
    model.text(PROSE, times=None)
    settings = asking(drain__backoff_s=0.3, drain__backoff_max_s=0.3)
    with Memd(settings) as app, daemon(settings, workers=2):
        for number in range(40):
            app.push(turns(f"I own boat {number}."), thread_id="t", user_id=f"user-{number}", now=True)
        wait_for(lambda: [pause["code"] for pause in app.status().paused] == [UNFIT], "the breaker is open")
        opened_after = model.calls
        wait_for(lambda: model.calls >= opened_after + 3, "single claims try again")
        assert (app.status().dead, counted(client, "released:formless") <= 5) == (0, True)
        assert UNFIT_HELP in cli("status").stdout
        assert UNFIT_HELP in cli("doctor").stdout
        model.clear()
        assert ended(app) == {"stored": 40}
        wait_for(lambda: app.status().paused == (), "the breaker is closed")


def test_what_came_later_is_not_drawn_into_it(asking: MakeSettings, model: ModelServer) -> None:
    """The second attempt is about the same messages only: newer ones have a request of their own, and are stored."""
    model.voice = prose_about("riddle")
    settings = asking(drain__backoff_s=1, drain__backoff_max_s=1)
    with Memd(settings) as app, daemon(settings):
        app.push(turns("This is a riddle."), thread_id="t", user_id="ana", now=True)
        model.wait_for_calls(2)
        app.push(turns("I own a boat.", name="later"), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 2, "dead": 1}  # of the two pushes that this claim had, one is dead in part
        assert contents(app) == ["I own a boat."]
        [letter] = app.dead()
        model.voice = lambda update, _: (update, "end_turn")
        assert app.retry([letter]) == 1
        assert ended(app) == {"stored": 3}
        assert contents(app) == ["I own a boat.", "This is a riddle."]
    assert model.calls == 6
    assert ASKED_AGAIN not in prompts(model)[5]


def test_a_worker_killed_before_the_repair_forgets_no_reply(
    asking: MakeSettings, model: ModelServer, client: redis.Redis
) -> None:
    """The count is kept before each call, so a killed worker costs the call in its hand and no more."""
    model.text(PROSE)
    settings = asking(drain__lease_s=120)
    with Memd(settings) as app, daemon(settings) as (_, worker):
        model.answer(delay_s=30)
        app.push(turns("I own a boat."), thread_id="t", user_id="ana", now=True)
        model.wait_for_calls(2)
        model.text(PROSE, times=None)
        [claim] = look(client).claims.values()
        assert claim[".formless"].endswith(":1}")
        os.kill(family(worker.pid)[1], signal.SIGKILL)
        assert ended(app) == {"dead": 1}
    assert model.calls == 5  # the fourth reply without an update was the last; the call of the killed worker had none


def test_a_long_claim_is_halved_and_a_half_without_an_update_dies_alone(
    asking: Callable[..., Settings], model: ModelServer
) -> None:
    """Each half has its own four calls; what the halving stored stays stored."""
    prose = prose_about("riddle")

    def voice(update: str, request: dict[str, Any]) -> tuple[str, str]:
        said = request["messages"][-1]["content"].rpartition("<messages>")[2]
        return ('{"newFacts": [', "max_tokens") if "endless" in said and "riddle" in said else prose(update, request)

    model.voice = voice
    settings = asking()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        app.push(turns("An endless story.", "This is a riddle."), thread_id="t", user_id="ana", now=True)
        assert ended(app) == {"stored": 1, "dead": 1}
        assert contents(app) == ["An endless story."]
    assert model.calls == 1 + 1 + 4
