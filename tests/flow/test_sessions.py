"""Sessions: what is said stays in a window, and everything a compaction cuts reaches the long-term memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
import redis
from support import daemon, ended, make_settings

from memd.client import AsyncMemd, Memd
from memd.config import Settings
from memd.context import Bucket, Key, Role, identity_of_id
from memd.errors import Rejected, SessionChanged, SessionForgotten
from memd.memory.document import SaidFile, empty_document, revised
from memd.memory.said.taking import took_in
from memd.memory.said.turns import NOTHING_SAID, Turn
from memd.memory.store.json_store import open_store
from memd.memory.store.tending import tend
from memd.push.times import iso
from memd.session.chat import ChatTurn, Text, ToolResult
from memd.session.conversation import Session
from memd.session.looking import TranscriptTurn, look, transcript

pytestmark = pytest.mark.timing

Configured = Callable[..., Settings]


class Plan:
    """A component of an app."""

    def __init__(self) -> None:
        self.steps: list[str] = []

    def save_state(self) -> dict[str, Any]:
        return {"steps": self.steps}

    def load_state(self, state: dict[str, Any]) -> None:
        self.steps = state["steps"]


def texts(session: Session) -> list[str]:
    return [turn.text for turn in session.messages]


def pending(memd: Memd, user: str) -> int:
    """The turns of a user in the inbox."""
    return sum(key.turns for key in memd.pending(user_id=user).keys)


def told_of(settings: Settings) -> list[TranscriptTurn]:
    """The transcript of ana's session."""
    found = look(settings, Key("t", "ana"))
    assert found is not None
    return transcript(settings, found)


def test_a_session_goes_on_where_it_was_saved(memd: Memd, settings: Settings) -> None:
    """Turns, tool rounds, the state of the task and the app's own components; and what was said is pushed."""
    session = memd.session("t", user_id="ana")
    plan = Plan()
    session.add_component(plan)
    session.system("Be brief.")
    session.user("I live in Porto. What is the weather?")
    session.assistant("I look.")
    session.tool_use("call_1", "weather", {"city": "Porto"})
    session.tool_result("call_1", "18 degrees")
    session.assistant("18 degrees.")
    session.business_state = "answered"
    plan.steps.append("look")
    session.save()
    assert session.waiting == 0
    assert pending(memd, "ana") == 3  # without system and tools

    again = memd.session("t", user_id="ana")
    assert again.messages == session.messages
    assert again.business_state == "answered"
    other = Plan()
    again.add_component(other)
    assert other.steps == ["look"]
    shown = again.window(system="You are kind.")
    assert shown["system"].startswith("You are kind.")
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant", "user", "assistant"]


def test_what_a_compaction_cuts_becomes_memory(configured: Configured, client: redis.Redis) -> None:
    """The window shrinks, everything that left it is stored, and no summary is ever pushed."""
    settings = configured(
        session__compact_tokens=400, session__max_tokens=500, session__keep_tokens=150, session__summary_tokens=100
    )
    with Memd(settings) as memd, daemon(settings):
        session = memd.session("t", user_id="ana")
        for number in range(40):
            session.user(f"I own bicycle number {number}, and I live in Porto.")
            session.assistant(f"Bicycle {number}, noted.")
            session.save()
        assert len(session.messages) < 40
        assert session.messages[0].kind == "summary"
        assert ended(memd)["stored"] >= 1
        store = open_store(settings)
        ledger = store.load(Bucket("ana"), {"t": [identity_of_id("t", turn.id) for turn in session.messages]})
        said = store.read_said(Bucket("ana"), ledger.document)
        everything = " ".join(turn.text for turn in said.turns)
        assert all(f"bicycle number {number}," in everything for number in range(40))
        assert "Compressed" not in everything
        assert [found.turn.text for found in told_of(settings)] == [
            text
            for number in range(40)
            for text in (f"I own bicycle number {number}, and I live in Porto.", f"Bicycle {number}, noted.")
        ]


