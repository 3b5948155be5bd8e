"""The order of a user's conversations: of the due keys of a bucket the one with the oldest last push is taken first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

import pytest
import redis
from support import daemon, ended
from support.inbox_model import GIVES_WAY
from support.inbox_view import check, look

from memd.client import Memd
from memd.config import Settings
from memd.context import Context, Key, Message, identify, user_hash
from memd.inbox import contents, forgetting, library, verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import Flight, send
from memd.inbox.verbs import Merged, P
from memd.inbox.workers import died

pytestmark = pytest.mark.timing

USERS = [f"user-{number}" for number in range(12)]
EVERYTHING = (None, None, None)


@pytest.fixture
def settings(configured: Callable[..., Settings]) -> Settings:
    """No key is due by itself while a test runs."""
    return configured(scheduler__quiet_s=300, scheduler__max_wait_s=300)


def push(
    client: redis.Redis, thread: str, users: Iterable[str] = USERS, *, text: str = "hello", now: bool = False
) -> None:
    messages = identify(thread, [Message("user", text)])
    calls = [verbs.push(Context(Key(thread, user), messages, now=now)) for user in users]
    assert all(isinstance(merged, Merged) for merged in Flight(client, calls).land())


def claim(client: redis.Redis, settings: Settings, room: int = 100) -> tuple[Claim, ...]:
    return send(client, verbs.claim(settings, room, 0, "host:1:a", "model")).taken


def ack(client: redis.Redis, claims: Iterable[Claim]) -> dict[str, list[str]]:
    taken = defaultdict(list)
    for one in claims:
        taken[one.key.user_id].append(one.key.thread_id)
        assert send(client, verbs.ack(one.id, {"state": "stored"}, {}))
    return taken


def flush(client: redis.Redis) -> None:
    assert send(client, verbs.flush_page("due", "0", EVERYTHING))[0] == "0"


def taken_in_turn(client: redis.Redis, settings: Settings, room: int = 100) -> dict[str, list[str]]:
    """The threads of each user in the order in which they are claimed, one after the other."""
    order: dict[str, list[str]] = defaultdict(list)
    while claims := claim(client, settings, room):
        for user, threads in ack(client, claims).items():
            order[user] += threads
        healthy(client)
    return order


def healthy(client: redis.Redis) -> None:
    check(look(client), send(client, verbs.now_ms()))


def after_a_flush(client: redis.Redis, settings: Settings) -> None:
    push(client, "Berlin")
    push(client, "Paris")
    flush(client)


def after_now(client: redis.Redis, settings: Settings) -> None:
    push(client, "Berlin", now=True)
    push(client, "Paris", now=True)


def after_the_first_push_again(client: redis.Redis, settings: Settings) -> None:
    """A push that brings nothing new leaves its key in its place."""
    push(client, "Berlin")
    push(client, "Paris")
    push(client, "Berlin")
    flush(client)


def after_a_park(client: redis.Redis, settings: Settings) -> None:
    """Both wait until a third conversation has ended."""
    push(client, "third", now=True)
    claims = claim(client, settings)
    push(client, "Berlin", now=True)
    push(client, "Paris")
    assert not claim(client, settings)
    flush(client)
    assert not claim(client, settings)
    ack(client, claims)


def after_a_release(client: redis.Redis, settings: Settings) -> None:
    push(client, "Berlin", now=True)
    claims = claim(client, settings)
    push(client, "Paris", now=True)
    for one in claims:
        assert send(client, verbs.release(one.id, "failed", 0, "E_TEST")) == "released"


def after_a_backoff(client: redis.Redis, settings: Settings) -> None:
    """The backoff is over, as far as a flush is concerned, when both are due."""
    push(client, "Berlin", now=True)
    for one in claim(client, settings):
        assert send(client, verbs.release(one.id, "failed", 60, "E_TEST")) == "released"
    push(client, "Paris", now=True)
    flush(client)


def after_a_deferral(client: redis.Redis, settings: Settings) -> None:
    """Both are put aside for a budget, and brought back together."""
    push(client, "Berlin", now=True)
    push(client, "Paris", now=True)
    client.hset(f"{P}:config", "total_day_tokens", 1)
    client.hset(f"{P}:held", ".total", 1)
    while client.zcount(f"{P}:due", "-inf", "+inf"):
        assert not claim(client, settings)
    client.hset(f"{P}:config", "total_day_tokens", 0)
    client.zunionstore(f"{P}:rationed", {f"{P}:rationed": 0})


def after_a_worker_died(client: redis.Redis, settings: Settings) -> None:
    push(client, "Berlin", now=True)
    claim(client, settings)
    push(client, "Paris", now=True)
    assert send(client, died("host:1:a")) == len(USERS)


def after_a_retry_of_the_dead(client: redis.Redis, settings: Settings) -> None:
    push(client, "Berlin", now=True)
    for one in claim(client, settings):
        assert send(client, verbs.bury(one.id, "E_TEST", "a test"))
    push(client, "Paris", now=True)
    letters = client.zrange(f"{P}:dead", 0, -1)
    assert client.fcall("memd_retry_1", 1, P, *letters) == len(USERS)


WAYS: list[Callable[[redis.Redis, Settings], None]] = [
    after_a_flush, after_now, after_the_first_push_again, after_a_park, after_a_release, after_a_backoff,
    after_a_deferral, after_a_worker_died, after_a_retry_of_the_dead,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_older_conversation_is_taken_first(
    client: redis.Redis, settings: Settings, way: Callable[[redis.Redis, Settings], None]
) -> None:
    """Berlin is pushed, then Paris: however both became due, no user's Berlin is applied after Paris."""
    way(client, settings)
    healthy(client)
    assert taken_in_turn(client, settings, room=100) == {user: ["Berlin", "Paris"] for user in USERS}


