"""S3: the server's clock steps; no key is stuck, nothing is lost or stored twice. Needs a C compiler."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from support import Step, make_settings, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.errors import ModelUnavailable
from memd.extraction import endpoint
from memd.inbox import verbs
from memd.inbox.breaker import trip
from memd.inbox.connection import connect, send
from memd.inbox.verbs import P
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

HOUR, DECADE = 3_600, 10 * 31_557_600


@pytest.fixture
def settings(data_dir: Path, model: ModelServer) -> Settings:
    """A server of the test's own, and the HTTP model."""
    return make_settings(
        data_dir,
        None,
        extraction__extractor="anthropic",
        extraction__base_url=model.base_url,
        extraction__api_key="test-key",
        drain__lease_s=1,
        drain__max_attempts=3,
    )


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """The HTTP model."""
    with ModelServer() as found:
        yield found


def push(app: Memd, number: int, *, now: bool = False) -> None:
    turns = [{"role": "user", "content": f"I own boat number {number}.", "id": f"m{number}"}]
    app.push(turns, thread_id=f"t{number}", user_id=f"user-{number}", now=now)


def stored_once(app: Memd, numbers: range) -> bool:
    return all(len(app.document(f"user-{number}")["facts"]) == 1 for number in numbers)


@pytest.mark.parametrize("seconds", [-HOUR, HOUR, DECADE])
def test_what_is_pending_is_not_stuck(settings: Settings, step: Step, seconds: int) -> None:
    """Keys that wait for their quiet time are stored soon after the step; their documents have the server's time."""
    with Memd(settings) as app, connect(settings) as client, part("scheduler", settings), part("worker", settings):
        wait_for(lambda: app.status().workers, "the worker listens")
        for number in range(10):
            push(app, number)
        step(seconds)
        wait_for(lambda: stored_once(app, range(10)), "all is stored", timeout_s=40)
        written = datetime.fromisoformat(app.document("user-9")["lastUpdated"])
        assert abs(written.timestamp() - int(client.time()[0])) < HOUR / 2


@pytest.mark.parametrize("seconds", [-HOUR, HOUR, DECADE])
def test_what_is_claimed_is_not_stuck(settings: Settings, step: Step, model: ModelServer, seconds: int) -> None:
    """A worker in its model calls at the step: its contexts are stored, once, at no attempt that kills them."""
    model.hold()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        for number in range(5):
            push(app, number, now=True)
        wait_for(lambda: model.concurrent == 5, "all are claimed")
        step(seconds)
        model.go_on()
        wait_for(lambda: stored_once(app, range(5)), "all is stored", timeout_s=40)
        assert app.status().dead == 0


def test_the_claims_of_a_dead_worker_come_back(settings: Settings, step: Step, model: ModelServer) -> None:
    """A lease that lies an hour ahead, because the clock was set back, is shortened to one lease."""
    model.hold()
    with Memd(settings) as app, part("scheduler", settings):
        with part("worker", settings) as worker:
            push(app, 1, now=True)
            wait_for(lambda: model.concurrent == 1, "it is claimed")
            worker.kill()
            worker.wait()
        step(-HOUR)
        model.go_on()
        with part("worker", settings):
            wait_for(lambda: stored_once(app, range(1, 2)), "it came back", timeout_s=40)


def test_an_open_breaker_is_tried_again(settings: Settings, step: Step) -> None:
    """A pause of a second is one of a second, wherever the clock goes."""
    with Memd(settings) as app, connect(settings) as client, part("scheduler", settings), part("worker", settings):
        name = endpoint(settings.extraction)
        send(client, trip(name, ModelUnavailable("rate_limited", "", 1.0)))
        step(-HOUR)
        push(app, 1, now=True)
        wait_for(lambda: stored_once(app, range(1, 2)), "the breaker was tried again", timeout_s=40)


def test_there_and_back(settings: Settings, step: Step) -> None:
    """Ten years ahead and back, with pushes before, there and after."""
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        wait_for(lambda: app.status().workers, "the worker listens")
        push(app, 1)
        step(DECADE)
        push(app, 2)
        step(0)
        push(app, 3)
        wait_for(lambda: stored_once(app, range(1, 4)), "all is stored", timeout_s=40)
        app.flush(wait=True, timeout_s=40)  # what is stored may not be acked yet
        push(app, 1)
        assert app.flush(wait=True, timeout_s=40).counts == {"skipped": 1}


def test_times_within_bounds_are_left_alone(settings: Settings, step: Step) -> None:
    """Mending touches nothing that an honest clock can have written."""
    with Memd(settings) as app, connect(settings) as client:
        push(app, 1)
        before = client.zrange(f"{P}:due", 0, -1, withscores=True)
        assert send(client, verbs.rebase()) == 0
        assert client.zrange(f"{P}:due", 0, -1, withscores=True) == before
        step(-HOUR)
        assert send(client, verbs.rebase()) == 1
        assert send(client, verbs.rebase()) == 0
