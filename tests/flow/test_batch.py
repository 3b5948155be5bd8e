"""extraction.mode batch: the same guarantees at half the price, whatever is killed while a batch is in progress."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
from support import daemon, ended, exit_code, make_settings, part, wait_for
from support.fault_support import OwnServer, once, tell
from support.inbox_view import advance, check, look

from memd.client import Memd
from memd.config import Settings
from memd.inbox import batches, library, verbs
from memd.inbox.connection import connect, send
from memd.inbox.verbs import P
from memd.testing import ModelServer, Refused

pytestmark = pytest.mark.timing

BATCH: dict[str, Any] = {"extraction__mode": "batch", "extraction__batch_poll_s": 0.05}
RANDOM = random.Random(5)  # noqa: S311  (repeatable choices of moments)
HOUR_MS = 3_600_000


@pytest.fixture
def batching(asking: Callable[..., Settings]) -> Callable[..., Settings]:
    """Settings that send batches to the HTTP model."""
    return lambda **changes: asking(**BATCH, **changes)


def healthy(client: redis.Redis) -> None:
    seconds, micros = client.time()
    check(look(client), int(seconds) * 1000 + int(micros) // 1000)


def nothing_is_left(client: redis.Redis) -> bool:
    """Whether no batch is in progress, and no key waits for one."""
    return not look(client).names & {"batch", "batches", "batched", "held", "ctx", "claim"}


def contents(app: Memd, user: str) -> list[str]:
    return [fact["content"] for fact in app.document(user)["facts"]]


def test_what_may_wait_is_asked_for_in_batches(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer
) -> None:
    """Twenty users need a few batches and no call, at half the price; the endpoint keeps nothing afterwards."""
    settings = batching()
    with Memd(settings) as app, ExitStack() as stack:
        for number in range(20):
            tell(app, f"u{number}", number, now=False)
        app.push([{"role": "user", "content": "我住在杭州。", "id": "1"}], thread_id="线程", user_id="小林")
        wait_for(lambda: app.status().due == 21, "all may be claimed")
        stack.enter_context(daemon(settings))
        wait_for(lambda: app.status().stored == 21, "all is stored")
        assert once(app, range(20), 20)
        assert contents(app, "小林") == ["我住在杭州。"]
        assert (model.calls, model.batches.requests) == (0, 21)
        assert len(model.batches.made) <= 5
        wait_for(lambda: nothing_is_left(client), "no batch is out")
        wait_for(lambda: len(model.batches.deleted) == len(model.batches.made), "the batches are deleted")
        [row] = app.cost().today
        assert (row.calls, row.batch_calls) == (21, 21)
        price = settings.extraction.prices[row.model]
        whole = row.input_tokens * price.input + row.output_tokens * price.output
        whole += row.cache_read_tokens * price.cache_read + row.cache_write_tokens * price.cache_write
        assert row.usd == pytest.approx(whole / 2_000_000, abs=1e-6)


def test_a_batch_that_is_out_blocks_nothing(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer
) -> None:
    """Other threads of the user, urgent pushes and flushes use calls; later messages follow in order."""
    model.batches.hold()
    settings = batching(drain__lease_s=1)
    with Memd(settings) as app, daemon(settings):
        tell(app, "ana", 1, now=False)
        tell(app, "bob", 2, now=False)
        wait_for(lambda: app.status().batched == 2, "two keys are in a batch")
        status = app.status()
        assert (status.claimed, status.pending) == (0, 2)
        assert status.batches in (1, 2)
        healthy(client)
        tell(app, "ana", 3)
        wait_for(lambda: contents(app, "ana") == ["I like tea number 3."], "the push for now is stored")
        app.push([{"role": "user", "content": "I like tea number 9.", "id": "9"}], thread_id="thread-1", user_id="ana")
        assert app.flush(user_id="bob", wait=True).counts == {"stored": 1}
        assert contents(app, "bob") == ["I like tea number 2."]
        assert model.calls == 2
        assert app.status().batched == 1
        model.batches.go_on()
        wait_for(lambda: len(contents(app, "ana")) == 3, "the answer and what came since are stored")
        assert contents(app, "ana") == [f"I like tea number {number}." for number in (3, 1, 9)]
        wait_for(lambda: nothing_is_left(client), "no batch is out")
        assert contents(app, "bob") == ["I like tea number 2."]
        assert app.status().usage["unused_answers"] == 1
        assert app.cost().today[0].batch_calls == model.batches.requests


def test_a_batch_that_nobody_waits_for_is_cancelled(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer
) -> None:
    """When all its keys were flushed or forgotten, the batch is cancelled, and nothing comes back."""
    model.batches.hold()
    settings = batching()
    with Memd(settings) as app, daemon(settings):
        tell(app, "ana", 1, now=False)
        tell(app, "bob", 2, now=False)
        wait_for(lambda: app.status().batched == 2, "they are in a batch")
        app.forget("ana")
        assert app.status().batched == 1
        healthy(client)
        assert app.flush(wait=True).counts == {"stored": 1}
        wait_for(lambda: all(batch.canceled for batch in model.batches.made), "the batch is cancelled")
        model.batches.go_on()
        wait_for(lambda: nothing_is_left(client), "no batch is out")
        assert (contents(app, "ana"), contents(app, "bob")) == ([], ["I like tea number 2."])


def test_an_answer_to_what_was_edited_is_not_used(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer
) -> None:
    """The newest text of an id wins: it is requested again, and the result for the old text is discarded."""
    model.batches.hold()
    settings = batching()
    with Memd(settings) as app, daemon(settings):
        app.push([{"role": "user", "content": "I own a red boat.", "id": "1"}], thread_id="t", user_id="ana")
        wait_for(lambda: app.status().batched == 1, "it is in a batch")
        app.push([{"role": "user", "content": "I own a blue boat.", "id": "1"}], thread_id="t", user_id="ana")
        model.batches.go_on()
        wait_for(lambda: app.status().stored, "it is stored")
        assert contents(app, "ana") == ["I own a blue boat."]
        assert model.batches.requests == 2


# --- results without an update -------------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", ["expired", "server_error"])
def test_what_has_to_be_called_for(batching: Callable[..., Settings], model: ModelServer, failure: str) -> None:
    """After a day in the batch, or a failure that may be the content's, the key uses a call, at no attempt."""
    if failure == "expired":
        model.batches.expire(3)
    else:
        model.fail(500, times=3)
    settings = batching(drain__max_attempts=1)
    with Memd(settings) as app, daemon(settings):
        for number in range(3):
            tell(app, f"u{number}", number, now=False)
        wait_for(lambda: app.status().stored == 3, "all is stored")
        assert once(app, range(3), 3)
        assert (model.calls, model.batches.requests, app.status().dead) == (3, 3, 0)


