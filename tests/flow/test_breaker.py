"""Outages of the model: all workers share one breaker; an outage costs no attempts and ends by itself."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import redis
from support import MakeSettings, ended, environment, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.context import Context, Key, Message, identify
from memd.errors import ModelUnavailable
from memd.inbox import breaker, library, verbs
from memd.inbox.breaker import Breaker
from memd.inbox.connection import send
from memd.testing import ModelServer, Refused

pytestmark = pytest.mark.timing

LIMITED = ModelUnavailable("rate_limited", "")
BROKEN = ModelUnavailable("server_error", "")


def push(client: redis.Redis, user: str) -> None:
    key = Key("t", user)
    send(client, verbs.push(Context(key, identify("t", [Message("user", "I own a boat.")]), now=True)))


def claimed(client: redis.Redis, settings: Settings, endpoint: str = "model") -> tuple[str, list[str]]:
    found = send(client, verbs.claim(settings, 10, 0, "w", endpoint))
    return found.breaker, [claim.id for claim in found.taken]


def trip(client: redis.Redis, error: ModelUnavailable, endpoint: str = "model") -> Breaker:
    return send(client, breaker.trip(endpoint, error))


def test_a_limit_opens_the_breaker_and_nothing_is_claimed(client: redis.Redis, settings: Settings) -> None:
    """A 429 opens the breaker at once; while it is open no key is claimed, not even after a flush."""
    push(client, "ana")
    opened = trip(client, LIMITED, "another")
    assert (opened.state, 0.05 <= opened.pause_s <= 0.1) == ("opened", True)
    trip(client, ModelUnavailable("rate_limited", "", 60.0))
    assert claimed(client, settings) == ("open", [])
    send(client, verbs.flush_page("due", "0", (None, None, None)))
    assert claimed(client, settings) == ("open", [])
    assert send(client, verbs.tick(0, "model")).waiting == 0


def test_another_endpoint_has_a_breaker_of_its_own(client: redis.Redis, settings: Settings) -> None:
    """Workers of another endpoint go on."""
    push(client, "ana")
    trip(client, LIMITED)
    assert len(claimed(client, settings, "other")[1]) == 1


def test_one_probe_at_a_time_closes_it(client: redis.Redis, settings: Settings) -> None:
    """In the half-open state one claim is the probe; only its success closes the breaker."""
    for user in ("ana", "bob", "eve"):
        push(client, user)
    trip(client, LIMITED)
    state, taken = wait_for(lambda: (found := claimed(client, settings))[1] and found, "the breaker is half-open")
    assert (state, len(taken)) == ("half-open", 1)
    assert claimed(client, settings) == ("probing", [])
    assert send(client, breaker.close("model", "an-old-call")).state == "ok"
    assert claimed(client, settings) == ("probing", [])
    closed = send(client, breaker.close("model", taken[0]))
    assert (closed.state, closed.code) == ("closed", "rate_limited")
    assert len(claimed(client, settings)[1]) == 2


def test_a_probe_that_fails_doubles_the_pause(client: redis.Redis, settings: Settings) -> None:
    """The pause doubles with each failed probe, with jitter, up to backoff_max_s."""
    push(client, "ana")
    pauses = [trip(client, LIMITED).pause_s]
    for _ in range(5):
        _, taken = wait_for(lambda: (found := claimed(client, settings))[1] and found, "the breaker is half-open")
        pauses.append(trip(client, LIMITED).pause_s)
        send(client, verbs.release(taken[0], "paused"))
    for n, pause in enumerate(pauses):
        ceiling = min(0.5, 0.1 * 2**n)
        assert ceiling / 2 - 0.001 <= pause <= ceiling + 0.001


def test_a_retry_after_and_an_account_fault_are_floors(client: redis.Redis, settings: Settings) -> None:
    """Retry-After is a floor; a refused account is tried at most once a minute."""
    assert trip(client, ModelUnavailable("rate_limited", "", 7.0), "a").pause_s >= 7
    assert trip(client, ModelUnavailable("unauthorized", ""), "b").pause_s >= 60


def test_what_may_be_the_contents_fault_opens_it_after_three(client: redis.Redis, settings: Settings) -> None:
    """A single 500 opens nothing, three in a row do; a success in between resets the count."""
    assert [trip(client, BROKEN).state for _ in range(2)] == ["counted", "counted"]
    send(client, breaker.close("model", "x"))
    assert [trip(client, BROKEN).state for _ in range(3)] == ["counted", "counted", "opened"]


def test_a_probe_that_made_no_call_is_given_on(client: redis.Redis, settings: Settings) -> None:
    """A probe that made no call does not block the next probe until its lease ends."""
    push(client, "ana")
    push(client, "bob")
    trip(client, LIMITED)
    _, taken = wait_for(lambda: (found := claimed(client, settings))[1] and found, "the breaker is half-open")
    send(client, breaker.free("model", taken[0]))
    assert claimed(client, settings)[0] == "half-open"


def claimed_at(client: redis.Redis, settings: Settings, host: str) -> tuple[str, list[str]]:
    found = send(client, verbs.claim(settings, 1, 0, f"{host}:1:aa", "model"))
    return found.breaker, [claim.id for claim in found.taken]


def cut_off(client: redis.Redis, host: str) -> list[str]:
    unreached = ModelUnavailable("connection", "", reached=False)
    return [send(client, breaker.trip("model", unreached, host)).state for _ in range(3)]


def pause_for(client: redis.Redis, configured: MakeSettings, seconds: float) -> None:
    """What opens stays open for at least half of these seconds, long enough for a test to look."""
    library.install(client, configured(drain__backoff_s=seconds, drain__backoff_max_s=2 * seconds))


def test_a_host_without_a_route_pauses_alone(
    client: redis.Redis, settings: Settings, memd: Memd, configured: MakeSettings
) -> None:
    """No status came on one host, another one reaches the endpoint: only the first one claims nothing."""
    pause_for(client, configured, 4)
    for number in range(6):
        push(client, f"user-{number}")
    send(client, breaker.close("model", "any", "sound"))
    assert cut_off(client, "broken") == ["counted", "counted", "opened"]
    assert claimed_at(client, settings, "broken") == ("open", [])
    assert claimed_at(client, settings, "sound")[0] == "closed"
    assert send(client, verbs.tick(0, "model")).waiting == 5
    assert [pause["host"] for pause in memd.status().paused] == ["broken"]
    state, taken = wait_for(lambda: (found := claimed_at(client, settings, "broken"))[1] and found, "it may try again")
    assert (state, len(taken)) == ("half-open", 1)
    assert claimed_at(client, settings, "broken") == ("probing", [])
    assert send(client, breaker.close("model", taken[0], "broken")).state == "closed"
    assert claimed_at(client, settings, "broken")[0] == "closed"
    assert memd.status().paused == ()


def test_when_no_host_has_a_route_all_pause(
    client: redis.Redis, settings: Settings, memd: Memd, configured: MakeSettings
) -> None:
    """Every host that called in the last minute failed: the shared breaker opens, and any success closes it."""
    pause_for(client, configured, 60)
    push(client, "ana")
    send(client, breaker.close("model", "any", "one"))
    assert cut_off(client, "two")[-1] == "opened"
    assert cut_off(client, "one")[-1] == "opened"
    assert claimed_at(client, settings, "three") == ("open", [])
    assert [pause["host"] for pause in memd.status().paused] == [""]
    assert send(client, breaker.close("model", "in-flight", "one")).state == "closed"
    assert [claimed_at(client, settings, host)[0] for host in ("two", "three")] == ["open", "closed"]


def test_one_host_alone_pauses_as_before(client: redis.Redis, settings: Settings, configured: MakeSettings) -> None:
    """With one host its failures are those of all: the shared breaker opens as well, and bells stop."""
    pause_for(client, configured, 60)
    push(client, "ana")
    assert cut_off(client, "only") == ["counted", "counted", "opened"]
    assert claimed_at(client, settings, "other") == ("open", [])
    assert send(client, verbs.tick(0, "model")).waiting == 0


def test_a_host_that_was_silent_for_a_minute_has_no_say(
    client: redis.Redis, settings: Settings, configured: MakeSettings
) -> None:
    """Only hosts that called in the last minute count as reaching the endpoint."""
    pause_for(client, configured, 60)
    push(client, "ana")
    send(client, breaker.close("model", "any", "old"))
    long_ago = int(client.hget(f"{verbs.P}:breaker:model:hosts", "old") or 0) - 61_000
    client.hset(f"{verbs.P}:breaker:model:hosts", "old", long_ago)
    assert cut_off(client, "broken")[-1] == "opened"
    assert claimed_at(client, settings, "old") == ("open", [])


@pytest.mark.parametrize("error", [LIMITED, ModelUnavailable("overloaded", "")])
def test_a_status_pauses_all_hosts(
    client: redis.Redis, settings: Settings, error: ModelUnavailable, configured: MakeSettings
) -> None:
    """A status speaks for the endpoint, whichever host got it."""
    pause_for(client, configured, 60)
    push(client, "ana")
    send(client, breaker.close("model", "any", "sound"))
    send(client, breaker.trip("model", error, "other"))
    assert claimed_at(client, settings, "sound") == ("open", [])
    assert send(client, breaker.close("model", "in-flight", "sound")).state == "ok"


@contextmanager
def cut_off_worker(settings: Settings) -> Iterator[None]:
    """A worker on a host of its own without a route; skipped, with the reason, where none can be made."""
    away = ["unshare", "--uts", "--net", "sh", "-c", 'hostname cut-off && exec "$@"', "sh"]
    if subprocess.run([*away, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("needs the right to make a host without a network (unshare)")
    process = subprocess.Popen(
        [*away, sys.executable, "-m", "memd", "worker"], env=environment(settings), stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


@pytest.mark.long
def test_others_go_on_while_one_host_has_no_route(
    asking: Callable[..., Settings], client: redis.Redis, model: ModelServer
) -> None:
    """One of two hosts cannot reach the model: the other one stores everything and is never paused."""
    settings = asking(drain__concurrency=2)
    numbers = itertools.count()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings), cut_off_worker(settings):

        def alone() -> bool:
            status = app.status()
            if status.pending < 10:  # both hosts have work; more would only be work
                own_boat(app, next(numbers))
            return any(pause["host"] == "cut-off" for pause in status.paused)

        wait_for(alone, "the host without a route is paused")
        for _ in range(20):
            own_boat(app, next(numbers))
        assert ended(app) == {"stored": next(numbers)}
        assert app.status().dead == 0
    logs = b"".join(log.read_bytes() for log in settings.data_dir.glob("worker*.log"))
    assert b"model_outage_began" not in logs


def test_an_outage_pauses_all_workers_and_ends_by_itself(asking: Callable[..., Settings], model: ModelServer) -> None:
    """L1: an endpoint refuses 60 contexts of two workers for a while: few calls, no attempts, all are stored."""
    model.fail(429, headers={"retry-after": "1"}, times=None)
    settings = asking(drain__max_attempts=1, drain__concurrency=4)
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings), part("worker", settings):
        for number in range(60):
            turns = [{"role": "user", "content": f"I own boat number {number}.", "id": "1"}]
            app.push(turns, thread_id=f"t{number}", user_id=f"user-{number}", now=True)
        wait_for(lambda: app.status().paused, "the breaker is open")
        assert app.status().paused[0]["code"] == "rate_limited"
        wait_for(lambda: model.calls >= 10, "it was tried again")
        model.clear()
        moments = [request.at for request in model.requests[7:10]]  # earlier requests were in flight at the same time
        assert all(later - earlier >= 0.99 for earlier, later in itertools.pairwise(moments)), moments
        assert ended(app) == {"stored": 60}
        assert app.status().paused == ()
    logs = b"".join(log.read_bytes() for log in settings.data_dir.glob("worker*.log"))
    assert logs.count(b"model_outage_began") == 1
    assert logs.count(b"model_outage_ended") == 1


def test_a_failure_while_others_succeed_is_the_contents(asking: Callable[..., Settings], model: ModelServer) -> None:
    """One context that makes the endpoint fail is dead; the breaker stays closed and the others are stored."""
    answer = model.responder

    def responder(request: dict[str, object]) -> dict[str, object]:
        if "poison" in str(request):
            raise Refused(500)
        return answer(request)

    model.responder = responder
    settings = asking(drain__max_attempts=2)
    model.delay = 0.05
    numbers = itertools.count()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings):

        def died_among_others() -> int:
            """Only while other calls succeed is the content to blame, so others are pushed until it is dead."""
            status = app.status()
            if status.pending < 10:
                own_boat(app, next(numbers))
            return status.dead

        app.push([{"role": "user", "content": "poison", "id": "1"}], thread_id="t", user_id="user-0", now=True)
        for _ in range(39):
            own_boat(app, next(numbers))
        wait_for(died_among_others, "the poison is dead", 60)
        assert ended(app) == {"stored": next(numbers), "dead": 1}
        assert app.status().by_reason == {"server_error": 1}


def own_boat(app: Memd, number: int) -> None:
    turns = [{"role": "user", "content": f"I own boat number {number}.", "id": "1"}]
    app.push(turns, thread_id=f"t{number}", user_id=f"user-{number % 4}", now=True)
