"""The inbox: each verb on a real server, from push to ack."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given
from hypothesis import settings as settings_of
from hypothesis import strategies as st
from support import dead_letter, execute, wait_for
from support.inbox_view import advance

from memd.config import Settings
from memd.context import Context, Key, Message, identify
from memd.errors import NotReady, Rejected
from memd.inbox import library, raw_door, verbs
from memd.inbox.claim import Claim, Claims
from memd.inbox.connection import Call, send
from memd.inbox.figures import read_figures
from memd.inbox.flush import Flush, Selection
from memd.inbox.receipt import Standing, judge, standings
from memd.inbox.status import read_status
from memd.inbox.verbs import Merged

pytestmark = pytest.mark.timing

KEY = Key("thread", "user")


def context(*texts: str, key: Key = KEY, now: bool = False, ids: bool = False) -> Context:
    turns = [Message("user", text, id=f"id-{text}" if ids else None) for text in texts]
    return Context(key, identify(key.thread_id, turns), now=now)


def push(client: redis.Redis, *texts: str, **options: Any) -> Merged:
    return send(client, verbs.push(context(*texts, **options)))


def claim(client: redis.Redis, settings: Settings, room: int = 10, holding: int = 0) -> Claims:
    return send(client, verbs.claim(settings, room, holding, "w", "model"))


def claim_one(client: redis.Redis, settings: Settings) -> Claim:
    return wait_for(lambda: claim(client, settings).taken, "a key is due")[0]


def texts(taken: Claim) -> list[str]:
    return [message.content for message in taken.messages]


def standing(client: redis.Redis, key: Key = KEY) -> Standing:
    return send(client, standings([key.hash]))[0]


def test_a_push_waits_until_its_key_is_quiet(client: redis.Redis, settings: Settings, configured: Any) -> None:
    """A pushed key is due after the quiet time, and is claimed with its messages in order."""
    library.install(client, configured(scheduler__quiet_s=60, scheduler__max_wait_s=60))
    merged = push(client, "one", "two")
    assert merged.status == "queued"
    assert merged.due_ms - merged.now_ms == 60_000
    assert not claim(client, settings).taken
    advance(client, 60_000)
    taken = claim_one(client, settings)
    assert taken.key == KEY
    assert texts(taken) == ["one", "two"]


def test_pushes_of_one_key_merge_by_identity(client: redis.Redis, settings: Settings) -> None:
    """Growing windows of the same thread become one context with each message once."""
    assert push(client, "one").status == "queued"
    assert push(client, "one", "two").status == "merged"
    push(client, "one", "two", "three", now=True)
    assert texts(claim_one(client, settings)) == ["one", "two", "three"]


def test_the_same_push_twice_changes_nothing_but_the_due_time(client: redis.Redis, settings: Settings) -> None:
    """A repeated push keeps order, sequence and messages; only quiet starts again."""
    first = push(client, "one", "two")
    before = client.hgetall(f"{verbs.P}:ctx:{KEY.hash}")
    wait_for(lambda: push_time(client) > first.now_ms, "the server's clock moves on")
    second = push(client, "one", "two")
    after = client.hgetall(f"{verbs.P}:ctx:{KEY.hash}")
    assert {**before, b".last": b""} == {**after, b".last": b""}
    assert (second.gen, second.seq) == (first.gen, first.seq)
    assert second.due_ms > first.due_ms


def push_time(client: redis.Redis) -> int:
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def test_max_wait_ends_a_steady_stream(client: redis.Redis, settings: Settings) -> None:
    """S2: a key that is pushed without pause is due max_wait after its first push."""
    first = push(client, "0")
    count = 0

    def last_due() -> bool:
        nonlocal count
        count += 1
        merged = push(client, *[str(n) for n in range(count + 1)])
        assert merged.due_ms <= first.now_ms + 2000
        return merged.due_ms == first.now_ms + 2000

    wait_for(last_due, "the due time reaches first push + max_wait")


def test_size_makes_a_key_due_at_once(client: redis.Redis, settings: Settings) -> None:
    """A key whose pending tokens pass flush_tokens is due now."""
    merged = push(client, "x" * 14_000)
    assert merged.due_ms == merged.now_ms


def test_now_makes_a_key_due_and_keeps_it_due(client: redis.Redis, settings: Settings) -> None:
    """A key pushed with `now` stays due when more comes."""
    merged = push(client, "one", now=True)
    assert merged.due_ms == merged.now_ms
    assert push(client, "one", "two").due_ms <= push_time(client)


def test_the_newest_text_of_an_id_wins_while_it_is_pending(client: redis.Redis, settings: Settings) -> None:
    """The same id with other content replaces the pending text and keeps its place."""
    turns = [Message("user", "draft", id="a"), Message("user", "second", id="b")]
    send(client, verbs.push(Context(KEY, identify("thread", turns))))
    edited = [Message("user", "final", id="a")]
    send(client, verbs.push(Context(KEY, identify("thread", edited), now=True)))
    assert texts(claim_one(client, settings)) == ["final", "second"]


def test_a_single_message_matches_a_known_one(client: redis.Redis, settings: Settings) -> None:
    """A message without id and predecessor is the same as a pending one with this role and content."""
    push(client, "one", "two")
    push(client, "two", now=True)
    assert texts(claim_one(client, settings)) == ["one", "two"]


def test_one_claim_for_each_bucket(client: redis.Redis, settings: Settings) -> None:
    """Keys of a busy bucket are parked, and come one at a time when it is free; other buckets are not held up."""
    for thread in ("a", "b", "c"):
        push(client, thread, key=Key(thread, "user"), now=True)
    push(client, "other", key=Key("t", "other"), now=True)
    first = claim(client, settings).taken
    assert sorted(t.key.user_id for t in first) == ["other", "user"]
    assert not claim(client, settings).taken
    mine = next(t for t in first if t.key.user_id == "user")
    assert send(client, verbs.ack(mine.id, {"state": "stored"}, {}))
    second = claim(client, settings).taken
    assert len(second) == 1
    assert second[0].key.user_id == "user"


def test_a_key_in_backoff_does_not_keep_its_bucket_waiting(client: redis.Redis, settings: Settings) -> None:
    """A claim that goes back for a minute makes way for the other parked keys of its bucket at once."""
    push(client, "a", key=Key("a", "user"), now=True)
    held = claim_one(client, settings)
    push(client, "a", "more", key=Key("a", "user"), now=True)
    push(client, "b", key=Key("b", "user"), now=True)
    assert not claim(client, settings).taken
    assert send(client, verbs.release(held.id, "failed", 60, "E_TEST")) == "released"
    assert [taken.key.thread_id for taken in claim(client, settings).taken] == ["b"]


def test_a_flush_reaches_parked_keys(client: redis.Redis, settings: Settings) -> None:
    """A parked key that gets more messages is claimed when the bucket is free."""
    push(client, "a", key=Key("a", "user"), now=True)
    held = claim_one(client, settings)
    push(client, "b", key=Key("b", "user"), now=True)
    assert not claim(client, settings).taken
    push(client, "b", "c", key=Key("b", "user"))
    send(client, verbs.flush_page("claimed", "0", (None, None, None)))
    send(client, verbs.ack(held.id, {"state": "stored"}, {}))
    assert texts(claim_one(client, settings)) == ["b", "c"]


def test_a_flush_of_everything_notes_parked_keys_of_a_free_bucket(client: redis.Redis, settings: Settings) -> None:
    """Between two claims of a bucket one key is due and the others are still parked: none of them is forgotten."""
    for thread in ("a", "b", "c"):
        push(client, thread, key=Key(thread, "user"), now=True)
    held = claim_one(client, settings)
    assert not claim(client, settings).taken
    send(client, verbs.ack(held.id, {"state": "stored"}, {}))
    noted = set()
    for source in ("due", "claimed"):
        noted |= {key for key, _, _ in send(client, verbs.flush_page(source, "0", (None, None, None)))[1]}
    assert noted == {Key(thread, "user").hash for thread in ("a", "b", "c")} - {held.key.hash}


def test_a_flush_leaves_due_keys_in_their_row(client: redis.Redis, settings: Settings) -> None:
    """What is due already keeps its place, parked or not: flushing again and again keeps nobody waiting."""
    for thread in ("a", "b"):
        push(client, thread, key=Key(thread, "user"), now=True)
    held = claim_one(client, settings)
    assert not claim(client, settings).taken
    push(client, "c", key=Key("c", "other"), now=True)
    before = dues(client)
    wait_for(lambda: push_time(client) > max(before.values()), "the server's clock moves on")
    for source in ("due", "claimed"):
        send(client, verbs.flush_page(source, "0", (None, None, None)))
    assert dues(client) == before
    assert len(before) == 2
    assert held.key.user_id == "user"


def test_a_flush_that_looks_while_claims_end_misses_no_key(
    client: redis.Redis, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bucket whose parked key is due when claims are looked at, and claimed when due keys are: all is noted."""
    for thread in ("a", "b", "c"):
        push(client, thread, key=Key(thread, "user"), now=True)
    held = claim_one(client, settings)
    assert not claim(client, settings).taken
    looks = itertools.count()
    meanwhile: dict[int, Callable[[], object]] = {
        3: lambda: send(client, verbs.ack(held.id, {"state": "stored"}, {})),
        4: lambda: claim(client, settings),
    }

    def interrupted(connection: redis.Redis, call: Call[Any]) -> Any:
        """What a worker does just before this call of the flush arrives."""
        if step := meanwhile.get(next(looks)):
            step()
        return send(connection, call)

    monkeypatch.setattr("memd.inbox.flush.send", interrupted)
    assert Flush(client, [verbs.RAW], Selection()).start().counts == {"waiting": 2}


