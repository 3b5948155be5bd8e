"""W1: a worker that dies costs seconds, not its lease; status counts the workers that live."""

from __future__ import annotations

import os
import signal

import pytest
import redis
from support import MakeSettings, ended, part, wait_for
from support.fault_support import family, tell

from memd.client import Memd
from memd.config import Settings
from memd.context import Context, Key, Message, identify
from memd.inbox import library, verbs, workers
from memd.inbox.claim import Claim
from memd.inbox.connection import connect, send
from memd.testing import ModelServer
from memd.workers.worker import LIFE_S

pytestmark = pytest.mark.timing

BACK_S = 5
"""Seconds after which what a dead worker held must be in work again."""


def listening(app: Memd) -> set[int]:
    """The process ids of the workers that status shows."""
    return {int(worker["pid"]) for worker in app.status().workers}


def released(client: redis.Redis) -> int:
    """How many claims came back because their worker had died."""
    return int(client.hget(f"{verbs.P}:stats", "released:died") or 0)


def test_a_worker_gives_back_what_its_killed_child_held(asking: MakeSettings, model: ModelServer) -> None:
    """The child is killed and its parent lives: what the child held is in work again at once, and told apart."""
    model.hold()
    settings = asking(drain__lease_s=120, drain__concurrency=1)
    with (
        Memd(settings) as app,
        connect(settings) as client,
        part("scheduler", settings),
        part("worker", settings) as first,
        part("worker", settings) as second,
    ):
        wait_for(lambda: len(listening(app)) == 2, "both listen")
        for number, user in enumerate(("ana", "bob")):
            tell(app, user, number)
        wait_for(lambda: model.calls == 2, "each worker asks the model")
        os.kill(family(first.pid)[1], signal.SIGKILL)
        wait_for(lambda: model.calls == 3, "the claim is in work again", BACK_S)
        assert listening(app) == {first.pid, second.pid}
        model.go_on()
        assert ended(app) == {"stored": 2}
        assert (released(client), model.calls) == (1, 3)


def test_a_context_that_kills_its_child_dies_alone_without_waiting(
    asking: MakeSettings, client: redis.Redis, model: ModelServer
) -> None:
    """W7 with the lease of every day: suspects are found by deaths, not by leases, and only the poison dies."""
    settings = asking(
        drain__lease_s=120,
        drain__max_attempts=2,
        drain__concurrency=4,
        store__class="support.killing_store.KillingStore",
    )
    with Memd(asking(drain__lease_s=120)) as app, part("scheduler", settings), part("worker", settings):
        for number, user in enumerate(["poison", *(f"user-{number}" for number in range(10))]):
            tell(app, user, number)
        assert ended(app) == {"stored": 10, "dead": 1}
        assert app.status().by_reason == {"E_WORKER_DIED": 1}


def test_a_ghost_leaves_the_status(asking: MakeSettings, client: redis.Redis) -> None:
    """RQ keeps the name of a worker that nobody buried: status counts only those that were heard of lately."""
    settings, short = asking(), {"memd.workers.worker.LIFE_S": 4}  # for the ghost alone; it is heard of every 5 s
    with Memd(settings) as app, part("worker", settings) as living:
        wait_for(lambda: listening(app) == {living.pid}, "one listens")
        [key] = client.keys(f"{workers.RQ_KEY}*")
        assert 0 < client.ttl(key) <= LIFE_S < 30
        with part("worker", settings, constants=short) as ghost:
            wait_for(lambda: listening(app) == {living.pid, ghost.pid}, "both listen")
            ghost.kill()
            wait_for(lambda: listening(app) == {living.pid}, "the ghost is gone", 30)
        wait_for(lambda: app.status().workers[0]["state"] == "idle", "the living one is still there")


# --- the function --------------------------------------------------------------------------------------------------


def claim(client: redis.Redis, settings: Settings, worker: str, room: int = 10) -> tuple[Claim, ...]:
    return send(client, verbs.claim(settings, room, 0, worker, "model")).taken


def push(client: redis.Redis, *users: str) -> None:
    for user in users:
        messages = identify("t", [Message("user", "I own a boat.")])
        send(client, verbs.push(Context(Key("t", user), messages, now=True)))


def test_only_the_claims_of_the_named_worker_come_back(client: redis.Redis, settings: Settings) -> None:
    """Names are compared whole: a worker on another host, or one with the same process id, keeps its claims."""
    push(client, "ana", "bob", "eve", "joe")
    names = ("host:7:aa", "host:7:bb", "host:7:a", "other:7:aa")
    held = {name: claim(client, settings, name, 1)[0] for name in names}
    assert send(client, workers.died("host:7:aa")) == 1
    assert send(client, workers.died("host:7:aa")) == 0
    ours = [send(client, verbs.extend([held[name].id]))[0] for name in names]
    assert ours == [False, True, True, True]
    again = claim(client, settings, "host:8:cc")
    assert [(row.key.user_id, row.suspect, row.attempts) for row in again] == [(held["host:7:aa"].key.user_id, True, 0)]


def test_a_suspect_whose_worker_dies_again_costs_an_attempt(client: redis.Redis, configured: MakeSettings) -> None:
    """The first death costs nothing, each further one an attempt, and the last one buries the claim with the reason."""
    settings = configured(drain__max_attempts=2)
    library.install(client, settings)
    push(client, "ana")
    attempts = []
    for number in range(3):
        [taken] = claim(client, settings, f"host:{number}:aa")
        attempts.append(taken.attempts)
        send(client, workers.died(f"host:{number}:aa"))
    assert attempts == [0, 0, 1]
    assert claim(client, settings, "host:9:aa") == ()
    assert client.zcard(f"{verbs.P}:dead") == 1
