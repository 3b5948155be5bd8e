"""What was said, from push to disk: each message that a memory takes in is kept once, redacted, in order."""

from __future__ import annotations

import pytest
import redis
from support import MakeSettings, daemon
from support.fault_support import events

from memd.client import Memd
from memd.config import Settings
from memd.context import Bucket
from memd.inbox import library
from memd.memory.document import said_file_of
from memd.memory.said.turns import Said
from memd.memory.store.json_store import open_store

pytestmark = pytest.mark.timing

SECRET = "sk-proj-" + "aB3dE5fG7hJ9kL1m" * 3
TURNS = [
    {"role": "user", "content": "I live in Porto.", "id": "m0", "created_at": "2026-03-01T10:00:00Z"},
    {"role": "assistant", "content": f"Noted. Your key {SECRET} is safe.", "id": "m1"},
    {"role": "user", "content": f"I like tea. {'x ' * 4000}My key is {SECRET}.", "id": "m2"},
    {"role": "assistant", "content": "Good.", "id": "m3"},
]


def layer(settings: Settings, user: str) -> Said:
    """The layer of a user's memory."""
    store = open_store(settings)
    return store.read_said(Bucket(user), store.load(Bucket(user)).document)


@pytest.mark.files
def test_messages_are_kept_redacted_and_once(memd: Memd, settings: Settings, client: redis.Redis) -> None:
    """Both roles, with both times; a redelivery adds nothing; a long one keeps its head and tail.

    The first start that keeps them says so, how long, and how to stop it.
    """
    with daemon(settings):
        for pushed in (TURNS[:2], TURNS, TURNS):
            memd.push(pushed, thread_id="t", user_id="ana", now=True)
            memd.flush(wait=True)
    said = layer(settings, "ana")
    first, reply, long, last = said.turns
    assert [turn.role for turn in said.turns] == ["user", "assistant", "user", "assistant"]
    assert (first.text, first.said_at[:10], first.thread) == ("I live in Porto.", "2026-03-01", "t")
    assert reply.said_at == reply.at > first.said_at
    assert len(long.text) <= 4_000
    assert long.text.startswith("I like tea.")
    held = said_file_of(open_store(settings).load(Bucket("ana")).document)
    assert (held.turns, held.since, last.text) == (4, first.at, "Good.")
    for file in (settings.data_dir / "users" / "ana").iterdir():
        assert SECRET[-12:] not in file.read_text()
    (kept,) = events(settings, "scheduler", "said_kept")
    assert (kept["days"], kept["off"]) == (180, "said.enabled: false")
    assert not library.note_first_said(client)


@pytest.mark.files
@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("change", [{"said": {"enabled": False}}, {"store": {"shared": True}}])
def test_nothing_is_kept_where_it_is_switched_off_or_nobodys_own(
    configured: MakeSettings, change: dict[str, object]
) -> None:
    """Neither for a store that all users share."""
    settings = configured(**change)
    with daemon(settings), Memd(settings) as app:
        app.push(TURNS, thread_id="t", user_id="ana", now=True)
        app.flush(wait=True)
        assert app.document("ana")["ledger"]
    assert not list(settings.data_dir.rglob("said-*"))
    assert events(settings, "scheduler", "said_kept") == []