def dues(client: redis.Redis) -> dict[bytes, int]:
    rows = [f"{verbs.P}:due", f"{verbs.P}:parked:{KEY.bucket.hash}"]
    flat = [part for row in rows for part in execute(client, "ZRANGE", row, 0, -1, "WITHSCORES")]
    return {key: int(score) for key, score in flat}


def test_released_messages_come_before_what_came_since(client: redis.Redis, settings: Settings) -> None:
    """A claim given back keeps its order; the newest text of an id stays."""
    push(client, "one", "two", now=True, ids=True)
    held = claim_one(client, settings)
    push(client, "three", ids=True)
    assert send(client, verbs.release(held.id, "failed", 0, "E_TEST")) == "released"
    again = claim_one(client, settings)
    assert texts(again) == ["one", "two", "three"]
    assert again.attempts == 1


def test_what_was_pushed_again_while_claimed_comes_back_in_its_place(client: redis.Redis, settings: Settings) -> None:
    """After a release it is as though the claim had never been: newest text, first place, the signals of both."""
    said = Message("user", "draft", id="a", signals=frozenset({"correction"}))
    send(client, verbs.push(Context(KEY, identify("thread", [said, Message("user", "second", id="b")]), now=True)))
    held = claim_one(client, settings)
    again = Message("user", "final", id="a", signals=frozenset({"reinforcement"}))
    send(client, verbs.push(Context(KEY, identify("thread", [again]))))
    assert send(client, verbs.release(held.id, "paused", 0, "E_TEST")) == "released"
    back = claim_one(client, settings)
    assert texts(back) == ["final", "second"]
    assert back.messages[0].signals == {"correction", "reinforcement"}


