"""U1: what earlier versions wrote is read for ever; what a newer one wrote is left alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
import redis
from support import daemon, ended, execute, wait_for

from memd.client import Memd
from memd.config import ClientSettings, Settings
from memd.context import Bucket, Key, Message, identify
from memd.errors import DocumentDamaged, DocumentTooNew
from memd.inbox import library, verbs
from memd.inbox.connection import send
from memd.inbox.verbs import P
from memd.memory import ledger
from memd.memory.parsing import parse
from memd.memory.store.paths import FILE, FORGOTTEN, folder
from memd.memory.store.tombstone import TombstoneFiles
from memd.push.filtering import to_context
from memd.push.validation import parse_push
from memd.recall.inject import inject

SAMPLES = Path(__file__).parents[1] / "data" / "versions"
ANA = Bucket("ana")


def load_keys(client: redis.Redis, sample: dict[str, Any]) -> None:
    """Put a server's keys back as they were."""
    for name, entry in sample.items():
        value = entry["value"]
        match entry["type"]:
            case "hash":
                client.hset(name, items=[part for pair in value.items() for part in pair])
            case "zset":
                client.zadd(name, value)
            case "set":
                client.sadd(name, *value)
            case "list":
                client.rpush(name, *value)
            case _:
                client.set(name, value)


def install_document(settings: Settings, sample: str) -> Path:
    file = folder(settings.data_dir, ANA, shared=False) / FILE
    file.parent.mkdir(parents=True)
    file.write_bytes((SAMPLES / sample).read_bytes())
    return file


@pytest.mark.parametrize("sample", sorted(file.name for file in SAMPLES.glob("document-*.json")))
def test_a_document_of_each_version_is_read_and_written(memd: Memd, settings: Settings, sample: str) -> None:
    """It is shown, injected, and takes in what is new; its facts and fields stay."""
    before = json.loads((SAMPLES / sample).read_bytes())
    install_document(settings, sample)
    assert [fact["id"] for fact in memd.document("ana")["facts"]] == [fact["id"] for fact in before["facts"]]
    assert before["facts"][0]["content"] in inject(memd.document("ana"), settings.recall, None)
    with daemon(settings):
        memd.push([{"role": "user", "content": "I like rowing.", "id": "9"}], thread_id="t9", user_id="ana", now=True)
        assert ended(memd) == {"stored": 1}
    after = memd.document("ana")
    assert after["facts"][: len(before["facts"])] == before["facts"]
    assert len(after["facts"]) == len(before["facts"]) + 1
    assert (after["user"], after["history"]) == (before["user"], before["history"])


def test_the_ledger_of_a_document_still_knows_its_messages() -> None:
    """Identities are computed as they were: nothing that was stored then is stored again."""
    document = parse((SAMPLES / "document-1.0.json").read_bytes(), ANA)
    said = "I live in Porto. I prefer tea to coffee."
    messages = identify("thread-1", [Message("user", said, id="m1"), Message("assistant", "Noted.", id="m1r")])
    assert ledger.unknown(document, "thread-1", messages) == ()


def test_an_inbox_of_each_version_is_drained(memd: Memd, client: redis.Redis, settings: Settings) -> None:
    """Pending, claimed by a worker that is gone, dead and raw: after the upgrade each is remembered."""
    for sample in sorted(SAMPLES.glob("inbox-*.json")):
        client.flushall()
        load_keys(client, json.loads(sample.read_bytes()))
        library.install(client, settings)
        with daemon(settings):
            wait_for(lambda: memd.status().pending + memd.status().claimed == 0, "all is drained")
            assert len(memd.dead()) == 1
            assert memd.retry(memd.dead()) == 1
            assert not memd.flush(wait=True).timed_out
        for user, agent in (("ana", ""), ("小林", ""), ("bob", "coach"), ("raw", ""), ("eve", "")):
            assert memd.document(user, agent_name=agent)["facts"], user
        assert execute(client, "ZCARD", f"{P}:dead") == 0


