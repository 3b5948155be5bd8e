"""The trace of a push: carried by every door, kept with its messages; off, nothing is carried and nothing loaded."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest
import redis
from support import Cli

from memd.client import Memd
from memd.config import Settings
from memd.errors import Rejected
from memd.inbox import verbs
from memd.inbox.claim import Claim
from memd.inbox.connection import send
from memd.inbox.raw_door import RawDoor

TURN = {"role": "user", "content": "I live in Porto.", "id": "m1"}
ONE, TWO = (f"00-{n:032x}-{n:016x}-01" for n in (0xA1, 0xB2))


def claim(settings: Settings, client: redis.Redis) -> Claim:
    [taken] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    return taken


def test_a_letter_keeps_its_traces(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Part of a claim that died belongs to the same traces when it is tried again."""
    turns = [TURN, {**TURN, "id": "m2"}]
    memd.push_json(json.dumps({"thread_id": "t", "user_id": "ana", "traceparent": ONE, "messages": turns}).encode())
    memd.flush()
    taken = claim(settings, client)
    send(client, verbs.bury_part(taken.id, "too_long", "too_long: x", [taken.messages[0].identity]))
    send(client, verbs.ack(taken.id, {"state": "stored"}, {}))
    memd.retry(memd.dead())
    assert claim(settings, client).traces == (ONE,)


def test_the_raw_door_carries_it(client: redis.Redis, settings: Settings) -> None:
    """By the field `traceparent`; one that is none loses no push, one that is no text is refused."""
    for number, value in enumerate((ONE, "nonsense", ONE.replace("a1", "00"), None)):
        raw = {
            "thread_id": f"t{number}",
            "user_id": f"u{number}",
            "messages": [TURN],
            "now": True,
            "traceparent": value,
        }
        client.rpush(verbs.RAW, json.dumps(raw))
    RawDoor(settings, client).take_in()
    found = send(client, verbs.claim(settings, 9, 0, "w", "m")).taken
    assert {taken.key.thread_id: taken.traces for taken in found} == {"t0": (ONE,), "t1": (), "t2": (), "t3": ()}
    with Memd(settings) as app, pytest.raises(Rejected, match="E_TRACEPARENT"):
        app.push_json(
            b'{"thread_id": "t", "user_id": "ana", "traceparent": 7, "messages": [{"role": "user", "content": "x"}]}'
        )


def test_a_claim_has_the_traces_of_its_pushes(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Each once, the newest last and eight at most; a claim that comes back keeps them, and newer ones join."""
    for number in range(10):
        parent = f"00-{number + 1:032x}-{1:016x}-01"
        push = {"thread_id": "t", "user_id": "ana", "traceparent": parent, "messages": [{**TURN, "id": f"m{number}"}]}
        memd.push_json(json.dumps(push).encode(), now=True)
    taken = claim(settings, client)
    assert [int(trace.split("-")[1], 16) for trace in taken.traces] == list(range(3, 11))
    push = {"thread_id": "t", "user_id": "ana", "traceparent": ONE, "messages": [{**TURN, "id": "m99"}]}
    memd.push_json(json.dumps(push).encode(), now=True)
    send(client, verbs.release(taken.id, "paused"))
    memd.flush()
    assert claim(settings, client).traces == (*taken.traces[1:], ONE)


def test_off_nothing_is_loaded() -> None:
    """Neither by the client nor by a worker; redis-py loads what is installed of OpenTelemetry, but no exporter."""
    ours = "name.startswith(('opentelemetry.exporter', 'memd.workers.span', 'memd.workers.claim_spans'))"
    code = f"import sys, memd.client, memd.workers.drain; sys.exit(any({ours} for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.skipif(find_spec("opentelemetry.sdk") is not None, reason="not run: OpenTelemetry is installed here")
def test_a_worker_says_what_tracing_needs(cli: Cli) -> None:
    """Before it starts, in one sentence."""
    done = cli("worker", MEMD_TRACING__ENABLED="true")
    assert (done.returncode, done.stderr.count("\n")) == (78, 1)
    assert "pip install 'memd[tracing]'" in done.stderr