def test_looking_at_a_session_changes_nothing(memd: Memd, settings: Settings) -> None:
    """Its window with what the model gets of it; its transcript in order, tools among the words, nothing twice."""
    key = Key("t", "ana")
    assert look(settings, key) is None
    session = memd.session("t", user_id="ana")
    session.system("Be brief.")
    session.user("I live in Porto. What is the weather?")
    session.assistant("I look.")
    session.tool_use("call_1", "weather", {"city": "Porto"})
    session.tool_result("call_1", "18 degrees")
    session.assistant("18 degrees.")
    session.business_state = "answered"
    session.checkpoint(agent_state={"step": 1})
    before = open_store(settings).sessions.load(key).content_hash
    found = look(settings, key)
    assert found is not None
    assert [turn.role for turn in found.window.turns] == ["system", "user", "assistant", "tool", "assistant"]
    assert (found.window.tokens > 10, found.held.business_state, len(found.checkpoints)) == (True, "answered", 1)
    told = [(one.turn.role, one.turn.text, len(one.turn.blocks)) for one in told_of(settings)]
    assert told == [
        ("system", "Be brief.", 1),
        ("user", "I live in Porto. What is the weather?", 1),
        ("assistant", "I look.", 2),
        ("tool", "", 1),
        ("assistant", "18 degrees.", 1),
    ]
    assert open_store(settings).sessions.load(key).content_hash == before
    session.compact()
    compacted = look(settings, key)
    assert compacted is not None
    assert [turn.kind for turn in compacted.held.turns if turn.role == "user"] == ["summary"]
    kept = [(one.turn.role, len(one.turn.calls)) for one in told_of(settings)]
    assert kept == [("system", 0), ("assistant", 1), ("tool", 0), ("assistant", 0)]  # the words wait in the inbox


def test_a_transcript_has_the_order_of_the_chat(configured: Configured, client: redis.Redis) -> None:
    """Words come back from the said layer, tools from the session; rounds of one moment stay rounds."""
    settings = configured()
    at = "2026-11-01T09:00:00Z"
    with Memd(settings) as memd:
        session = memd.session("t", user_id="ana")
        for number in range(4):
            session.user(f"I own bicycle number {number}.", created_at=at)
            session.assistant(f"I look number {number} up.", created_at=at)
            session.tool_use(f"call_{number}", "look_up", {"number": number})
            session.add(ChatTurn("tool", (ToolResult(f"call_{number}", (Text("found"),)),), created_at=at))
            session.assistant(f"Bicycle {number} is blue.", created_at=at)
        words = [turn for turn in session.messages[:-1] if turn.role in ("user", "assistant")]
        session.compact()
    bucket, store, now = Bucket("ana"), open_store(settings), datetime.now(UTC)
    kept = [Turn(identity_of_id("t", turn.id), "t", cast("Role", turn.role), turn.text, at, iso(now)) for turn in words]
    change = took_in(SaidFile(), lambda: NOTHING_SAID, kept, settings.said, now)
    store.commit(bucket, store.load(bucket), revised(empty_document(bucket), at), lambda: True, said=change)
    found = told_of(settings)
    rounds = [("user", 1), ("assistant", 2), ("tool", 1), ("assistant", 1)]
    assert [(one.turn.role, len(one.turn.blocks)) for one in found] == rounds * 4
    assert [one.kept for one in found[:4]] == [True, True, False, True]
    assert found[1].turn.text == "I look number 0 up."
    assert not found[-1].kept  # it is in the window


def test_the_chat_goes_on_without_the_inbox(memd: Memd, data_dir: Path) -> None:
    """Nothing is lost and nothing waits: the next session that reaches the inbox pushes all of it, once."""
    with Memd(make_settings(data_dir, "redis://127.0.0.1:1/0")) as offline:
        session = offline.session("t", user_id="ana")
        session.user("I live in Porto.")
        session.save()
        session.assistant("A fine city.")
        session.save()
        assert session.waiting == 2
    assert memd.session("t", user_id="ana").waiting == 0
    assert pending(memd, "ana") == 2
    memd.session("t", user_id="ana")
    assert pending(memd, "ana") == 2


def test_the_second_of_two_writers_is_refused(memd: Memd) -> None:
    """Nothing is overwritten; the error carries what was not saved, and after a load it can be added again."""
    first, second = memd.session("t", user_id="ana"), memd.session("t", user_id="ana")
    first.user("I live in Porto.")
    first.save()
    second.user("I play the cello.")
    with pytest.raises(SessionChanged, match="E_SESSION_CHANGED") as refused:
        second.save()
    assert second.load_if_exists()
    for turn in refused.value.unsaved:
        second.add(turn)
    second.save()
    assert texts(memd.session("t", user_id="ana")) == ["I live in Porto.", "I play the cello."]