def test_a_paused_release_costs_no_attempt(client: redis.Redis, settings: Settings) -> None:
    """An outage delays a key without costing attempts, however often."""
    push(client, "one", now=True)
    for turn in range(8):
        held = claim_one(client, settings)
        assert (held.attempts, held.delays) == (0, turn)
        assert send(client, verbs.release(held.id, "paused", 0.001, "E_OUTAGE")) == "released"


def test_backoff_holds_a_key_back(client: redis.Redis, configured: Any) -> None:
    """A released key is not due before its backoff is over, not even when more comes; a flush overrides it."""
    settings = configured(drain__backoff_max_s=60)
    library.install(client, settings)
    push(client, "one", now=True)
    held = claim_one(client, settings)
    send(client, verbs.release(held.id, "paused", 40, "E_OUTAGE"))
    merged = push(client, "one", "two")
    assert merged.due_ms - merged.now_ms > 20_000
    send(client, verbs.flush_page("due", "0", (None, None, None)))
    assert texts(claim(client, settings).taken[0]) == ["one", "two"]


def test_attempts_end_in_the_dead(client: redis.Redis, settings: Settings) -> None:
    """Content that fails max_attempts times dies with its messages kept, and is not taken in again."""
    push(client, "bad", now=True)
    for _ in range(4):
        assert send(client, verbs.release(claim_one(client, settings).id, "failed", 0, "E_BAD")) == "released"
    assert send(client, verbs.release(claim_one(client, settings).id, "failed", 0, "E_BAD")) == "dead"
    dead = dead_letter(client)
    assert dead[b".code"] == b"E_BAD"
    assert any(b'"bad"' in value for value in dead.values())
    assert standing(client).ranges[0].record == {"state": "dead", "reason": "E_BAD"}
    again = push(client, "bad", now=True)
    assert (again.status, again.reason) == ("skipped", "already_dead")


