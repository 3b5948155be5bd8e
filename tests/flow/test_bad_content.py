"""Bad content dies alone: what a trusted client got wrong goes to the dead as a message, and the others are stored."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import redis
from support import Cli, daemon, execute, wait_for
from support.inbox_view import check, look

from memd.client import Memd
from memd.config import Settings
from memd.context import Context, Key, Message, identify
from memd.errors import Rejected
from memd.inbox import verbs
from memd.inbox.bell import bell_queue
from memd.inbox.connection import send
from memd.workers.job import BellJob
from memd.workers.worker import BellWorker

pytestmark = pytest.mark.timing

KEY = Key("t", "ana")
GOOD = (Message("user", "I live in Porto.", id="1"), Message("assistant", "A fine city.", id="2"))


def fcall(*bad: tuple[str, dict[str, Any]]) -> list[Any]:
    """The command that pushes two good messages and bad ones: (identity, body)."""
    command = [*verbs.push(Context(KEY, identify("t", GOOD), now=True)).command]
    header = orjson.loads(command[4])
    header["m"] += [[identity, 5, "-"] for identity, _ in bad]
    return [*command[:4], orjson.dumps(header), *command[5:], *(orjson.dumps(body) for _, body in bad)]


BAD: list[tuple[str, str, dict[str, Any]]] = [
    ("E_CREATED_AT", "n" + "1" * 36, {"role": "user", "content": "I have a cat.", "created_at": "soon"}),
    ("E_ROLE", "n" + "2" * 36, {"role": "system", "content": "Obey."}),
    ("E_IDENTITY", "i" + "3" * 36, {"role": "user", "content": "I have a dog.", "id": "3"}),
    ("E_IDENTITY", "i" + "4" * 36, {"role": "user", "content": "I have a bird."}),
]


@pytest.mark.parametrize(("code", "identity", "body"), BAD)
def test_one_bad_message_does_not_take_the_others_along(
    memd: Memd, client: redis.Redis, settings: Settings, code: str, identity: str, body: dict[str, Any]
) -> None:
    """The good messages are stored; the bad one is a letter of its own, with its code and its bytes."""
    execute(client, *fcall((identity, body)))
    with daemon(settings):
        wait_for(lambda: memd.document("ana")["facts"], "the good messages are stored")
        wait_for(lambda: memd.status().claimed == 0, "the claim has ended")
    [letter] = memd.dead()
    content = memd.dead_letter(letter.id)
    assert content is not None
    assert (letter.code, [message["content"] for message in content.messages]) == (code, [body["content"]])
    assert [fact["content"] for fact in memd.document("ana")["facts"]] == ["The user lives in Porto."]


def test_a_retry_does_not_bury_it_again(memd: Memd, client: redis.Redis, settings: Settings, cli: Cli) -> None:
    """A letter that a worker would refuse again, untried, stays what it is, and the command says so."""
    execute(client, *fcall(*((identity, body) for _, identity, body in BAD)))
    with daemon(settings):
        wait_for(lambda: len(memd.dead()) == 3, "each run of bad messages with one code is a letter")
        wait_for(lambda: memd.status().claimed == 0, "the claim has ended")
    before = memd.dead()
    assert memd.retry(before) == 0
    assert memd.dead() == before
    done = cli("dead", "retry", "--all", "--yes")
    assert "0 letters are pending again" in done.stdout
    assert "still dead, as the content would be refused again: " in done.stderr


def test_a_letter_of_an_older_version_frees_its_good_messages(
    memd: Memd, client: redis.Redis, settings: Settings
) -> None:
    """Once the whole claim died for one message; retried, only that message dies, and then it stays."""
    execute(client, *fcall(BAD[1][1:]))
    [claim] = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    assert send(client, verbs.bury(claim.id, "E_ROLE", "E_ROLE: for a test"))
    assert memd.retry(memd.dead()) == 1
    with daemon(settings):
        wait_for(lambda: memd.document("ana")["facts"], "the good messages are stored")
        wait_for(lambda: memd.status().claimed == 0, "the claim has ended")
    [letter] = memd.dead()
    assert memd.retry([letter]) == 0


def test_a_time_that_an_older_version_took_in_is_read(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Numbers as text, as older doors wrote them into the inbox, are times and no reason to die."""
    old = [("n" + str(n) * 36, {"role": "user", "content": "ok", "created_at": t}) for n, t in enumerate(["0", "-5"])]
    execute(client, *fcall(*old))
    [claim] = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    assert (claim.bad, claim.refused) == (None, ())
    assert [message.created_at for message in claim.messages[2:]] == ["1970-01-01T00:00:00Z", "1969-12-31T23:59:55Z"]


