"""What must be survived: killed workers and schedulers, outages, bad answers; nothing lost, nothing twice."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import orjson
import pytest
import redis
from support import alive, ended, exit_code, first_due, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.inbox import verbs
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]


def push(app: Memd, user: str, number: int) -> str:
    text = f"Statement number {number} of the user is that they own item {number}."
    turns = [
        {"role": "user", "content": text, "id": f"u{number}"},
        {"role": "assistant", "content": "I see you own it."},
    ]
    return app.push(turns, thread_id=f"thread-{number}", user_id=user, now=True).id or ""


def quotes(app: Memd, user: str) -> Counter[str]:
    """How often each message was remembered for a user."""
    return Counter(fact["evidence"][0]["quote"] for fact in app.document(user)["facts"])


@pytest.mark.parametrize("users", [50, pytest.param(200, marks=pytest.mark.long)])
def test_hundreds_of_contexts_are_each_stored_once(
    asking: Callable[..., Settings], model: ModelServer, users: int
) -> None:
    """Five contexts of each user, 250 or 1,000, through two workers and a model that takes 200 ms: everything is
    stored, once, for its user."""
    contexts = 5 * users
    model.delay = 0.2
    settings = asking(drain__workers=2)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings), part("worker", settings):
        for number in range(contexts):
            push(app, f"user-{number % users}", number)
        result = app.flush(wait=True, timeout_s=90)
        assert not result.timed_out
        assert set(result.counts) <= {"stored"}
        for user in range(users):
            expected = {f"item {number}." for number in range(user, contexts, users)}
            found = quotes(app, f"user-{user}")
            assert {" ".join(quote.split()[-2:]) for quote in found} == expected
            assert set(found.values()) == {1}
        assert app.status().stored == contexts


@pytest.mark.long
def test_a_killed_worker_loses_nothing(asking: Callable[..., Settings], model: ModelServer) -> None:
    """W1: `kill -9` of a worker in its model calls: its child dies too, its claims come back, all is stored once."""
    model.delay = 0.3
    settings = asking(drain__lease_s=1, drain__concurrency=8)
    with Memd(settings) as app, ExitStack() as stack:
        stack.enter_context(part("scheduler", settings))
        victim = stack.enter_context(part("worker", settings))
        for number in range(60):
            push(app, f"user-{number % 20}", number)
        wait_for(lambda: model.calls >= 12, "the worker is in the middle of it")
        children = children_of(victim.pid)
        assert children
        victim.kill()
        victim.wait()
        wait_for(lambda: not any(alive(child) for child in children), "no orphan goes on")
        stack.enter_context(part("worker", settings))
        assert not app.flush(wait=True, timeout_s=60).timed_out
        for user in range(20):
            assert quotes(app, f"user-{user}").total() == 3
            assert set(quotes(app, f"user-{user}").values()) == {1}


def has_calls(model: ModelServer, goal: int) -> bool:
    return model.calls >= goal


def children_of(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


@pytest.mark.long
def test_a_worker_killed_again_and_again_stores_everything_once(
    asking: Callable[..., Settings], model: ModelServer
) -> None:
    """Ten kills of workers at random moments: nothing lost, nothing twice."""
    model.delay = 0.02
    settings = asking(drain__lease_s=1, drain__concurrency=4, drain__max_attempts=50)
    rng = random.Random(7)  # noqa: S311  (a repeatable choice of victims)
    with Memd(settings) as app, ExitStack() as stack:
        stack.enter_context(part("scheduler", settings))
        workers = [stack.enter_context(part("worker", settings)) for _ in range(2)]
        number = 0
        for _ in range(10):
            for _ in range(20):
                push(app, f"user-{number % 10}", number)
                number += 1
            goal = model.calls + rng.randrange(1, 8)
            wait_for(partial(has_calls, model, goal), "some calls were made")
            victim = rng.randrange(2)
            workers[victim].kill()
            workers[victim] = stack.enter_context(part("worker", settings))
        assert not app.flush(wait=True, timeout_s=90).timed_out
        for user in range(10):
            assert quotes(app, f"user-{user}").total() == 20
            assert set(quotes(app, f"user-{user}").values()) == {1}


def test_sigterm_hands_back_within_the_grace_time(
    asking: Callable[..., Settings], model: ModelServer, client: redis.Redis
) -> None:
    """A worker that is told to stop in the model call ends with code 0 and gives its claim back at no cost."""
    model.delay = 30
    settings = asking()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings) as worker:
        push(app, "ana", 1)
        wait_for(lambda: model.calls == 1, "the model is asked")
        worker.send_signal(signal.SIGTERM)
        assert exit_code(worker, 5) == 0
        status = app.status()
        assert (status.claimed, status.pending) == (0, 1)
    key = first_due(client)
    assert client.hget(f"{verbs.P}:ctx:{key}", ".attempts") == b"0"


def test_an_outage_of_the_model_costs_no_attempt(asking: Callable[..., Settings], model: ModelServer) -> None:
    """While the model answers 529 the context waits; when it is back, it is stored."""
    model.fail(529, times=8)
    settings = asking(drain__max_attempts=2)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        push(app, "ana", 1)
        assert ended(app) == {"stored": 1}
    assert model.calls == 9


def test_a_retry_after_is_a_floor(asking: Callable[..., Settings], model: ModelServer) -> None:
    """The endpoint's Retry-After holds the context back at least that long."""
    model.fail(429, headers={"retry-after": "2"})
    settings = asking()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        push(app, "ana", 1)
        wait_for(lambda: model.calls == 2, "the model is asked again")
    first, second = model.requests
    assert second.at - first.at >= 2