def test_a_suspect_is_claimed_alone(client: redis.Redis, settings: Settings) -> None:
    """A key whose lease ran out comes back at no cost, to an empty-handed drain; the next expiry costs one."""
    push(client, "poison", now=True)
    held = claim_one(client, settings)
    expire(client, held)
    push(client, "other", key=Key("t", "other"), now=True)
    found = claim(client, settings, holding=1)
    assert [t.key.user_id for t in found.taken] == ["other"]
    assert found.suspects == 1
    alone = claim(client, settings).taken
    assert [(t.key.user_id, t.attempts) for t in alone] == [("user", 0)]
    expire(client, alone[0])
    assert claim_one(client, settings).attempts == 1


def expire(client: redis.Redis, held: Claim) -> None:
    client.zadd(f"{verbs.P}:claimed", {held.id: 1})
    assert send(client, verbs.tick(0, "model")).expired == (held.id,)
    assert send(client, verbs.release(held.id, "expired")) == "released"


def test_a_rescue_leaves_an_extended_lease_alone(client: redis.Redis, settings: Settings) -> None:
    """Extending wins over a rescue that looked before."""
    push(client, "one", now=True)
    held = claim_one(client, settings)
    assert send(client, verbs.extend([held.id])) == [True]
    assert send(client, verbs.release(held.id, "expired")) == "lost"
    assert send(client, verbs.ack(held.id, {"state": "stored"}, {}))
    assert send(client, verbs.extend([held.id])) == [False]


def test_an_ack_after_the_claim_was_lost_does_nothing(client: redis.Redis, settings: Settings) -> None:
    """A stale worker's ack neither forgets the new claim nor frees its bucket."""
    push(client, "one", now=True)
    stale = claim_one(client, settings)
    expire(client, stale)
    fresh = claim_one(client, settings)
    assert not send(client, verbs.ack(stale.id, {"state": "stored"}, {}))
    assert client.hget(f"{verbs.P}:busy", KEY.bucket.hash) == fresh.id.encode()


def test_a_large_key_is_claimed_in_parts(client: redis.Redis, configured: Any) -> None:
    """claim_tokens caps one claim, oldest first; the rest stays due, and receipts wait for all of it."""
    small = configured(drain__claim_tokens=30)
    library.install(client, small)
    push(client, *[f"message {n} " + "x" * 40 for n in range(5)], now=True)
    seen: list[str] = []
    while held := claim(client, small).taken:
        assert len(held[0].messages) <= 2
        seen += texts(held[0])
        current = standing(client)
        assert current.claimed == (1, 1)
        assert (current.pending is None) == (len(seen) == 5)
        send(client, verbs.ack(held[0].id, {"state": "stored"}, {}))
    assert [text.split()[1] for text in seen] == list("01234")


@pytest.mark.parametrize("yes", ["yes", "对"])
@pytest.mark.parametrize("cap", [1, 10, 17, 18, 19, 24, 25, 26, 60])
def test_a_claim_is_never_split_between_a_question_and_its_short_answer(
    client: redis.Redis, configured: Any, cap: int, yes: str
) -> None:
    """Wherever claim_tokens falls, the answer is claimed with its question: alone the drain would skip it."""
    small = configured(drain__claim_tokens=cap)
    library.install(client, small)
    said = [("user", "Plan my diet for April, please."), ("assistant", "Are you allergic to nuts?"), ("user", yes)]
    said += [("assistant", "Noted. " + "x" * 100), ("user", "I row. " + "x" * 600)]
    turns = [Message(role, text, id=str(n)) for n, (role, text) in enumerate(said)]  # type: ignore[arg-type]
    send(client, verbs.push(Context(KEY, identify("thread", turns), now=True)))
    seen: list[list[str]] = []
    while held := claim(client, small).taken:
        seen.append(texts(held[0]))
        send(client, verbs.ack(held[0].id, {"state": "stored"}, {}))
    assert [text for part in seen for text in part] == [text for _, text in said]
    assert not any(part[0] == yes for part in seen)
    assert seen[-1] == [said[-1][1]]  # what is no short answer counts as before


