"""What holds for any input: merging, taking in, backing off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
import redis
from hypothesis import HealthCheck, assume, example, given
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from msgspec import structs
from support import first_due, inbox_view
from support.conversations import KEYS, NONSENSE, WINDOWS, Window
from support.inbox_checks import World
from support.inbox_view import advance, look

from memd.config import Settings
from memd.context import Context, Message
from memd.errors import ContentRefused, ExtractionFailed, ModelUnavailable
from memd.inbox import breaker, raw_door, verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.scheduler.intake import Intake

pytestmark = pytest.mark.timing

ENOUGH = settings_of(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
CONTEXTS = WINDOWS.map(lambda window: replace(window, version=0, now=False)).map(lambda window: window.context)
"""Pushes that say the same of the same message."""

WHERE = st.integers(0, 9)
CODES = ["rate_limited", "unauthorized", "server_error"]
ACCOUNT_S = 60
BACKOFF_MAX_S = 300

Merged = dict[str, tuple[tuple[Message, ...], str, str]]


@pytest.fixture
def world(client: redis.Redis, configured: Callable[..., Settings]) -> Iterator[World]:
    """A world in which no time passes by itself."""
    slow = {"scheduler__quiet_s": 30, "scheduler__max_wait_s": 300, "drain__lease_s": 120}
    backoff = {"drain__backoff_s": 2, "drain__backoff_max_s": BACKOFF_MAX_S, "drain__max_attempts": 100}
    with ThreadPoolExecutor(2) as threads:
        yield World(client, configured(**slow, **backoff), threads)


def merged(world: World, *contexts: Context) -> Merged:
    """What is pending after these pushes to an empty inbox: messages in order, with their tokens."""
    world.reset()
    for context in contexts:
        send(world.client, verbs.push(context))
    return pending(world)


def pending(world: World) -> Merged:
    fields = look(world.client).pending.items()
    return {key: (inbox_view.messages(found), found[".size"], found[".tokens"]) for key, found in fields}


def parts(context: Context, at: int) -> tuple[Context, Context]:
    """A push cut in two; each part has at least one message."""
    at = 1 + at % (len(context.messages) - 1)
    return structs.replace(context, messages=context.messages[:at]), structs.replace(
        context, messages=context.messages[at:]
    )


@ENOUGH
@given(one=CONTEXTS, other=CONTEXTS)
def test_a_push_again_changes_nothing(world: World, one: Context, other: Context) -> None:
    """A, B and A again come to the same as A and B."""
    assert merged(world, one, other, one) == merged(world, one, other)


@ENOUGH
@given(context=CONTEXTS.filter(lambda context: len(context.messages) > 1), at=WHERE)
def test_a_push_in_two_parts_comes_to_the_same(world: World, context: Context, at: int) -> None:
    """However a conversation is cut into pushes, the same is pending."""
    assert merged(world, *parts(context, at)) == merged(world, context)


@ENOUGH
@given(
    windows=st.lists(WINDOWS.map(lambda window: replace(window, ids=True)), min_size=1, max_size=6),
    at=WHERE,
)
def test_a_claim_that_comes_back_leaves_no_trace(world: World, windows: list[Window], at: int) -> None:
    """Whenever all is claimed, and given back after the rest has been pushed, the same is pending as without."""
    contexts = [replace(window, now=True).context for window in windows]
    without = merged(world, *contexts)
    before, after = contexts[: at % len(contexts)], contexts[at % len(contexts) :]
    merged(world, *before)
    claims = send(world.client, verbs.claim(world.settings, 10, 0, "w", world.endpoint)).taken
    for context in after:
        send(world.client, verbs.push(context))
    for claim in claims:
        assert send(world.client, verbs.release(claim.id, "paused")) == "released"
    assert {key: found[:2] for key, found in pending(world).items()} == {
        key: found[:2] for key, found in without.items()
    }


class Interrupted(redis.Redis):
    """A client whose user is interrupted between what it has read and what it does."""

    interrupt: Callable[[], None] = staticmethod(lambda: None)

    def __init__(self, other: redis.Redis) -> None:
        super().__init__(connection_pool=other.connection_pool)

    @property
    def connection_pool(self) -> redis.ConnectionPool:
        """What each command goes through: whoever was waiting for it comes first."""
        self.interrupt()
        return self._pool

    @connection_pool.setter
    def connection_pool(self, pool: redis.ConnectionPool) -> None:
        self._pool = pool


@pytest.fixture
def interrupted(world: World, monkeypatch: pytest.MonkeyPatch) -> tuple[Interrupted, Intake]:
    """A scheduler's intake, which takes in two at once, and the client by which it is interrupted."""
    monkeypatch.setattr("memd.inbox.raw_door.PART", 2)
    client = Interrupted(world.client)
    return client, Intake(world.settings, client)