@pytest.mark.parametrize("lost", ["overloaded", "lines", "gone", "canceled"])
def test_what_the_endpoint_did_not_answer_is_asked_anew(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer, lost: str
) -> None:
    """After an overload, a missing result line, a lost or cancelled batch: again in a batch, at no attempt."""
    model.batches.hold()
    if lost == "overloaded":
        model.fail(529, times=3)
    settings = batching(drain__max_attempts=1)
    with Memd(settings) as app, daemon(settings):
        for number in range(3):
            tell(app, f"u{number}", number, now=False)
        wait_for(lambda: app.status().batched == 3, "they are in batches")
        if lost == "lines":
            model.batches.lose_lines()
        elif lost == "gone":
            model.batches.forget()
        elif lost == "canceled":
            for batch in model.batches.made:
                batch.canceled = True
        model.batches.go_on()
        wait_for(lambda: app.status().stored == 3, "all is stored")
        assert once(app, range(3), 3)
        assert (model.calls, app.status().dead) == (0, 0)
        assert model.batches.requests > 3
        wait_for(lambda: nothing_is_left(client), "no batch is out")


def test_bad_content_dies_alone_and_costs_attempts(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer
) -> None:
    """A result that is invalid, too long or no update is treated like that of a call.

    Halved to the guilty message is what is refused for its content; what is no update is asked about again by a call.
    """
    answer = model.responder

    def responder(request: dict[str, Any]) -> dict[str, Any]:
        text = str(request["messages"])
        if "endless" in text:
            raise Refused(413)
        if "poison" in text:
            raise Refused(400)
        return {"newFacts": "nonsense"} if "riddle" in text else answer(request)

    model.responder = responder
    settings = batching(drain__max_attempts=2)
    with Memd(settings) as app, daemon(settings):
        for bad in ("endless", "poison", "riddle"):
            texts = ["I own a red boat.", f"This is {bad}.", "I own a blue boat."]
            turns = [{"role": "user", "content": text, "id": f"m{n}"} for n, text in enumerate(texts)]
            app.push(turns, thread_id="t", user_id=bad)
        tell(app, "ana", 1, now=False)
        wait_for(lambda: app.status().dead == 3 and app.status().pending == 0, "the guilty are dead")
        wait_for(lambda: nothing_is_left(client), "nothing is under way")
        for bad in ("endless", "poison"):
            assert contents(app, bad) == ["I own a red boat.", "I own a blue boat."]
        letters = {letter.code: app.dead_letter(letter.id) for letter in app.dead()}
        lengths = {code: len(found.messages) for code, found in letters.items() if found is not None}
        assert lengths == {"too_long": 1, "bad_request": 1, "bad_reply": 3}
        assert sum("riddle" in str(request.body["messages"]) for request in model.requests) == 3
        assert contents(app, "ana") == ["I like tea number 1."]
        assert app.cost().today[0].batch_calls == 2