def test_a_push_of_each_version_is_taken_in() -> None:
    """Raw pushes of every version say the same as on their first day."""
    for sample in SAMPLES.glob("push-*.json"):
        context = to_context(parse_push(sample.read_bytes(), ClientSettings()))
        assert context.key == Key("thread-1", "ana", "coach")
        assert [message.content for message in context.messages] == ["I like rowing.", "A fine sport."]
        assert {m.project for m in context.messages} == {"team/7" if sample.stem >= "push-3" else ""}
        assert bool(context.trace) == (sample.stem >= "push-4")
        assert (context.now, context.wire) == (
            True,
            min(3, int(sample.stem[-1])),
        )  # a trace needs no version of workers


def test_a_trusted_push_of_each_version_is_merged(client: redis.Redis, settings: Settings) -> None:
    """What a client in another language sends, byte for byte as its version had it."""
    for number, sample in enumerate(sorted(SAMPLES.glob("trusted-*.json"))):
        push = json.loads(sample.read_bytes())
        messages = [orjson.dumps(message) for message in push["messages"]]
        reply = execute(client, "FCALL", "memd_push", 1, P, orjson.dumps(push["header"]), *messages)
        assert reply[0] == (b"merged" if number else b"queued")
    [claim] = send(client, verbs.claim(settings, 1, 0, "w", "m")).taken
    assert (claim.bad, [message.content for message in claim.messages]) == (None, ["I like rowing.", "A fine sport."])


def test_a_tombstone_of_each_version_still_holds(settings: Settings) -> None:
    """What was forgotten then is recognised today."""
    (settings.data_dir / FORGOTTEN).mkdir()
    for sample in SAMPLES.glob("tombstone-*.json"):
        owner = json.loads(sample.read_bytes())["owner"]
        (settings.data_dir / FORGOTTEN / f"{owner}.json").write_bytes(sample.read_bytes())
        found = TombstoneFiles(settings.data_dir).find("gone")
        assert found is not None
        messages = identify("thread-1", [Message("user", "I like rowing.", id="f1"), Message("user", "x", id="new")])
        assert [found.holds(Bucket("gone"), message.identity) for message in messages] == [True, False]


def test_a_newer_document_is_left_alone(memd: Memd, settings: Settings, client: redis.Redis) -> None:
    """Its bytes stay, its user's contexts wait at no attempt, and nobody reads it as something else."""
    file = install_document(settings, "document-1.0.json")
    newer = re.sub(rb'"version": "1.0"', b'"version": "1.1"', file.read_bytes())
    file.write_bytes(newer)
    with pytest.raises(DocumentTooNew):
        memd.document("ana")
    with daemon(settings):
        memd.push([{"role": "user", "content": "I like rowing."}], thread_id="t", user_id="ana", now=True)
        wait_for(lambda: client.hget(f"{P}:stats", "released:paused"), "it was held back")
    assert file.read_bytes() == newer
    assert (memd.status().pending, memd.status().dead) == (1, 0)


def test_a_newer_tombstone_lets_nothing_through(settings: Settings) -> None:
    """What it says is unknown, so its user's contexts wait."""
    (settings.data_dir / FORGOTTEN).mkdir()
    fields = json.loads((SAMPLES / "tombstone-1.json").read_bytes())
    file = settings.data_dir / FORGOTTEN / f"{fields['owner']}.json"
    file.write_text(json.dumps({**fields, "version": 2}))
    with pytest.raises(DocumentDamaged, match="E_TOMBSTONE_VERSION"):
        TombstoneFiles(settings.data_dir).find("gone")


def test_an_older_build_replaces_no_newer_one(client: redis.Redis, settings: Settings) -> None:
    """A scheduler of yesterday leaves the functions and settings of tomorrow as they are."""
    client.hset(f"{P}:config", "build", library.BUILD + 1)
    client.hset(f"{P}:config", "quiet_ms", 1)
    assert library.install(client, settings)
    assert client.hget(f"{P}:config", "quiet_ms") == b"1"
