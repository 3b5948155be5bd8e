"""Extractions of a thread in 24 hours as a budget: over it a key waits and merges, and nothing is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import redis
from support import Cli, Step, execute, part, wait_for
from support.inbox_view import advance, check, look

from memd.client import Memd
from memd.config import Settings
from memd.inbox import library, verbs
from memd.inbox.claim import PaidAnswer
from memd.inbox.connection import connect, send
from memd.inbox.verbs import P

pytestmark = pytest.mark.timing

HOUR_MS = 3_600_000
DAY = timedelta(days=1)
CALLED = {"model_calls": 1}


def push(app: Memd, number: int, *, thread: str = "t", user: str = "ana", agent: str = "", now: bool = True) -> str:
    turns = [{"role": "user", "content": f"I own {number + 2} red boats.", "id": f"m{number}"}]
    return app.push(turns, thread_id=thread, user_id=user, agent_name=agent, now=now).id or ""


def claimed(client: redis.Redis, settings: Settings) -> dict[str, str]:
    """Claim all claimable keys: thread -> claim."""
    return {claim.key.thread_id: claim.id for claim in send(client, verbs.claim(settings, 10, 0, "w", "m")).taken}


def extract(client: redis.Redis, settings: Settings, thread: str = "t", stats: dict[str, int] = CALLED) -> None:
    """Claim a thread's key and ack it, as after one call."""
    assert send(client, verbs.ack(claimed(client, settings)[thread], {"state": "stored", "facts": []}, stats))


def now_of(client: redis.Redis) -> datetime:
    seconds, micros = client.time()
    return datetime.fromtimestamp(int(seconds) + int(micros) / 1e6, UTC)


def healthy(client: redis.Redis) -> None:
    check(look(client), int(now_of(client).timestamp() * 1000))


@pytest.fixture
def limited(configured: Callable[..., Settings], client: redis.Redis) -> Callable[..., Settings]:
    """Settings with this budget, written to the server."""

    def make(extractions: int | None) -> Settings:
        settings = configured(budget__thread_extractions_per_day=extractions)
        library.install(client, settings)
        return settings

    return make


def test_over_it_a_key_waits_until_the_first_of_them_is_a_day_ago(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """A moving window: with the third extraction 24 hours ago, one more may follow; receipt and status say when."""
    settings = limited(3)
    for number in range(3):
        push(memd, number)
        extract(client, settings)
        advance(client, HOUR_MS)
    receipt = push(memd, 3)
    first_ended = now_of(client) - timedelta(hours=3)
    assert claimed(client, settings) == {}
    outcome, status = memd.receipt(receipt), memd.status()
    assert (outcome.state, outcome.reason) == ("pending", "budget")
    assert outcome.due_at is not None
    assert abs(outcome.due_at - first_ended - DAY) < timedelta(minutes=1)
    assert (status.pending, status.due, status.rationed, status.rationed_until) == (1, 0, 1, outcome.due_at)
    assert look(client).pending.popitem()[1].get(".attempts") is None
    healthy(client)
    advance(client, 21 * HOUR_MS)
    extract(client, settings)
    push(memd, 4)
    assert claimed(client, settings) == {}  # the second one is 23 hours ago
    advance(client, HOUR_MS)
    assert list(claimed(client, settings)) == ["t"]
    healthy(client)


def test_other_threads_and_other_memories_go_on(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """Also of the same user, whose order stays: a thread that waits is passed over."""
    settings = limited(1)
    push(memd, 0)
    extract(client, settings)
    push(memd, 1)
    push(memd, 2, thread="other")
    push(memd, 3, user="bob", thread="of-bob")
    push(memd, 4, agent="coach")
    found = send(client, verbs.claim(settings, 10, 0, "w", "m")).taken
    assert {(claim.key.thread_id, claim.key.agent_name) for claim in found} == {
        ("other", ""), ("of-bob", ""), ("t", "coach"),
    }  # fmt: skip
    assert memd.status().rationed == 1
    healthy(client)


def test_what_waits_merges_whatever_is_pushed_and_flushed(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings], cli: Cli
) -> None:
    """Urgent pushes merge into it; no flush overrides it, and flush, status and doctor say until when it waits."""
    settings = limited(1)
    push(memd, 0)
    extract(client, settings)
    push(memd, 1)
    assert claimed(client, settings) == {}
    for number in range(2, 6):
        turns = [{"role": "user", "content": "I own a boat. " * 900, "id": f"m{number}"}]
        assert memd.push(turns, thread_id="t", user_id="ana", now=bool(number % 2)).status == "merged"
    result = memd.flush(wait=True, timeout_s=60)
    assert (result.counts, result.rationed, result.timed_out) == ({"waiting": 1}, 1, True)
    assert claimed(client, settings) == {}
    assert "1 key waits for a budget until" in cli("status").stdout
    assert "1 key waits for a budget until" in " ".join(cli("doctor").stdout.split())
    advance(client, 24 * HOUR_MS)
    [claim] = send(client, verbs.claim(settings, 10, 0, "w", "m")).taken
    assert len(claim.messages) == 5
    healthy(client)


def test_a_flush_before_a_claim_keeps_to_it(memd: Memd, client: redis.Redis, limited: Callable[..., Settings]) -> None:
    """A key in its quiet time is set aside by the flush itself."""
    settings = limited(1)
    push(memd, 0)
    extract(client, settings)
    push(memd, 1, now=False)
    result = memd.flush(user_id="ana")
    assert (result.counts, result.rationed) == ({"waiting": 1}, 1)
    healthy(client)


@pytest.mark.parametrize(
    ("how", "counts"),
    [("acked without a call", False), ("buried", True), ("given back", False), ("a kept answer", True)],
)
def test_what_counts_as_an_extraction(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings], how: str, counts: bool
) -> None:
    """The end of a claim for which the model was asked; what is given back is not ended."""
    settings = limited(1)
    push(memd, 0)
    claim = claimed(client, settings)["t"]
    if how == "acked without a call":
        send(client, verbs.ack(claim, {"state": "skipped", "reason": "already_known"}, {}))
    elif how == "buried":
        send(client, verbs.bury(claim, "E_X", "E_X: x", CALLED))
    else:
        if how == "a kept answer":
            assert send(client, verbs.keep_answer(claim, PaidAnswer("asked", b"answer")))
        send(client, verbs.release(claim, "paused", stats=CALLED))
        again = wait_for(lambda: claimed(client, settings), "it is due again")["t"]
        if how == "a kept answer":
            assert send(client, verbs.ack(again, {"state": "stored", "facts": []}, {}))
        else:
            send(client, verbs.release(again, "paused"))
    push(memd, 1)
    wait_for(lambda: memd.status().rationed or claimed(client, settings), "it is claimed or waits")
    assert memd.status().rationed == counts
    healthy(client)


