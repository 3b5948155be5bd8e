"""Token budgets per day: a key over budget waits and merges, costs no attempt, and continues the next day."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
import redis
from support import Cli, Step, daemon, execute, part, wait_for
from support.fault_support import events
from support.inbox_view import check, look

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.context import user_hash
from memd.inbox import library, verbs
from memd.inbox.connection import connect, send
from memd.inbox.verbs import P
from memd.memory.store.json_store import open_store
from memd.testing import ModelServer

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]
DAY_MS = 86_400_000
SAID = ("I own a red boat.", "我住在杭州。")


def push(app: Memd, user: str, number: int = 0, *, thread: str = "", now: bool = True) -> str:
    turns = [{"role": "user", "content": SAID[number % 2], "id": f"m{number}"}]
    return app.push(turns, thread_id=thread or f"t{number}", user_id=user, now=now).id or ""


def claimed(client: redis.Redis, settings: Settings) -> dict[str, str]:
    """Claim all claimable keys: user -> claim."""
    return {claim.key.user_id: claim.id for claim in send(client, verbs.claim(settings, 10, 0, "w", "m")).taken}


def spend(client: redis.Redis, claim: str, tokens: int) -> None:
    """Ack a claim whose call has used this many tokens."""
    stats = {"used:input:claude-haiku-5-5": tokens - 1, "used:output:claude-haiku-5-5": 1, "used:calls:x": 1}
    assert send(client, verbs.ack(claim, {"state": "stored", "facts": []}, stats))


def healthy(client: redis.Redis) -> None:
    seconds, micros = client.time()
    check(look(client), int(seconds) * 1000 + int(micros) // 1000)


def midnight(client: redis.Redis) -> datetime:
    """The end of the server's day."""
    today = datetime.fromtimestamp(client.time()[0], UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return today + timedelta(days=1)


@pytest.fixture
def limited(configured: Configured, client: redis.Redis) -> Callable[..., Settings]:
    """Settings with budgets, written to the server, which do not see the day end during the test."""
    wait_for(lambda: midnight(client).timestamp() - client.time()[0] > 30, "the server's next day has begun")

    def make(**budgets: int) -> Settings:
        settings = configured(**{f"budget__{name}_tokens_per_day": tokens for name, tokens in budgets.items()})
        library.install(client, settings)
        return settings

    return make


def test_over_budget_a_key_waits_until_the_day_is_over(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """The key stays pending at no attempt until midnight UTC of the server's clock; receipt and status say so."""
    settings = limited(user=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    receipt = push(memd, "ana", 1)
    assert claimed(client, settings) == {}
    outcome, status = memd.receipt(receipt), memd.status()
    assert (outcome.state, outcome.reason, outcome.due_at) == ("pending", "budget", midnight(client))
    assert (status.pending, status.due, status.rationed, status.rationed_until) == (1, 0, 1, midnight(client))
    assert look(client).pending.popitem()[1].get(".attempts") is None
    healthy(client)


def test_other_users_go_on(memd: Memd, client: redis.Redis, limited: Callable[..., Settings]) -> None:
    """Each user has a budget of their own, which all their agents share."""
    settings = limited(user=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_500)
    push(memd, "ana", 1)
    memd.push(
        [{"role": "user", "content": SAID[0], "id": "1"}], thread_id="t", user_id="ana", agent_name="coach", now=True
    )
    push(memd, "小林", 1)
    assert list(claimed(client, settings)) == ["小林"]
    assert memd.status().rationed == 2


def test_no_key_is_left_behind_one_that_waits(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """Keys parked behind a claim that uses up the budget then wait for the budget as well, each by itself."""
    settings = limited(user=1_000)
    push(memd, "ana")
    claim = claimed(client, settings)["ana"]
    for number in range(1, 4):
        push(memd, "ana", number)
    assert claimed(client, settings) == {}
    assert memd.status().parked == 3
    spend(client, claim, 1_000)
    for _ in range(3):
        assert claimed(client, settings) == {}
        healthy(client)
    assert (memd.status().rationed, memd.status().parked) == (3, 0)


def test_the_total_budget_holds_everybody(memd: Memd, client: redis.Redis, limited: Callable[..., Settings]) -> None:
    """When all users together have used it up, no key is claimed."""
    settings = limited(total=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    for user in ("ana", "bob", "小林"):
        push(memd, user, 1)
    assert claimed(client, settings) == {}
    assert memd.status().rationed == 3
    assert send(client, verbs.tick(0, "m")).waiting == 0


def test_a_key_that_waits_goes_on_merging(memd: Memd, client: redis.Redis, limited: Callable[..., Settings]) -> None:
    """Urgent pushes, and text beyond flush_tokens, merge into the waiting key and do not make it due."""
    settings = limited(user=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    push(memd, "ana", 1)
    assert claimed(client, settings) == {}
    for number in range(5):
        turns = [{"role": "user", "content": "I own a boat. " * 900, "id": f"n{number}"}]
        pushed = memd.push(turns, thread_id="t1", user_id="ana", now=bool(number % 2))
        assert (pushed.status, pushed.due_at) == ("merged", midnight(client))
    assert claimed(client, settings) == {}
    assert (memd.status().pending, memd.status().rationed) == (1, 1)
    healthy(client)


def test_what_is_under_way_is_held_back(memd: Memd, client: redis.Redis, limited: Callable[..., Settings]) -> None:
    """Claims in flight that would use up the budget delay other keys for a while, not for the day."""
    settings = limited(total=4_000)
    for user in ("ana", "bob", "eve"):
        push(memd, user)
    before = datetime.now(UTC) - timedelta(milliseconds=1)  # the server's clock is cut to milliseconds
    first = claimed(client, settings)
    after = datetime.now(UTC)
    assert len(first) == 2
    until = memd.status().rationed_until
    assert until is not None
    assert before < until <= after + timedelta(seconds=0.5)
    for claim in first.values():
        spend(client, claim, 100)
    assert not client.exists(f"{P}:held")
    wait_for(lambda: claimed(client, settings), "the third one is looked at again")


@pytest.mark.parametrize("end", ["release", "bury", "forget", "expire"])
def test_what_was_held_back_is_free_however_a_claim_ends(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings], end: str
) -> None:
    """A claim that is given back, dead, forgotten or expired leaves no estimate behind."""
    settings = limited(user=100_000, total=100_000)
    push(memd, "ana")
    claim = claimed(client, settings)["ana"]
    assert set(client.hkeys(f"{P}:held")) == {b".total", user_hash("ana").encode()}
    if end == "release":
        send(client, verbs.release(claim, "paused"))
    elif end == "bury":
        send(client, verbs.bury(claim, "E_X", "E_X: x"))
    elif end == "forget":
        memd.forget("ana")
    else:
        client.zadd(f"{P}:claimed", {claim: 1})
        send(client, verbs.release(claim, "expired"))
    assert not client.exists(f"{P}:held")
    if end == "bury":
        memd.retry(memd.dead())
    if end != "forget":
        wait_for(lambda: claimed(client, settings), "it can be claimed again")
    healthy(client)


def test_an_answer_that_was_refused_is_paid_for(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """The tokens of a claim that is given back or buried are charged all the same, once."""
    settings = limited(user=1_000)
    push(memd, "ana")
    claim = claimed(client, settings)["ana"]
    used = {"used:output:m": 400}
    for _ in range(2):  # as after a lost reply
        send(client, verbs.release(claim, "failed", stats=used))
    claim = wait_for(lambda: claimed(client, settings), "it is due again")["ana"]
    send(client, verbs.bury(claim, "E_X", "E_X: x", used))
    day = client.time()[0] * 1000 // DAY_MS
    assert client.hget(f"{P}:spent:{day}", user_hash("ana")) == b"800"
    assert 0 < client.pttl(f"{P}:spent:{day}") <= 2 * DAY_MS
    assert 0 < client.pttl(f"{P}:usage:{day}") <= 90 * DAY_MS


def test_without_budgets_nothing_is_kept_of_users(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Without budgets there are no keys for them on the server."""
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    assert not [name for name in look(client).names if name in {"spent", "held", "notices"}]


def test_a_flush_overrides_no_budget_but_says_so(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings], cli: Cli
) -> None:
    """The key stays where it is and a waiting flush ends at once, also for a key that was not claimed yet."""
    settings = limited(user=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    push(memd, "ana", 1)
    assert claimed(client, settings) == {}
    push(memd, "ana", 2, now=False)
    result = memd.flush(wait=True, timeout_s=60)
    assert (result.counts, result.timed_out) == ({"waiting": 2}, True)
    assert (result.rationed, result.rationed_until) == (2, midnight(client))
    done = cli("flush", "--user", "ana", "--wait")
    assert (done.returncode, done.stdout) == (4, "2 waiting\n")
    assert (
        f"2 keys wait for a budget, which no flush overrides, until {midnight(client):%Y-%m-%d} 00:00:00 UTC"
        in done.stderr
    )
    assert orjson.loads(cli("flush", "--json").stdout)["rationed"] == 2
    assert "2 keys wait for a budget until" in cli("status").stdout
    healthy(client)


async def _async_receipt(settings: Settings, receipt: str) -> Any:
    app = AsyncMemd(settings)
    try:
        return await app.receipt(receipt)
    finally:
        await app.aclose()


def test_the_receipt_says_it_on_the_command_line_and_to_an_event_loop(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings], cli: Cli
) -> None:
    """`memd receipt` and AsyncMemd name the budget and the moment."""
    import asyncio

    settings = limited(user=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    receipt = push(memd, "ana", 1)
    assert claimed(client, settings) == {}
    assert cli("receipt", receipt).stdout.startswith("pending: waits for a budget until ")
    assert asyncio.run(_async_receipt(settings, receipt)).reason == "budget"


def test_a_raised_budget_is_looked_at_at_once(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """A scheduler that starts with other budgets has waiting keys checked again; one with the same budgets does not."""
    settings = limited(user=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    push(memd, "ana", 1)
    assert claimed(client, settings) == {}
    limited(user=1_000)
    assert (claimed(client, settings), memd.status().rationed) == ({}, 1)
    limited(user=10_000)
    assert list(claimed(client, settings)) == ["ana"]


def test_forgetting_leaves_no_trace_of_it(memd: Memd, client: redis.Redis, limited: Callable[..., Settings]) -> None:
    """A waiting key and the user's usage are removed."""
    settings = limited(user=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    push(memd, "ana", 1)
    assert claimed(client, settings) == {}
    memd.forget("ana")
    view = look(client)
    assert "rationed" not in view.names
    assert "spent" not in view.names
    healthy(client)


def test_a_clock_set_back_leaves_no_key_waiting_for_days(
    memd: Memd, client: redis.Redis, limited: Callable[..., Settings]
) -> None:
    """A time beyond the end of the day is pulled back to it."""
    settings = limited(user=1_000)
    push(memd, "ana")
    spend(client, claimed(client, settings)["ana"], 1_000)
    push(memd, "ana", 1)
    assert claimed(client, settings) == {}
    [key] = look(client).zset("rationed")
    client.zadd(f"{P}:rationed", {key: 9e12})
    assert send(client, verbs.rebase()) == 1
    assert memd.status().rationed_until == midnight(client)
    assert send(client, verbs.rebase()) == 0


def test_a_budget_in_the_whole_flow(asking: Configured, model: ModelServer) -> None:
    """With real parts: the model's own count is charged, the log says so once, and no call is made meanwhile."""
    settings = asking(budget__user_tokens_per_day=3_000)
    with Memd(settings) as app, daemon(settings, workers=2), connect(settings) as client:
        for number in range(30):
            push(app, "ana", number)
            push(app, f"user-{number}")
        wait_for(lambda: app.flush(wait=True).rationed, "ana's budget is spent")
        result = app.flush(wait=True)
        assert result.counts == {"waiting": result.rationed}
        wait_for(lambda: all(app.document(f"user-{number}")["facts"] for number in range(30)), "the others are stored")
        calls, began = model.calls, time.monotonic()
        commands = client.info("commandstats")["cmdstat_fcall"]["calls"]
        has_said(settings)
        assert model.calls == calls
        seconds = time.monotonic() - began
        assert client.info("commandstats")["cmdstat_fcall"]["calls"] - commands < 200 + 40 * seconds
        status = app.status()
        assert (status.dead, status.by_reason, status.claimed) == (0, {}, 0)
        assert status.stored + status.rationed == 60


def has_said(settings: Settings) -> None:
    """Wait for the line in the log: there is one, and it names no user."""
    wait_for(lambda: events(settings, "scheduler", "budget_reached"), "it is said in the log")
    [line] = events(settings, "scheduler", "budget_reached")
    assert (line["budget"], line["tokens_per_day"]) == ("user", 3_000)
    assert line["user"] == open_store(settings).pseudonym(user_hash("ana"))
    assert user_hash("ana") not in str(line)


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
        budget__total_tokens_per_day=1,
    )  # fmt: skip


def test_the_next_day_it_goes_on(settings: Settings, step: Step) -> None:
    """At midnight waiting keys are extracted, with the messages merged meanwhile."""
    with Memd(settings) as app, connect(settings) as client, part("scheduler", settings), part("worker", settings):
        push(app, "ana")
        wait_for(lambda: spent(client), "the first call is charged, and has spent it")
        push(app, "eve", 0, thread="t")
        wait_for(lambda: app.status().rationed == 1, "eve waits")
        push(app, "eve", 1, thread="t")
        step(86_400)
        wait_for(lambda: len(app.document("eve")["facts"]) == 2, "eve's contexts are stored", timeout_s=40)
        assert app.status().dead == 0


def spent(client: redis.Redis) -> int:
    """Tokens used today."""
    day = client.time()[0] * 1000 // DAY_MS
    return int(execute(client, "HGET", f"{P}:spent:{day}", ".total") or 0)