def test_a_forgetting_wins(memd: Memd, settings: Settings) -> None:
    """Of a session in work nothing is written or pushed any more; what it held cannot come back by any way."""
    session = memd.session("t", user_id="ana")
    session.user("I live in Porto.", id="m1")
    session.save()
    session.checkpoint(agent_state={"step": 1})
    session.user("I play the cello.", id="m2")
    memd.forget("ana")
    with pytest.raises(SessionForgotten, match="E_FORGOTTEN"):
        session.save()
    assert (session.messages, session.waiting) == ((), 0)
    assert memd.sessions("ana") == []
    assert "Porto" not in "".join(file.read_text() for file in settings.data_dir.rglob("*.json*"))
    again = memd.push([{"role": "user", "content": "I live in Porto.", "id": "m1"}], thread_id="t", user_id="ana")
    assert (again.status, again.reason) == ("skipped", "forgotten")
    session.user("I moved.", id="m3")  # what is said afterwards is a new conversation
    session.save()
    assert texts(memd.session("t", user_id="ana")) == ["I moved."]


def test_a_forgetting_of_another_agents_memory_leaves_it(memd: Memd) -> None:
    """And one of the user's own memory takes its sessions, not those of an agent."""
    own, agents = memd.session("t", user_id="ana"), memd.session("t", user_id="ana", agent_name="chef")
    for session in (own, agents):
        session.user("I live in Porto.")
        session.save()
    memd.forget("ana", agent_name="chef")
    own.user("I play the cello.")
    own.save()
    assert memd.sessions("ana", agent_name="chef") == []
    memd.forget("ana", agent_name="")
    assert memd.sessions("ana") == []


def test_checkpoints(memd: Memd) -> None:
    """The newest is the one to go on from; pruned ones leave the list and can still be asked for by id."""
    session = memd.session("t", user_id="ana")
    session.user("Delete the old backups.")
    session.tool_use("call_1", "delete", {"what": "backups"})
    first = session.checkpoint(agent_state={"step": 1}, pending_tool_calls=["call_1"])
    session.user("Wait.")
    second = session.checkpoint(agent_state={"step": 2})

    again = memd.session("t", user_id="ana")
    assert again.restore().agent_state == {"step": 2}
    found = again.restore(first)
    assert (found.agent_state, found.pending_tool_calls, found.tool_states) == ({"step": 1}, ["call_1"], None)
    assert texts(again)[0] == "Delete the old backups."
    assert len(again.messages) == 2
    again.tool_result("call_1", "deleted")
    again.save()
    assert again.window()["messages"][-1]["content"][0]["type"] == "tool_result"

    assert session.prune(keep=1) == 1
    assert [entry.id for entry in session.checkpoints()] == [second]
    assert session.restore(first).agent_state == {"step": 1}
    with pytest.raises(Rejected, match="E_CHECKPOINT"):
        session.restore("cp_0")


def test_an_offloaded_text_can_be_read_again(configured: Configured, client: redis.Redis) -> None:
    """`auto` leaves a reference in its place, which outlives the process."""
    settings = configured(session__strategy="auto", session__model_tokens=2_000)
    with Memd(settings) as memd:
        session = memd.session("t", user_id="ana")
        page = "The archive of the harbour. " * 200
        session.user("Read this page, please.")
        session.tool_use("call_1", "read", {"page": 1})
        session.tool_result("call_1", page)
        session.assistant("Done.")
        session.user("And what of it?")
        session.save()
        reference = next(
            text for turn in session.messages for result in turn.results if "[offloaded" in (text := result.text)
        )
        name = reference.removeprefix("[offloaded ").partition(":")[0]
        assert memd.session("t", user_id="ana").reload(name) == page
        with pytest.raises(Rejected, match="E_OFFLOADED"):
            session.reload("off_0")


@pytest.mark.files
def test_a_session_of_agentscope_loads(memd: Memd, settings: Settings) -> None:
    """Its messages become the window; the components that we do not know stay as they are."""
    session = memd.session("t", user_id="ana")
    session.user("I have a dog.")
    session.save()
    file = next(settings.data_dir.rglob("session.json"))
    block = {"type": "text", "text": "I live in Porto."}
    use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {}}
    messages = [
        {"role": "USER", "content": [block]},
        {"role": "ASSISTANT", "content": [use]},
        {"role": "TOOL", "content": [{"toolUseId": "c1", "output": [{"type": "text", "text": "rain"}]}]},
    ]
    components = {"InMemoryMemory": {"messages": messages}, "ReActAgent": {"memory": "InMemoryMemory"}}
    file.write_bytes(orjson.dumps({"sessionId": "t", "components": components, "timestamp": "2026-01-01T00:00:00Z"}))
    session = memd.session("t", user_id="ana")
    assert texts(session)[0] == "I live in Porto."
    assert [turn.role for turn in session.messages] == ["user", "assistant", "tool"]
    assert pending(memd, "ana") == 2  # with the turn that was there before
    session.save()
    assert orjson.loads(file.read_bytes())["components"]["ReActAgent"] == {"memory": "InMemoryMemory"}