def test_the_later_of_two_budgets_holds(memd: Memd, client: redis.Redis, configured: Callable[..., Settings]) -> None:
    """Tokens until midnight, extractions until a day after: the key waits for both, once."""
    settings = configured(budget__thread_extractions_per_day=1, budget__user_tokens_per_day=1_000)
    library.install(client, settings)
    push(memd, 0)
    extract(client, settings, stats={**CALLED, "used:input:m": 2_000})
    receipt = push(memd, 1)
    assert claimed(client, settings) == {}
    until = memd.receipt(receipt).due_at
    assert until is not None
    assert abs(until - now_of(client) - DAY) < timedelta(minutes=1)
    healthy(client)


def test_a_raised_budget_is_looked_at_at_once(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """So is one that is switched off, with which nothing more is noted; fewer than before hold at once, too."""
    settings = limited(1)
    push(memd, 0)
    extract(client, settings)
    push(memd, 1)
    assert claimed(client, settings) == {}
    limited(2)
    extract(client, settings)
    push(memd, 2)
    assert claimed(client, settings) == {}
    limited(None)
    extract(client, settings)
    assert [len(row) for row in look(client).family("extracted").values()] == [2]
    limited(1)
    push(memd, 3)
    assert claimed(client, settings) == {}


def test_without_it_nothing_is_kept(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Off by default; and what is kept has an end."""
    push(memd, 0)
    extract(client, settings)
    assert "extracted" not in look(client).names


def test_forgetting_leaves_no_trace_of_it(memd: Memd, client: redis.Redis, limited: Callable[..., Settings]) -> None:
    """The waiting key and the times go; what is noted ends by itself."""
    settings = limited(1)
    push(memd, 0)
    extract(client, settings)
    push(memd, 1)
    assert claimed(client, settings) == {}
    [row] = client.scan_iter(match=f"{P}:extracted:*")
    assert 0 < client.pttl(row) <= 24 * HOUR_MS
    memd.forget("ana")
    assert not {"extracted", "rationed"} & look(client).names
    healthy(client)


def test_a_clock_set_back_makes_nobody_wait_longer_than_a_day(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """What ended in the future counts for nothing; a wait beyond a day from now is looked at again at midnight."""
    settings = limited(1)
    push(memd, 0)
    extract(client, settings)
    push(memd, 1)
    assert claimed(client, settings) == {}
    assert send(client, verbs.rebase()) == 0
    [key] = look(client).zset("rationed")
    client.zadd(f"{P}:rationed", {key: 9e12})
    assert send(client, verbs.rebase()) == 1
    until = memd.status().rationed_until
    assert until is not None
    assert until <= now_of(client) + DAY
    advance(client, -72 * HOUR_MS)
    send(client, verbs.rebase())
    advance(client, 48 * HOUR_MS)
    assert list(claimed(client, settings)) == ["t"]
    healthy(client)


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """The shared server's settings; a test that steps the clock has a server of its own."""
    if "step" not in request.fixturenames:
        yield request.getfixturevalue("configured")()
        return
    from support import make_settings

    model = request.getfixturevalue("model")
    yield make_settings(
        request.getfixturevalue("data_dir"), None,
        extraction__extractor="anthropic", extraction__base_url=model.base_url, extraction__api_key="test-key",
        budget__thread_extractions_per_day=1,
    )  # fmt: skip


def test_a_day_later_it_goes_on(settings: Settings, step: Step) -> None:
    """With real parts: one extraction a day, the messages of the meantime merged into the next, none lost."""
    with Memd(settings) as app, connect(settings) as client, part("scheduler", settings), part("worker", settings):
        push(app, 0)
        wait_for(lambda: len(app.facts("ana")) == 1, "the first one is stored")
        for number in range(1, 5):
            push(app, number)
        wait_for(lambda: app.status().rationed == 1, "the thread waits")
        push(app, 5)
        assert len(app.facts("ana")) == 1
        step(86_400)
        wait_for(lambda: len(app.facts("ana")) == 6, "what came meanwhile is stored", timeout_s=40)
        assert app.status().dead == 0
        rows = partial(client.scan_iter, match=f"{P}:extracted:*")
        wait_for(lambda: [execute(client, "LLEN", row) for row in rows()] == [1], "the one of today is counted")