def test_a_flush_in_pages_keeps_the_order(client: redis.Redis, settings: Settings) -> None:
    """More keys than a page of a flush, and a worker that takes what is due between two pages."""
    users = [f"user-{number}" for number in range(520)]
    push(client, "Berlin", users)
    push(client, "Paris", users)
    order: dict[str, list[str]] = defaultdict(list)
    cursor, pages = "", 0
    while cursor != "0":
        cursor, _ = send(client, verbs.flush_page("due", cursor or "0", EVERYTHING))
        pages += 1
        for user, threads in ack(client, claim(client, settings, room=500)).items():
            order[user] += threads
    assert pages > 1
    for user, threads in taken_in_turn(client, settings, room=500).items():
        order[user] += threads
    assert order == {user: ["Berlin", "Paris"] for user in users}


def test_a_key_in_its_backoff_is_passed_over(client: redis.Redis, settings: Settings) -> None:
    """What fails keeps nothing waiting; when both are due again it goes first."""
    push(client, "Berlin", ["ana"], now=True)
    [first] = claim(client, settings)
    assert send(client, verbs.release(first.id, "failed", 60, "E_TEST")) == "released"
    push(client, "Paris", ["ana"], now=True)
    assert ack(client, claim(client, settings)) == {"ana": ["Paris"]}


@pytest.mark.parametrize("releases", [GIVES_WAY - 1, GIVES_WAY])
def test_a_key_that_always_comes_back_gives_way(client: redis.Redis, settings: Settings, releases: int) -> None:
    """The endpoint may fail on its content alone: after many releases at no attempt the others go first."""
    push(client, "Berlin", ["ana"], now=True)
    push(client, "Paris", ["ana"], now=True)
    for _ in range(releases):
        [one] = claim(client, settings)
        assert one.key.thread_id == "Berlin"
        assert send(client, verbs.release(one.id, "paused", 0, "server_error")) == "released"
    expected = ["Berlin", "Paris"] if releases < GIVES_WAY else ["Paris", "Berlin"]
    assert taken_in_turn(client, settings) == {"ana": expected}


def test_keys_of_an_older_build_are_lined_up(client: redis.Redis, settings: Settings) -> None:
    """What a build without lines left, in any row, is claimed in order after the upgrade."""
    push(client, "third", now=True)
    claims = claim(client, settings)
    push(client, "Berlin", now=True)
    push(client, "Paris")
    assert not claim(client, settings)  # Berlin is parked
    client.delete(*client.keys(f"{P}:parked:line:*"))
    client.hset(f"{P}:config", "build", library.FIRST_WITH_LINES - 1)
    assert library.install(client, settings)
    healthy(client)
    ack(client, claims)
    flush(client)
    assert taken_in_turn(client, settings) == {user: ["Berlin", "Paris"] for user in USERS}


def test_a_users_only_key_takes_no_memory_for_a_line(client: redis.Redis, settings: Settings) -> None:
    """Nothing waits behind it, however often it is pushed; the second conversation brings both into line."""
    push(client, "Berlin")
    push(client, "Berlin", text="and again")
    assert not look(client).lines
    push(client, "Paris", ["ana", *USERS[1:]])
    healthy(client)
    assert {len(line) for line in look(client).lines.values()} == {2}
    assert len(look(client).lines) == len(USERS) - 1
    push(client, "Berlin", text="the newest")
    flush(client)
    alone = {USERS[0]: ["Berlin"], "ana": ["Paris"]}
    assert taken_in_turn(client, settings) == {user: ["Paris", "Berlin"] for user in USERS[1:]} | alone


def test_a_conversation_of_a_backup_is_in_line_before_the_one_that_came_since(
    client: redis.Redis, settings: Settings
) -> None:
    """Into an empty inbox comes a push, alone in it; then what the backup has of the same user."""
    push(client, "Berlin", ["ana"])
    [kept] = contents.read(client)
    client.flushall()
    assert library.install(client, settings)
    push(client, "Paris", ["ana"])
    assert contents.restore(client, kept) == 1
    healthy(client)
    flush(client)
    assert taken_in_turn(client, settings) == {"ana": ["Berlin", "Paris"]}


def test_nothing_of_a_forgotten_conversation_keeps_others_parked(client: redis.Redis, settings: Settings) -> None:
    """Of two keys of a free bucket one waits for the other: when that one is forgotten, it is due at once."""
    push(client, "third", ["ana"], now=True)
    claims = claim(client, settings)
    push(client, "Berlin", ["ana"], now=True)
    cut = send(client, forgetting.cut())
    push(client, "Paris", ["ana"], now=True)
    assert not claim(client, settings)
    ack(client, claims)
    send(client, forgetting.traces(user_hash("ana"), "", "0", cut, remove=True))
    healthy(client)
    assert taken_in_turn(client, settings) == {"ana": ["Paris"]}


def test_a_move_is_remembered_however_it_is_flushed(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """With a daemon: everybody lives in Paris at the end."""
    for city in ("Berlin", "Paris"):
        for user in USERS:
            memd.push([{"role": "user", "content": f"I live in {city}.", "id": "1"}], thread_id=city, user_id=user)
    with daemon(settings):
        assert ended(memd) == {"stored": 2 * len(USERS)}
    facts = {user: [fact["content"] for fact in memd.document(user)["facts"]] for user in USERS}
    assert all(len(known) == 1 and "Paris" in known[0] for known in facts.values())