@pytest.mark.parametrize("status", [529, 413])
def test_a_batch_that_is_not_taken(batching: Callable[..., Settings], model: ModelServer, status: int) -> None:
    """An overload pauses all keys at no attempt; the requests of a batch that is refused as a whole become calls."""
    model.batches.fail("create", status)
    settings = batching(drain__max_attempts=1)
    with Memd(settings) as app, daemon(settings):
        for number in range(3):
            tell(app, f"u{number}", number, now=False)
        wait_for(lambda: app.status().stored == 3, "all is stored")
        assert once(app, range(3), 3)
        assert app.status().dead == 0
        assert (model.calls > 0) == (status == 413)


@pytest.mark.parametrize("verb", ["retrieve", "results", "delete"])
def test_a_look_that_fails_is_tried_again(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer, verb: str
) -> None:
    """An endpoint that fails between its replies loses nothing and applies nothing twice."""
    model.batches.fail(verb, 500)
    settings = batching()
    with Memd(settings) as app, daemon(settings):
        tell(app, "u0", 0, now=False)
        wait_for(lambda: app.status().stored == 1, "it is stored")
        wait_for(lambda: nothing_is_left(client), "no batch is out")
        assert (once(app, [0], 1), model.batches.requests, model.calls) == (True, 1, 0)


# --- kills ----------------------------------------------------------------------------------------------------------


def test_killed_between_submit_and_record(batching: Callable[..., Settings], model: ModelServer) -> None:
    """The worker dies after the endpoint has the batch, before its reply: requested again, and stored once."""
    settings = batching(drain__lease_s=1, scheduler__quiet_s=0.05)
    model.hold()
    with Memd(settings) as app, part("scheduler", settings):
        with part("worker", settings) as worker:
            for number in range(4):
                tell(app, f"u{number}", number, now=False)
            wait_for(lambda: model.batches.requests >= 1, "a batch is made")
            assert app.status().batches == 0
            worker.kill()
            worker.wait()
        model.go_on()
        with part("worker", settings):
            wait_for(lambda: app.status().stored == 4, "all is stored")
        assert once(app, range(4), 4)
        assert (app.status().dead, app.status().batched) == (0, 0)


def test_killed_while_it_looks_and_hands_over(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer
) -> None:
    """A worker dies with the results in hand: the next worker fetches them again, and no request is made twice."""
    model.batches.hold()
    settings = batching()
    with Memd(settings) as app, part("scheduler", settings):
        with part("worker", settings) as worker:
            for number in range(6):
                tell(app, f"u{number}", number, now=False)
            wait_for(lambda: app.status().batched == 6, "they are in batches")
            model.hold()
            model.batches.go_on()
            polls = model.batches.polls
            wait_for(lambda: model.batches.polls > polls, "it looks")
            worker.kill()
            worker.wait()
        model.go_on()
        with part("worker", settings):
            wait_for(lambda: app.status().stored == 6, "all is stored")
            wait_for(lambda: nothing_is_left(client), "no batch is out")
        assert once(app, range(6), 6)
        assert (model.batches.requests, model.calls) == (6, 0)


