"""Keys of a wrong type, as another program may leave them: every verb goes on past them, and they are counted."""

from __future__ import annotations

from collections.abc import Callable

import orjson
import pytest
import redis
from support import execute

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket, Key, user_hash
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.inbox.raw_door import RawDoor
from memd.inbox.receipt import standings
from memd.inbox.verbs import P

KINDS = ["SET", "LPUSH", "SADD"]
TURNS = [{"role": "user", "content": "I like rowing.", "id": "m1"}]
WRONG, GOOD = Key("wrong", "ana"), Key("good", "ana")


def push(app: Memd, key: Key, *, now: bool = False) -> str:
    return app.push(TURNS, thread_id=key.thread_id, user_id=key.user_id, now=now).status


def spoil(client: redis.Redis, kind: str, name: str) -> None:
    """Another program writes one of memd's keys."""
    client.delete(name)
    execute(client, kind, name, "not a hash")


def flush_all(app: Memd, client: redis.Redis) -> None:
    app.flush()


def flush_user(app: Memd, client: redis.Redis) -> None:
    app.flush(user_id="ana")


def flush_key(app: Memd, client: redis.Redis) -> None:
    send(client, verbs.flush_page("keys", "0", (None, None, None), [WRONG.hash, GOOD.hash]))


def push_there(app: Memd, client: redis.Redis) -> None:
    assert push(app, WRONG, now=True) == "queued"
    app.flush()


VERBS: list[Callable[[Memd, redis.Redis], None]] = [flush_all, flush_user, flush_key, push_there]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_goes_on_past_a_pending_key(
    memd: Memd, client: redis.Redis, settings: Settings, kind: str, verb: Callable[[Memd, redis.Redis], None]
) -> None:
    """It is set aside and counted; the other keys, before and behind it, are due."""
    for number in range(5):
        push(memd, Key(f"t{number}", "ana"))
    push(memd, WRONG)
    push(memd, GOOD)
    spoil(client, kind, f"{P}:ctx:{WRONG.hash}")
    verb(memd, client)
    assert client.zscore(f"{P}:due", GOOD.hash) <= execute(client, "TIME")[0] * 1000 + 1000
    assert (client.exists(f"{P}:wrong:{WRONG.hash}"), client.smembers(f"{P}:wrong")) == (1, {WRONG.hash.encode()})
    assert client.hget(f"{P}:stats", "wrong_type") == b"1"
    found = {claim.key for claim in send(client, verbs.claim(settings, 10, 0, "w", "model")).taken if claim.key}
    assert found <= {GOOD, WRONG, *(Key(f"t{number}", "ana") for number in range(5))}
    assert found


@pytest.mark.parametrize("kind", KINDS)
def test_the_raw_door_goes_on_past_it(memd: Memd, client: redis.Redis, settings: Settings, kind: str) -> None:
    """A raw push to such a key is taken in like any other, and so is the one behind it."""
    spoil(client, kind, f"{P}:ctx:{WRONG.hash}")
    for key in (WRONG, GOOD):
        client.rpush("memd:in", orjson.dumps({"thread_id": key.thread_id, "user_id": key.user_id, "messages": TURNS}))
    RawDoor(settings, client).take_in_present(10)
    assert client.llen("memd:in") == 0
    assert memd.status().pending == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_claim_goes_back_past_it(memd: Memd, client: redis.Redis, settings: Settings, kind: str) -> None:
    """What another program wrote while a claim was under way neither stops the release nor the key that was parked."""
    push(memd, WRONG, now=True)
    [claim] = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    push(memd, GOOD, now=True)
    assert send(client, verbs.claim(settings, 10, 0, "w", "model")).taken == ()
    spoil(client, kind, f"{P}:ctx:{WRONG.hash}")
    assert send(client, verbs.release(claim.id, "paused", 10)) == "released"
    assert client.exists(f"{P}:wrong:{WRONG.hash}")
    assert client.hget(f"{P}:ctx:{WRONG.hash}", ".thread") == b"wrong"
    [other] = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    assert other.key == GOOD