def test_what_is_left_of_a_claim_keeps_its_size(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """A claim that goes back after some of its messages died has the size of the others."""
    execute(client, *fcall(BAD[1][1:]))
    [claim] = send(client, verbs.claim(settings, 10, 0, "w", "model")).taken
    assert send(client, verbs.bury_part(claim.id, "E_ROLE", "E_ROLE", [claim.refused[0][0]])) == 1
    assert send(client, verbs.release(claim.id, "paused")) == "released"
    check(look(client), int(client.time()[0]) * 1000)


def test_an_identity_is_named_once(client: redis.Redis, settings: Settings) -> None:
    """Two messages with one identity in one push are refused at the door."""
    same = ("n" + "a" * 36, {"role": "user", "content": "ok"})
    with pytest.raises(redis.ResponseError, match="E_IDENTITY"):
        execute(client, *fcall(same, same))
    with pytest.raises(redis.ResponseError, match="E_IDENTITY"):
        execute(client, *fcall(("n" + "A" * 36, {"role": "user", "content": "ok"})))


@pytest.mark.parametrize("time", [float("nan"), float("inf"), 1e30])
def test_a_time_that_is_none_is_refused_at_the_door(memd: Memd, time: float) -> None:
    """The client says so at once, and nothing is stored."""
    with pytest.raises(Rejected, match="E_CREATED_AT"):
        memd.push([{"role": "user", "content": "hello there", "created_at": time}], thread_id="t", user_id="ana")


@pytest.mark.parametrize("messages", [None, 5, "text", {"role": "user"}])
def test_messages_that_are_no_list_are_refused(memd: Memd, messages: Any) -> None:
    """Whatever is passed: an error with a code, never a TypeError."""
    with pytest.raises(Rejected, match="E_MESSAGE"):
        memd.push(messages, thread_id="t", user_id="ana")


@pytest.mark.parametrize("kind", ["SET", "LPUSH", "SADD"])
def test_a_due_key_of_a_wrong_type_stops_no_claim(
    memd: Memd, client: redis.Redis, settings: Settings, cli: Cli, kind: str
) -> None:
    """It is set aside under another name, and the doctor says so; the others are claimed."""
    execute(client, kind, f"{verbs.P}:ctx:wrong", "not a hash")
    client.zadd(f"{verbs.P}:due", {"wrong": 1})
    execute(client, *fcall())
    assert len(send(client, verbs.claim(settings, 10, 0, "w", "model")).taken) == 1
    assert client.exists(f"{verbs.P}:wrong:wrong")
    assert client.zscore(f"{verbs.P}:due", "wrong") is None
    assert "1 pending key of a wrong type" in cli("doctor").stdout
    client.delete(f"{verbs.P}:wrong:wrong")
    assert "of a wrong type" not in cli("doctor").stdout
    send(client, verbs.sweep())
    assert not client.exists(f"{verbs.P}:wrong")


@pytest.mark.parametrize("given", ["", "\n\n", "[]"])
def test_an_input_without_a_push_is_no_success(memd: Memd, cli: Cli, given: str) -> None:
    """A script that pushed nothing learns it from the exit code."""
    done = cli("push", given=given)
    assert done.returncode == 65
    assert "nothing was pushed" in done.stderr


@pytest.mark.parametrize("payload", [b"{", b"\xff", b"5", b"{}", b'{"command": 5}', b'{"command": "stop-job"}'])
def test_what_is_no_command_does_not_end_the_listening(client: redis.Redis, payload: bytes) -> None:
    """Whatever is published for a worker: nothing is raised in RQ's thread, which would end it with a traceback."""
    worker = BellWorker([bell_queue(client, BellJob)], connection=client, job_class=BellJob)
    worker.handle_payload({"data": payload})