def test_killed_between_the_commit_and_the_ack(batching: Callable[..., Settings], model: ModelServer) -> None:
    """Workers die after each eighth commit: the results are applied once, without further calls."""
    settings = batching(store__class="support.killing_store.DyingStore", drain__lease_s=1)
    paths = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with Memd(batching()) as app, part("scheduler", settings), part("worker", settings, paths):
        for number in range(24):
            tell(app, f"u{number % 6}", number, now=False)
        wait_for(lambda: app.status().stored == 24, "all is stored", 40)
        assert once(app, range(24), 6)
        assert (settings.data_dir / "commits").stat().st_size >= 8
        assert app.status().dead == 0


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """The HTTP model."""
    with ModelServer() as found:
        yield found


@pytest.mark.long
def test_workers_scheduler_and_server_killed_at_random(data_dir: Path, model: ModelServer) -> None:
    """Parts are killed while batches are created, in progress, ended and applied: each context is stored once."""
    changes: dict[str, Any] = {
        "extraction__extractor": "anthropic",
        "extraction__base_url": model.base_url,
        "extraction__api_key": "test-key",
        "drain__lease_s": 1,
        "server__appendfsync": "always",
        **BATCH,
    }
    settings = make_settings(data_dir, None, **changes)
    model.batches.delay = 0.3
    pushed = 0
    with OwnServer(settings) as server, Memd(settings) as app, ExitStack() as parts:
        with connect(settings) as client:
            library.install(client, settings)
        running = {name: parts.enter_context(part(name, settings)) for name in ("scheduler", "worker")}
        for turn in range(9):
            for _ in range(4):
                tell(app, f"u{pushed % 5}", pushed, now=False)
                pushed += 1
            seen, moment = model.batches.polls, RANDOM.choice(("made", "polled", "out"))
            wait_for(lambda: _at(app, model, moment, seen), f"a batch is {moment}")  # noqa: B023  (called at once)
            victim = ("worker", "scheduler", "server")[turn % 3]
            if victim == "server":
                server.kill()
                server.start()
            else:
                running[victim].kill()
                running[victim].wait()
                running[victim] = parts.enter_context(part(victim, settings))
        wait_for(lambda: app.status().stored == pushed, "all is stored", 40)
        assert once(app, range(pushed), 5)
        assert (app.status().dead, app.status().pending, app.status().claimed) == (0, 0, 0)


def _at(app: Memd, model: ModelServer, moment: str, polls: int) -> bool:
    """Whether a batch is created, in progress, or was polled since."""
    if moment == "polled":
        return model.batches.polls > polls or app.status().pending == 0
    return model.batches.requests > 0 if moment == "made" else bool(app.status().batched) or app.status().pending == 0


def test_a_worker_that_is_told_to_stop_gives_back_what_is_not_in_a_batch_yet(
    batching: Callable[..., Settings], client: redis.Redis, model: ModelServer
) -> None:
    """A worker that stops does not wait for the endpoint; its claims are pending again and not suspect."""
    settings = batching(drain__lease_s=60)
    model.hold()
    with Memd(settings) as app, part("scheduler", settings), part("worker", settings) as worker:
        tell(app, "u0", 0, now=False)
        wait_for(lambda: model.batches.requests == 1, "the batch is being made")
        worker.terminate()
        assert exit_code(worker, 15) == 0
        status, [fields] = app.status(), look(client).pending.values()
    assert (status.pending, status.claimed, status.batches) == (1, 0, 0)
    assert not {".suspect", ".batch", ".attempts"} & {name for name, value in fields.items() if value != "0"}


# --- time, budgets, and the functions -------------------------------------------------------------------------------


def claimed(client: redis.Redis, settings: Settings) -> list[Any]:
    return list(send(client, verbs.claim(settings, 10, 0, "w", "m")).taken)