@ENOUGH
@given(
    raws=st.lists(WINDOWS.map(lambda window: window.raw) | st.sampled_from(NONSENSE), min_size=1, max_size=12),
    moments=st.lists(st.tuples(st.integers(0, 5), st.booleans()), max_size=12),
)
def test_two_schedulers_take_in_what_one_does(
    world: World, interrupted: tuple[Interrupted, Intake], raws: list[bytes], moments: list[tuple[int, bool]]
) -> None:
    """Between a scheduler's look at the list and its steps, more may come, and another scheduler may be faster."""
    world.reset()
    world.client.rpush(verbs.RAW, *raws)
    world.intakes[0].tick()
    alone = (pending(world), dead(world))

    world.reset()
    client, intake = interrupted
    client.interrupt = _arriving(world, raws, moments)
    for _ in range(len(raws) + len(moments)):
        intake.tick()
        client.interrupt()
    world.intakes[1].tick()
    assert world.client.llen(verbs.RAW) == 0
    assert (pending(world), dead(world)) == alone
    assert raw_door.taken(world.client, [verbs.RAW]) == [len(raws)]


def _arriving(world: World, raws: list[bytes], moments: list[tuple[int, bool]]) -> Callable[[], None]:
    """What happens at each interruption: pushes arrive, one when nothing is said; another scheduler may tick."""
    left, coming = list(raws), list(moments)

    def interrupt() -> None:
        count, faster = coming.pop() if coming else (1, False)
        arrived, left[:count] = left[:count], []
        if arrived:
            world.client.rpush(verbs.RAW, *arrived)
        if faster:
            world.intakes[1].tick()

    return interrupt


def dead(world: World) -> list[str]:
    return sorted(letter[".raw"] for letter in look(world.client).family("dead").values())


ROUNDED_S = 0.002
"""What cutting two times to whole milliseconds may take away."""

TRIPS = st.tuples(st.sampled_from(CODES), st.none() | st.floats(0, 400), st.sampled_from([0, 1, 70, 700]))


@ENOUGH
@example(trips=[("server_error", 300.0, 0), ("server_error", 301.0, 0)])
@given(trips=st.lists(TRIPS, min_size=1, max_size=12))
def test_an_endpoints_pause_keeps_its_bounds(world: World, trips: list[tuple[str, float | None, int]]) -> None:
    """Half to all of a ceiling that doubles up to backoff_max_s; a minute for accounts; Retry-After is a floor."""
    world.reset()
    ceiling, passed, earliest, latest = 0.0, 0, 0.0, 0.0  # the pause ends between the earliest and the latest moment
    for failures, (code, asked, passes) in enumerate(trips, 1):
        before = world.clock() / 1000 + passed
        found = send(world.client, breaker.trip(world.endpoint, ModelUnavailable(code, "", asked)))
        after = world.clock() / 1000 + passed
        assume(after < earliest or before > latest)
        if not ceiling and code == "server_error" and failures < 3 and (asked or 0) <= BACKOFF_MAX_S:
            assert found.state == "counted"
        elif after < earliest:
            assert found.pause_s >= max(asked or 0, earliest - after) - ROUNDED_S
        else:
            floor = ACCOUNT_S if code == "unauthorized" else 0
            ceiling = max(floor, min(2 * ceiling or 2, 300))
            assert max(ceiling / 2, floor, asked or 0) - ROUNDED_S <= found.pause_s <= max(ceiling, asked or 0)
        if found.state != "counted":
            earliest, latest = before + found.pause_s, after + found.pause_s
        advance(world.client, passes * 1000)
        passed += passes


FAILURES: dict[str, Callable[[float | None], ExtractionFailed]] = {
    "content": lambda _: ContentRefused("refusal", ""),
    "server": lambda asked: ModelUnavailable("server_error", "", asked),
    "limit": lambda asked: ModelUnavailable("rate_limited", "", asked),
}


LONG = {"window": Window(KEYS[0], 0, 1, True, 0, "", True), "tries": 0, "asked": 301.0}
"""A Retry-After longer than any key may wait."""


@ENOUGH
@example(kind="limit", **LONG)
@example(kind="server", **LONG)
@given(
    window=WINDOWS,
    kind=st.sampled_from(list(FAILURES)),
    tries=st.integers(0, 60),
    asked=st.none() | st.floats(0.01, 400),
)
def test_a_keys_backoff_keeps_its_bounds(
    world: World, window: Window, kind: str, tries: int, asked: float | None
) -> None:
    """A key goes back for half to all of backoff_s * 2^tries, never for longer than backoff_max_s.

    Retry-After is a floor for the next call: by the key's due time, or by the breaker where it is longer than that.
    """
    world.reset()
    send(world.client, verbs.push(replace(window, start=0, now=True).context))
    (claim,) = send(world.client, verbs.claim(world.settings, 1, 0, "w", world.endpoint)).taken
    before = world.clock()
    world.live(_tried(claim, tries), FAILURES[kind](asked))
    after = world.clock()
    view = look(world.client)
    due = view.zset("due")[first_due(world.client)]
    open_until = float(view.hash(f"breaker:{world.endpoint}").get("until", 0))
    if kind == "content":
        asked = None
    ceiling = min(300.0, 2.0 * 2 ** (0 if kind == "limit" else tries))
    if kind == "server" and asked is not None:
        ceiling = 0.0
    assert max(ceiling / 2, asked or 0) * 1000 - 2 <= max(due, open_until) - before
    assert max(ceiling / 2, min(asked or 0, BACKOFF_MAX_S)) * 1000 - 2 <= due - before
    assert due - after <= min(max(ceiling, asked or 0), BACKOFF_MAX_S) * 1000


def _tried(claim: Claim, tries: int) -> Claim:
    return replace(claim, attempts=tries, delays=tries)
