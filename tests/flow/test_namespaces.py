"""An app's threads are its own: what comes through one app's raw list changes nothing that another app has pending."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
import redis
from support import daemon, dead_letter, part, wait_for

from memd.client import Memd
from memd.config import Settings
from memd.inbox import verbs
from memd.inbox.connection import send
from memd.inbox.raw_door import RawDoor
from memd.inbox.verbs import RAW

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]


@pytest.fixture
def shops(configured: Configured) -> Settings:
    """Settings with the lists of two apps."""
    return configured(client__apps=["shop", "rival"])


def window(text: str = "I am allergic to nuts.", *, ids: bool = True, more: int = 0) -> list[dict[str, Any]]:
    turns = [{"role": "user", "content": text}, {"role": "assistant", "content": "I will remember it."}]
    turns += [{"role": "user", "content": "I live in Porto."} for _ in range(more)]
    return [{**turn, "id": str(number)} if ids else turn for number, turn in enumerate(turns)]


def push(client: redis.Redis, app: str, messages: list[dict[str, Any]], thread: str = "t") -> None:
    body = {"thread_id": thread, "user_id": "ana", "now": True, "messages": messages}
    client.rpush(f"{RAW}:{app}" if app else RAW, orjson.dumps(body))


@pytest.mark.parametrize("other", ["rival", ""])
def test_no_list_changes_what_an_app_has_pending(memd: Memd, client: redis.Redis, shops: Settings, other: str) -> None:
    """The same user, thread and ids from another list: two keys, and each keeps its own text."""
    push(client, "shop", window())
    push(client, other, window("I have no allergies."))
    RawDoor(shops, client).take_in()
    claims = {}
    for _ in range(2):  # one at a time, as they are of one bucket
        [claim] = send(client, verbs.claim(shops, 10, 0, "w", "model")).taken
        claims[claim.key.thread_id] = claim
        send(client, verbs.ack(claim.id, {"state": "stored"}, {}))
    assert claims.keys() == {"shop/t", f"{other}/t" if other else "t"}
    assert claims["shop/t"].messages[0].content == "I am allergic to nuts."


def test_the_list_of_all_keeps_its_threads(memd: Memd, client: redis.Redis, shops: Settings) -> None:
    """A push through memd:in has the thread that it names."""
    push(client, "", window())
    RawDoor(shops, client).take_in()
    [claim] = send(client, verbs.claim(shops, 10, 0, "w", "model")).taken
    assert (claim.key.thread_id, claim.messages[0].former) == ("t", ())


def stored_by_an_older_version(memd: Memd, shops: Settings, messages: list[dict[str, Any]]) -> None:
    """A window under the plain thread, in a document as versions before the namespaces have written it."""
    memd.push(messages, thread_id="t", user_id="ana", now=True)
    with daemon(shops):
        wait_for(lambda: memd.document("ana")["facts"], "the window is stored")
    file = shops.data_dir / "users" / "ana" / "memory.json"
    document = orjson.loads(file.read_bytes())
    del document["ledgerFormer"], document["ledgerFormerRules"]
    file.write_bytes(orjson.dumps(document))


@pytest.mark.parametrize("ids", [True, False])
def test_what_an_older_version_stored_is_known(memd: Memd, client: redis.Redis, shops: Settings, ids: bool) -> None:
    """A window stored under the plain thread is already known in the namespace; only what is new is taken in."""
    stored_by_an_older_version(memd, shops, window(ids=ids))
    before = memd.document("ana")
    with daemon(shops):
        push(client, "shop", window(ids=ids))
        wait_for(lambda: memd.status().by_reason.get("already_known"), "the same window is already known")
        assert memd.document("ana") == before
        push(client, "shop", window(ids=ids, more=1))
        wait_for(lambda: len(memd.document("ana")["facts"]) > len(before["facts"]), "the new message is stored")
    stored = memd.status()
    assert stored.stored == 2
    assert [fact["content"] for fact in memd.document("ana")["facts"]].count(before["facts"][0]["content"]) == 1


@pytest.mark.parametrize("upgraded", [True, False])
def test_nobody_makes_an_apps_message_known(memd: Memd, client: redis.Redis, shops: Settings, upgraded: bool) -> None:
    """Guessed ids through memd:in, into a document of an older version or a new one, skip nothing of the app."""
    if upgraded:
        stored_by_an_older_version(memd, shops, window())
    before = memd.status().stored
    with daemon(shops):
        push(client, "", window("I have a garden.", more=1))
        wait_for(lambda: memd.status().stored == before + 1, "the guess is stored")
        push(client, "shop", window(more=1))
        wait_for(lambda: memd.status().stored == before + 2, "so is the app's message")
    assert "already_known" not in memd.status().by_reason
    assert len(memd.document("ana")["ledger"]["shop/t"]) == 3


def test_what_was_forgotten_stays_forgotten_in_the_namespace(memd: Memd, client: redis.Redis, shops: Settings) -> None:
    """A tombstone of the plain thread holds for the same messages of the app."""
    memd.push(window(), thread_id="t", user_id="ana", now=True)
    with daemon(shops):
        wait_for(lambda: memd.document("ana")["facts"], "the older version's window is stored")
        memd.forget("ana")
        push(client, "shop", window())
        wait_for(lambda: memd.status().by_reason.get("forgotten"), "the window is skipped as forgotten")
    assert memd.document("ana")["facts"] == []


def test_a_thread_that_leaves_no_room_for_the_app_is_refused(memd: Memd, client: redis.Redis, shops: Settings) -> None:
    """191 bytes fit, 192 do not; memd:in takes 256."""
    push(client, "shop", window(), thread="t" * 192)
    push(client, "shop", window(), thread="t" * 191)
    push(client, "", window(), thread="t" * 256)
    with part("scheduler", shops):
        wait_for(lambda: memd.status().pending == 2, "both that fit are pending")
        wait_for(lambda: memd.status().dead == 1, "the other one is dead")
    assert dead_letter(client)[b".code"] == b"E_THREAD_ID_LENGTH"


def shared_document(settings: Settings) -> Any:
    return orjson.loads((settings.data_dir / "shared" / "memory.json").read_bytes())


def test_two_users_of_a_shared_store_may_use_equal_ids(configured: Configured, client: redis.Redis) -> None:
    """Both are remembered, and a second push of either is known; so is what an older version has taken in."""
    settings = configured(store__shared=True)
    texts = {"ana": "I live in Porto.", "bob": "I am allergic to nuts."}
    with Memd(settings) as memd, daemon(settings):
        for user, text in texts.items():
            memd.push(window(text), thread_id="t", user_id=user, now=True)
            assert not memd.flush(wait=True).timed_out
        assert memd.status().stored == 2
        for user, text in texts.items():
            memd.push(window(text), thread_id="t", user_id=user, now=True)
        assert not memd.flush(wait=True).timed_out
        assert memd.status().by_reason == {"already_known": 2}
        document = shared_document(settings)
        assert len(document["facts"]) == 2

        older = {**document, "ledger": {"t": next(iter(document["ledger"].values()))}}
        (settings.data_dir / "shared" / "memory.json").write_bytes(orjson.dumps(older))
        memd.push(window(texts["ana"]), thread_id="t", user_id="ana", now=True)
        assert not memd.flush(wait=True).timed_out
        assert memd.status().by_reason == {"already_known": 3}
        memd.push(window(texts["ana"], more=1), thread_id="t", user_id="ana", now=True)
        assert not memd.flush(wait=True).timed_out
        assert len(shared_document(settings)["ledger"]["t"]) == 2  # nothing is added to the plain thread