def test_a_batch_that_never_answers_is_given_up(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """After 26 hours the keys of a batch use calls, whichever endpoint it was sent to."""
    tell(memd, "ana", 1)
    [claim] = claimed(client, settings)
    assert send(client, batches.defer(claim.id, "b1", "elsewhere", "x 1 m"))
    assert not send(client, batches.defer(claim.id, "b1", "elsewhere", "x 1 m"))
    healthy(client)
    advance(client, HOUR_MS)
    assert send(client, verbs.tick(0, "m")).expired == ()
    assert send(client, batches.poll("here")) == []
    assert memd.status().batched + memd.status().due == 1
    advance(client, 26 * HOUR_MS)
    assert send(client, batches.poll("here")) == []
    assert memd.status().batches == 0
    [again] = wait_for(lambda: claimed(client, settings), "it is claimed again")
    assert (again.messages, again.answer, again.urgent, again.attempts) == (claim.messages, None, True, 0)


def test_an_answer_is_kept_by_a_release_that_costs_nothing(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """A result is paid for: an expired lease keeps it; a failure that costs an attempt discards it."""
    tell(memd, "ana", 1, now=False)
    memd.flush()
    [claim] = claimed(client, settings)
    client.hdel(f"{P}:claim:{claim.id}", ".urgent")
    send(client, batches.defer(claim.id, "b1", "here", "x 1 m"))
    assert send(client, batches.answer("b1", claim.id, b"{}", {})) == "taken"
    assert send(client, batches.answer("b1", claim.id, b"{}", {})) == "unknown"
    for how, kept in (("paused", True), ("expired", True), ("failed", False)):
        [held] = wait_for(lambda: claimed(client, settings), "it is due")
        assert held.answer is not None
        client.zadd(f"{P}:claimed", {held.id: 1})
        send(client, verbs.release(held.id, how))
        healthy(client)
        [fields] = look(client).pending.values()
        assert (".answer" in fields) is kept
    assert memd.status().batches == 0


def test_only_the_newest_request_of_a_key_is_answered(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """A result of an earlier request is counted and discarded; that of the newest one comes with the next claim."""
    tell(memd, "ana", 1)
    requests = []
    for batch in ("b1", "b2"):
        [claim] = wait_for(lambda: claimed(client, settings), "it is due")
        send(client, batches.defer(claim.id, batch, "here", "x 1 m"))
        requests.append(claim.id)
    stats = {"used:batch_input:m": 7}
    assert send(client, batches.answer("b1", requests[0], b"{}", stats)) == "unused"
    assert send(client, batches.answer("b1", requests[0], b"{}", stats)) == "unknown"
    assert send(client, batches.answer("b2", requests[1], b"{}", stats)) == "taken"
    [claim] = claimed(client, settings)
    assert claim.answer is not None
    assert memd.cost().today[0].input_tokens == 7
    assert memd.status().batches == 0


def test_what_is_out_is_held_against_the_budget(
    memd: Memd, client: redis.Redis, configured: Callable[..., Settings]
) -> None:
    """The estimate is held until the result arrives; its claim then needs no budget, because it is paid for."""
    settings = configured(budget__total_tokens_per_day=2_000)
    library.install(client, settings)
    tell(memd, "ana", 1, now=False)
    memd.flush()
    [claim] = claimed(client, settings)
    client.hdel(f"{P}:claim:{claim.id}", ".urgent")
    send(client, batches.defer(claim.id, "b1", "here", "x 1 m"))
    tell(memd, "bob", 2)
    assert claimed(client, settings) == []
    day = int(time.time() * 1000) // (24 * HOUR_MS)
    client.hset(f"{P}:spent:{day}", ".total", 5_000)
    assert send(client, batches.answer("b1", claim.id, b"{}", {})) == "taken"
    assert not client.exists(f"{P}:held")
    assert [found.key.user_id for found in claimed(client, settings)] == ["ana"]
    healthy(client)


def test_rules_need_no_batches(configured: Callable[..., Settings], client: redis.Redis) -> None:
    """The offline extractor works as without batches."""
    settings = configured(extraction__mode="batch")
    library.install(client, settings)
    with Memd(settings) as app, daemon(settings):
        tell(app, "u0", 0)
        assert ended(app) == {"stored": 1}