@pytest.mark.parametrize("kind", KINDS)
def test_a_parked_key_of_a_wrong_type_keeps_no_bucket(
    memd: Memd, client: redis.Redis, settings: Settings, kind: str
) -> None:
    """The claim of its bucket ends, and the next parked key moves up."""
    push(memd, Key("first", "ana"), now=True)
    [claim] = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    for key in (WRONG, GOOD):
        push(memd, key, now=True)
    assert send(client, verbs.claim(settings, 10, 0, "w", "model")).taken == ()
    spoil(client, kind, f"{P}:ctx:{WRONG.hash}")
    assert send(client, verbs.ack(claim.id, {"state": "stored", "facts": []}, {}))
    [other] = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    assert other.key == GOOD


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["ctx", "outcome"])
def test_reading_and_forgetting_go_on_past_it(
    memd: Memd, client: redis.Redis, settings: Settings, kind: str, place: str
) -> None:
    """Receipts, pending messages and the forgetting of a user: each finds the other keys."""
    push(memd, WRONG)
    push(memd, GOOD)
    spoil(client, kind, f"{P}:{place}:{WRONG.hash}")
    if place == "ctx":
        assert len(send(client, standings([WRONG.hash, GOOD.hash]))) == 2
        assert len(send(client, verbs.waiting(user_hash("ana"), "0", [Bucket("ana").hash]))[1]) == 1
    assert memd.forget("ana").pushes == 1
    assert memd.status().pending <= 1


@pytest.mark.parametrize("kind", KINDS)
def test_letters_of_a_wrong_type_stop_no_others(memd: Memd, client: redis.Redis, settings: Settings, kind: str) -> None:
    """A retry of many letters passes over it; the others are pending again."""
    for number in range(3):
        push(memd, Key(f"t{number}", f"user-{number}"), now=True)
    claims = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    for claim in claims:
        assert send(client, verbs.bury(claim.id, "E_TEST", "E_TEST: for a test"))
    spoil(client, kind, f"{P}:dead:{claims[1].id}")
    assert execute(client, "FCALL", "memd_retry_1", 1, P, *(claim.id for claim in claims)) == 2
    assert memd.status().pending == 2
    assert client.hget(f"{P}:stats", "wrong_type") == b"1"


@pytest.mark.parametrize("kind", KINDS)
def test_letters_are_listed_past_it(memd: Memd, client: redis.Redis, settings: Settings, kind: str) -> None:
    """The list of the dead has the others, and the forgetting of a user finds theirs."""
    for user in ("ana", "bob"):
        push(memd, Key("t", user), now=True)
    claims = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    for claim in claims:
        assert send(client, verbs.bury(claim.id, "E_TEST", "E_TEST: for a test"))
    [wrong] = [claim.id for claim in claims if claim.key == Key("t", "ana")]
    spoil(client, kind, f"{P}:dead:{wrong}")
    assert [letter.user_id for letter in memd.dead()] == ["bob"]
    assert memd.forget("bob").dead == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_status_is_shown_past_it(memd: Memd, client: redis.Redis, kind: str) -> None:
    """The oldest due key is of a wrong type: the figures are there all the same."""
    push(memd, WRONG, now=True)
    push(memd, GOOD)
    spoil(client, kind, f"{P}:ctx:{WRONG.hash}")
    assert memd.status().pending == 2


def test_another_failure_is_not_passed_over(memd: Memd, client: redis.Redis) -> None:
    """Only a wrong type is: what fails for another reason, such as a right that is missing, fails the verb."""
    push(memd, GOOD)
    client.acl_setuser(
        "narrow", enabled=True, nopass=True, keys=[f"{P}*"], commands=["+fcall", "+zscan", "+time", "+hgetall"]
    )
    path = client.connection_pool.connection_kwargs["path"]
    try:
        with redis.Redis(unix_socket_path=path, username="narrow", password=path) as narrow:
            execute(narrow, "FCALL", "memd_flush_1", 1, P, "keys", "0", "[null,null,null]")
            with pytest.raises(redis.ResponseError, match="ACL failure"):
                execute(narrow, "FCALL", "memd_flush_1", 1, P, "due", "0", "[null,null,null]")
    finally:
        client.acl_deluser("narrow")