def test_bad_answers_end_in_the_dead(asking: Callable[..., Settings], model: ModelServer) -> None:
    """L5: an answer that is no update gets a repair request, then one new attempt with another; then it is dead."""
    model.raw(b'{"type": "message", "content": [{"type": "text", "text": "I could not"}]}', times=None)
    settings = asking(drain__max_attempts=2)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        push(app, "ana", 1)
        assert ended(app) == {"dead": 1}
        assert app.document("ana")["facts"] == []
        assert app.status().dead == 1
    assert model.calls == 4


@pytest.mark.long
def test_a_killed_scheduler_loses_nothing(asking: Callable[..., Settings], client: redis.Redis) -> None:
    """`kill -9` of the scheduler while raw pushes come in: the next one takes in the rest, each once."""
    settings = asking()
    pushes = [
        orjson.dumps(
            {
                "thread_id": f"t{n}",
                "user_id": f"user-{n % 10}",
                "messages": [{"role": "user", "content": f"The user owns item {n}.", "id": "1"}],
                "now": True,
            }
        )
        for n in range(300)
    ]
    with Memd(settings) as app, part("worker", settings):
        with part("scheduler", settings) as victim:
            client.rpush(verbs.RAW, *pushes)
            wait_for(lambda: client.llen(verbs.RAW) < 250, "some were taken in")
            os.kill(victim.pid, signal.SIGKILL)
        with part("scheduler", settings):
            assert not app.flush(wait=True, timeout_s=60).timed_out
            for user in range(10):
                assert quotes(app, f"user-{user}").total() == 30


def test_a_restarted_worker_recognises_what_it_stored(asking: Callable[..., Settings], client: redis.Redis) -> None:
    """A claim that was stored but not acked comes back and ends as `already_known`; the document does not change."""
    settings = asking()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):
        push(app, "ana", 1)
        app.flush(wait=True)
        before = app.document("ana")
        client.delete(*client.keys(f"{verbs.P}:known:*"))  # as after a server that lost its last second
        push(app, "ana", 1)
        assert ended(app) == {"stored": 1, "skipped": 1}
        assert app.document("ana") == before


def test_a_context_that_kills_its_worker_dies_alone(asking: Callable[..., Settings], client: redis.Redis) -> None:
    """W7: content that crashes its worker each time becomes a suspect, is tried alone, and is the only one to die."""
    settings = asking(
        drain__lease_s=1, drain__max_attempts=2, drain__concurrency=4, store__class="support.killing_store.KillingStore"
    )
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with Memd(asking()) as app, part("scheduler", settings), part("worker", settings, paths):
        push(app, "poison", 0)
        for number in range(1, 30):
            push(app, f"user-{number}", number)
        assert ended(app) == {"stored": 29, "dead": 1}
        assert app.status().by_reason == {"E_WORKER_DIED": 1}


def test_killed_between_rename_and_ack_nothing_is_applied_twice(
    asking: Callable[..., Settings], client: redis.Redis
) -> None:
    """W2: five workers die between commit and ack; what they had stored is recognised, and reported as stored."""
    settings = asking(drain__lease_s=1, drain__concurrency=4, store__class="support.killing_store.DyingStore")
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with Memd(asking()) as app, part("scheduler", settings), part("worker", settings, paths):
        receipts = [push(app, f"user-{number % 12}", number) for number in range(60)]
        assert ended(app) == {"stored": 60}
        for user in range(12):
            assert quotes(app, f"user-{user}").total() == 5
            assert set(quotes(app, f"user-{user}").values()) == {1}
        outcomes = [app.receipt(receipt) for receipt in receipts]
    assert {len(outcome.fact_ids) for outcome in outcomes} == {1}
    assert len({outcome.fact_ids for outcome in outcomes}) == 60