@pytest.mark.parametrize("edited", [0, 1, 4])
def test_a_push_that_only_changes_messages_ends_with_a_part(client: redis.Redis, configured: Any, edited: int) -> None:
    """A key claimed in parts forgets no push: one that brought no message of its own ends like the others."""
    small = configured(drain__claim_tokens=30)
    library.install(client, small)
    turns = [Message("user", f"message {n} " + "x" * (200 if n == 4 else 60), id=str(n)) for n in range(5)]
    changed = Message("user", turns[edited].content + "!", id=str(edited))
    pushes = [turns[:1], [changed], turns[1:]] if edited == 0 else [turns, [changed]]
    receipts = [send(client, verbs.push(Context(KEY, identify("thread", pushed), now=True))) for pushed in pushes]
    while held := claim(client, small).taken:
        assert {judge(standing(client), r.gen, r.seq).state for r in receipts} <= {"pending", "claimed", "stored"}
        send(client, verbs.ack(held[0].id, {"state": "stored"}, {}))
    assert {judge(standing(client), r.gen, r.seq).state for r in receipts} == {"stored"}


def test_known_messages_do_not_count_towards_size(client: redis.Redis, settings: Settings) -> None:
    """What was taken in lately neither makes a key due by size nor moves its due time; it is not hidden either."""
    big = "x" * 14_000
    push(client, big, now=True)
    send(client, verbs.ack(claim_one(client, settings).id, {"state": "stored"}, {}))
    merged = push(client, big, "new")
    assert merged.due_ms - merged.now_ms == 150
    assert texts(claim_one(client, settings)) == [big, "new"]


CLOCK_SLACK_MS = 20
"""Between the server's answer to TIME and to PTTL."""


def unix_ms(client: redis.Redis) -> int:
    """The server's clock."""
    seconds, micros = client.time()
    return int(seconds) * 1000 + int(micros) // 1000


def test_what_a_thread_that_never_rests_is_known_by_does_not_pile_up(client: redis.Redis, configured: Any) -> None:
    """Each push brings a message and is taken at once: known are those of the last moments, and those sent again."""
    brief = configured(inbox__known_ttl_s=0.5)
    library.install(client, brief)
    first = "x" * 14_000

    def most_known() -> int:
        names = list(client.scan_iter(match=f"{verbs.P}:known:*"))
        now_ms = unix_ms(client)
        for name in names:  # its own moment and the next one; no forget would find it after that
            end_ms = (int(name.rpartition(b":")[2]) + 2) * 500
            assert now_ms + client.pttl(name) <= end_ms + CLOCK_SLACK_MS, "a set lasts longer than it is read"
        return max(map(client.scard, names), default=0)

    numbers = itertools.count()

    def talked_on() -> bool:
        number = next(numbers)
        assert push(client, first, f"message {number}", now=True).status in ("queued", "merged")
        send(client, verbs.ack(claim_one(client, brief).id, {"state": "stored"}, {}))
        return number > 3 * most_known() + 50

    wait_for(talked_on, "most of what was said is not known any more")
    later = push(client, first, "the last one")
    assert later.due_ms - later.now_ms == 150


def test_the_function_checks_count_size_and_shape(client: redis.Redis, settings: Settings) -> None:
    """A trusted client that sends nonsense gets a code, and nothing is stored."""
    for header, code in [
        ("not json", "E_VERSION"),
        ("[]", "E_VERSION"),
        ('{"v":4}', "E_VERSION"),
        ('{"v":1,"key":"x"}', "E_HEADER_HASH"),
    ]:
        with pytest.raises(redis.ResponseError, match=code):
            execute(client, "FCALL", "memd_push", 1, verbs.P, header, "{}")
    command = list(verbs.push(context("one")).command)
    with pytest.raises(redis.ResponseError, match="E_MESSAGES_COUNT"):
        execute(client, *command, "{}")
    too_big = Context(KEY, identify("t", [Message("user", "x" * 1_100_000)]))
    with pytest.raises(Rejected, match="E_PUSH_SIZE"):
        send(client, verbs.push(too_big))
    assert client.zcard(f"{verbs.P}:due") == 0


def test_content_that_a_trusted_client_forged_is_marked(client: redis.Redis, settings: Settings) -> None:
    """A message that is no message, or a key that does not fit its hash, makes the claim bad with a code."""
    command = [*verbs.push(context("one", now=True)).command]
    command[-1] = b'{"role":"system","content":"x"}'
    execute(client, *command)
    assert (claim_one(client, settings).bad or "").startswith("E_")
    other = Key("thread", "somebody-else")
    forged = [*verbs.push(context("two", key=other, now=True)).command]
    forged[4] = forged[4].replace(other.hash.encode(), Key("x", "y").hash.encode())
    execute(client, *forged)
    assert claim_one(client, settings).bad == "E_HEADER_HASH"