@pytest.mark.files
def test_a_file_that_is_no_session_is_set_aside(memd: Memd, settings: Settings) -> None:
    """The chat goes on with a new session, and the file can be looked at."""
    session = memd.session("t", user_id="ana")
    session.user("I live in Porto.")
    session.save()
    file = next(settings.data_dir.rglob("session.json"))
    file.write_bytes(b'{"sessionId": "t", "compon')
    session = memd.session("t", user_id="ana")
    assert session.messages == ()
    session.user("Hello.")
    session.save()
    assert len(list(file.parent.glob("session.json.corrupt-*"))) == 1


def test_old_sessions_and_archived_checkpoints_leave(memd: Memd, settings: Settings) -> None:
    """A session that was saved since stays, with its newest checkpoint."""
    store = open_store(settings)
    session = memd.session("t", user_id="ana")
    session.user("I live in Porto.")
    session.checkpoint()
    session.checkpoint()
    session.prune()
    now = datetime.now(UTC)
    assert store.sessions.expire(Bucket("ana"), now - timedelta(days=1)) == 0
    assert store.sessions.expire(Bucket("ana"), now + timedelta(days=1)) == 1  # the session with all its checkpoints
    assert memd.sessions("ana") == []
    assert store.sessions.checkpoints(Key("t", "ana")) == []


def test_an_export_carries_sessions(memd: Memd, settings: Settings) -> None:
    """An import adds those that are not there, without what was forgotten, and pushes nothing of them."""
    session = memd.session("t", user_id="ana")
    session.user("I live in Porto.", id="m1")
    session.tool_use("call_1", "weather", {})
    session.tool_result("call_1", "rain")
    session.checkpoint(agent_state={"step": 1})
    found = memd.export("ana")
    assert memd.import_memory("ana", found).sessions == 0
    memd.remove_session("t", user_id="ana")
    assert memd.import_memory("ana", found, dry_run=True).sessions == 1
    assert memd.import_memory("ana", found).sessions == 1
    again = memd.session("t", user_id="ana")
    assert (texts(again)[0], again.restore().agent_state) == ("I live in Porto.", {"step": 1})
    memd.forget("ana")
    assert memd.import_memory("ana", found).sessions == 1
    again = memd.session("t", user_id="ana")
    assert "Porto" not in "".join(file.read_text() for file in settings.data_dir.rglob("*.json*"))
    assert pending(memd, "ana") == 0
    with pytest.raises(Rejected, match="E_IMPORT_SESSIONS"):
        memd.import_memory("ana", {**found, "sessions": [{"agentName": "", "sessions": [{"threadId": 1}]}]})


def test_the_daily_round_removes_old_sessions(configured: Configured, client: redis.Redis) -> None:
    """After `session.keep_days`, whoever the user is and whether they come again."""
    settings = configured(session__keep_days=1)
    with Memd(settings) as memd:
        session = memd.session("t", user_id="ana")
        session.user("I live in Porto.")
        session.save()
        store = open_store(settings)
        assert not tend(store, Bucket("ana"), settings, datetime.now(UTC))
        assert tend(store, Bucket("ana"), settings, datetime.now(UTC) + timedelta(days=2))
        assert memd.sessions("ana") == []


def test_limits(memd: Memd) -> None:
    """A clear error each time, and the session is as it was."""
    session = memd.session("t", user_id="ana")
    session.user("I live in Porto.", id="m1")
    with pytest.raises(Rejected, match="E_MESSAGE_ID"):
        session.assistant("Porto.", id="m1")
    with pytest.raises(Rejected, match="E_BUSINESS_STATE"):
        session.business_state = "x" * 201
    with pytest.raises(Rejected, match="E_TOOL_USE_ID"):
        session.tool_use("", "weather", {})
    with pytest.raises(Rejected, match="E_COMPONENT"):
        session.add_component(Plan(), "memory")
    session.user("x" * 20_000_000)
    with pytest.raises(Rejected, match="E_SESSION_SIZE"):
        session.save()
    session.delete(-1)
    session.save()
    assert len(memd.session("t", user_id="ana").messages) == 2  # the outline of what the long message pushed out


def test_an_async_session(settings: Settings, client: redis.Redis) -> None:
    """The same methods; those that read or write are awaited."""

    async def chat() -> list[str]:
        async with AsyncMemd(settings) as memd:
            session = await memd.session("t", user_id="ana")
            session.user("I live in Porto.")
            await session.save()
            await session.checkpoint(agent_state=1)
            assert (await session.restore()).agent_state == 1
            return [entry.thread_id for entry in await memd.sessions("ana")]

    assert asyncio.run(chat()) == ["t"]