def test_a_raw_push_is_taken_in_once(client: redis.Redis, settings: Settings) -> None:
    """Taking in compares the head, merges and removes in one step; a scheduler that saw an old head does nothing."""
    client.rpush(verbs.RAW, b"first", b"second")
    step = verbs.take(b"first", verbs.RAW, context("one"))
    assert send(client, step)
    assert not send(client, step)
    assert client.lrange(verbs.RAW, 0, -1) == [b"second"]
    assert raw_door.taken(client, [verbs.RAW]) == [1]


def test_a_bad_raw_push_goes_to_the_dead(client: redis.Redis, settings: Settings) -> None:
    """What cannot be accepted is kept with its code, bytes and origin."""
    client.rpush(verbs.RAW, b"\xff{")
    assert send(client, verbs.take_dead(b"\xff{", verbs.RAW, Rejected("E_UTF8", "not UTF-8")))
    dead = dead_letter(client)
    assert (dead[b".code"], dead[b".raw"], dead[b".origin"]) == (b"E_UTF8", b"\xff{", b"memd:in")


def test_without_a_scheduler_a_push_says_so(client: redis.Redis, settings: Settings) -> None:
    """On a server where memd never ran, a push is refused with a sentence."""
    client.function_flush()
    with pytest.raises(NotReady):
        push(client, "one")


def test_nothing_is_left_behind(client: redis.Redis, configured: Any) -> None:
    """After the outcome's time is over, a stored key leaves no key of its own."""
    brief = configured(inbox__receipt_ttl_s=0.01, inbox__known_ttl_s=0.01)
    library.install(client, brief)
    push(client, os.urandom(4).hex(), now=True)
    send(client, verbs.ack(claim_one(client, brief).id, {"state": "stored"}, {"stored": 1}))
    wait_for(lambda: send(client, verbs.sweep()) == 1, "the outcome is swept")
    wait_for(lambda: not client.keys("*known*"), "the hint has expired")
    left = {key.decode().removeprefix("{memd}:") for key in execute(client, "KEYS", "*")}
    assert left <= {"config", "stats", "hours", "order", "wake"}


def test_status_and_doctor_mean_the_same_by_due_and_pending(client: redis.Redis, configured: Any) -> None:
    """Due is a key whose time has come; pending are all that no claim has taken, a parked one too."""
    slow = configured(scheduler__quiet_s=60, scheduler__max_wait_s=60)
    library.install(client, slow)
    push(client, "later", key=Key("t", "u1", ""))
    push(client, "works", key=Key("t", "u2", ""), now=True)
    assert len(claim(client, slow).taken) == 1
    push(client, "parked", key=Key("other", "u2", ""), now=True)
    assert claim(client, slow).taken == ()
    push(client, "due", key=Key("t", "u3", ""), now=True)
    figures, status = read_figures(client, ()), read_status(client, slow)
    assert (figures.pending, figures.due, figures.parked, figures.claimed) == (3, 1, 1, 1)
    assert (status.pending, status.due, status.parked, status.claimed) == (3, 1, 1, 1)


STEP = st.tuples(st.sampled_from(["push", "again", "now", "big"]), st.integers(0, 30))


@settings_of(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, min_size=1, max_size=8))
def test_a_key_is_never_due_later_than_max_wait(
    client: redis.Redis, settings: Settings, steps: list[tuple[str, int]]
) -> None:
    """Whatever is pushed: due ≤ min(last + quiet, first + max_wait), and at once for size and `now`."""
    key = Key("thread", os.urandom(8).hex())
    first: int | None = None
    at_once = False
    for number, (what, size) in enumerate(steps):
        text = "x" * (14_000 if what == "big" else size) + f" {0 if what == 'again' else number}"
        merged = push(client, text, key=key, now=what == "now", ids=True)
        first = first or merged.now_ms
        at_once = at_once or what in {"now", "big"}
        assert merged.due_ms <= min(merged.now_ms + 150, first + 2000)
        assert merged.due_ms <= merged.now_ms if at_once else merged.due_ms >= first
    send(client, verbs.flush_page("keys", "0", (None, None, None), [key.hash]))
    assert client.zscore(f"{verbs.P}:due", key.hash) is not None
