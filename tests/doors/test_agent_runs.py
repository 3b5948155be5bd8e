"""Runs of agents: adapters read whose run it is from its configuration, and stay out of one without memory."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import redis
from anthropic.tools import ToolError
from anthropic.types.beta import BetaMemoryTool20250818ViewCommand
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from support.inbox_view import look
from support.langchain_chat import Chat, Scripted

from memd.adapters.agent_memory import AgentMemory
from memd.adapters.agent_run import enables_memory, fields_of, run_of, values_of
from memd.adapters.anthropic_memory import AsyncMemdMemoryTool, MemdMemoryTool
from memd.adapters.langchain import MemdMiddleware
from memd.adapters.longterm import LongTermMemory
from memd.adapters.shortterm import ShortTermMemory
from memd.client import Memd
from memd.config import Settings
from memd.errors import Rejected
from memd.inbox import library
from memd.inbox.decoding import message_value, signals_of
from memd.memory.facts import Scope


@dataclass
class Context:
    """A run's configuration as an object."""

    user_id: str = "ana"
    session_id: str = "t"
    enable_memory: bool = True


@pytest.fixture
def memd(configured: Callable[..., Settings], client: redis.Redis) -> Memd:
    """A client; what is pushed without haste is due in five minutes."""
    settings = configured(scheduler__quiet_s=300, scheduler__max_wait_s=300)
    library.install(client, settings)
    return Memd(settings)


def say(chat: Chat, text: str, **config: Any) -> list[AnyMessage]:
    """One run with this configuration besides user and thread."""
    whole: Any = {"configurable": {"thread_id": chat.thread, "user_id": chat.user, **config}}
    found: list[AnyMessage] = chat.agent.invoke({"messages": [HumanMessage(text)]}, whole)["messages"]
    return found


def pending(chat: Chat) -> list[str]:
    return [text for role, text in chat.pending if role == "user"]


# --- what a configuration says -----------------------------------------------------------------------------------


def test_a_configuration_is_a_mapping_an_object_or_langchains() -> None:
    """`session_id` is the thread; where both are given, `thread_id` counts; the project is read as well."""
    found = run_of(values_of({"user_id": "ana", "session_id": "s", "project_id": "p"}), None, None)
    assert found == ("ana", "s", None, "p")
    assert run_of(values_of(Context()), None, None)[:2] == ("ana", "t")
    nested = {"configurable": {"user_id": "ana", "thread_id": "t", "session_id": "s", "user_name": "Ana"}}
    assert run_of(values_of(nested), None, None)[:3] == ("ana", "t", "Ana")
    assert run_of(values_of(Context()), "bound", None).user_id == "bound"
    assert run_of(values_of({"session_id": "s"}), None, "default").user_id == "default"


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"session_id": "s"}, "E_USER_ID_MISSING"),
        ({"user_id": "ana"}, "E_THREAD_ID_MISSING"),
        ({"user_id": "ana", "session_id": "s", "project_id": "\x07"}, "E_PROJECT_ID"),
        ({"user_id": "ana", "session_id": "s", "enable_memory": "no"}, "E_ENABLE_MEMORY"),
        ({"user_id": "ana", "session_id": "s", "enable_memory": 0}, "E_ENABLE_MEMORY"),
    ],
)
def test_what_means_nothing_is_refused(config: dict[str, Any], code: str, settings: Settings) -> None:
    """Above all an `enable_memory` that is neither true nor false: a guess could push what was to stay private."""
    with pytest.raises(Rejected, match=code):
        fields_of(config, settings)
    assert enables_memory(values_of({}))
    assert not enables_memory(values_of({"enable_memory": False}))


# --- LangChain ---------------------------------------------------------------------------------------------------


def test_a_run_may_name_its_session(memd: Memd, client: redis.Redis) -> None:
    """In an app without a thread of LangGraph's."""
    from langchain.agents import create_agent

    agent = create_agent(Scripted(), middleware=[MemdMiddleware(memd)], context_schema=Context)
    agent.invoke({"messages": [HumanMessage("I live in Porto.")]}, context=Context())
    assert [fields[".thread"] for fields in look(client).pending.values()] == ["t"]


def test_a_run_without_memory_gets_none_and_leaves_none(memd: Memd, client: redis.Redis) -> None:
    """No block, no push, also by no later run of the thread; what waited before still comes."""
    memd.add_fact("ana", "The user lives in Porto.")
    chat = Chat(memd, client, Scripted())
    say(chat, "I like tea.")
    told = say(chat, "I have a secret crush.", enable_memory=False)
    assert [message.text for message in told if isinstance(message, HumanMessage)] == [
        "I like tea.",
        "I have a secret crush.",
    ]
    assert "Porto" not in chat.model.system
    assert pending(chat) == ["I like tea."]
    say(chat, "I like cake.")
    assert "Porto" in chat.model.system
    assert pending(chat) == ["I like tea.", "I like cake."]
    assert [role for role, _ in chat.pending] == ["user", "assistant"] * 2
    say(chat, "And another one.", enable_memory=False)
    say(chat, "I play go.", enable_memory=True)
    assert pending(chat) == ["I like tea.", "I like cake.", "I play go."]


def test_a_run_without_memory_needs_no_user(memd: Memd, client: redis.Redis) -> None:
    """memd is not asked anything."""
    chat = Chat(memd, client, Scripted(), user="")
    say(chat, "Who am I?", enable_memory=False)
    assert len(chat.model.asked) == 1


def test_an_outage_before_a_run_without_memory_loses_nothing(memd: Memd, client: redis.Redis) -> None:
    """What waits in the thread's state waits on, and only that is pushed."""
    chat = Chat(memd, client, Scripted())
    client.hset("{memd}:config", "full", 1)
    say(chat, "I like tea.")
    say(chat, "I have a secret crush.", enable_memory=False)
    client.hdel("{memd}:config", "full")
    say(chat, "I like cake.")
    assert pending(chat) == ["I like tea.", "I like cake."]


def test_a_summary_between_does_not_bring_it_back(memd: Memd, client: redis.Redis) -> None:
    """Also where the last message that was pushed is gone from the state."""
    summary = SummarizationMiddleware(Scripted(), trigger=("messages", 6), keep=("messages", 3))
    chat = Chat(memd, client, Scripted(), [MemdMiddleware(memd), summary])
    say(chat, "I like tea.")
    for number in range(4):
        say(chat, f"I have secret {number}.", enable_memory=False)
    say(chat, "I like cake.")
    say(chat, "I play go.")
    assert pending(chat) == ["I like tea.", "I like cake.", "I play go."]


def test_a_session_keeps_it_in_the_window_and_pushes_it_never(memd: Memd, client: redis.Redis) -> None:
    """The model still sees what was said in the conversation."""
    chat = Chat(memd, client, Scripted(), [MemdMiddleware(memd, session=True)])
    say(chat, "I like tea.")
    say(chat, "I have a secret crush.", enable_memory=False)
    say(chat, "I like cake.")
    shown = [message.text for message in chat.model.asked[-1] if isinstance(message, HumanMessage)]
    assert shown == ["I like tea.", "I have a secret crush.", "I like cake."]
    assert pending(chat) == ["I like tea.", "I like cake."]


# --- projects ----------------------------------------------------------------------------------------------------


def marked(client: redis.Redis) -> dict[str, str]:
    """The messages of users that wait in the inbox, and the project that each is marked for."""
    [fields] = look(client).pending.values()
    rows = [message_value(value.encode()) for name, value in fields.items() if name.startswith("m:")]
    told: list[tuple[dict[str, Any], str]] = [(orjson.loads(row.body), signals_of(row)[1]) for row in rows]
    return {body["content"]: project for body, project in told if body["role"] == "user"}


def test_a_message_is_marked_for_the_project_of_its_run(memd: Memd, client: redis.Redis) -> None:
    """Not for that of a later run which pushes it, because the inbox was away."""
    memd.project("apollo").make("ana")
    chat = Chat(memd, client, Scripted())
    client.hset("{memd}:config", "full", 1)
    say(chat, "I like tea.")
    say(chat, "We deploy on Fridays.", project_id="apollo")
    client.hdel("{memd}:config", "full")
    say(chat, "I like cake.")
    say(chat, "We test on Mondays.", project_id="apollo")
    assert marked(client) == {
        "I like tea.": "",
        "We deploy on Fridays.": "apollo",
        "I like cake.": "",
        "We test on Mondays.": "apollo",
    }


@pytest.mark.parametrize("resent", [True, False])
def test_what_was_there_before_the_run_is_not_the_projects(memd: Memd, client: redis.Redis, *, resent: bool) -> None:
    """An app that sends all of it again, or a thread that had no memory before."""
    from langchain.agents import create_agent

    memd.project("apollo").make("ana")
    agent = create_agent(Scripted(), middleware=[MemdMiddleware(memd, resent=resent)])
    turns: list[AnyMessage] = [HumanMessage("I like tea."), AIMessage("Noted."), HumanMessage("We deploy on Fridays.")]
    config: Any = {"configurable": {"thread_id": "t", "user_id": "ana", "project_id": "apollo"}}
    state: Any = {"messages": turns}
    agent.invoke(state, config)
    assert marked(client) == {"I like tea.": "", "We deploy on Fridays.": "apollo"}


def test_a_projects_facts_are_in_the_block_of_its_runs(memd: Memd, client: redis.Redis) -> None:
    """And in what the long-term memory retrieves; a session's turns stay private."""
    memd.project("apollo").make("ana")
    AgentMemory(memd.settings, "ana").save("Deploys happen on Fridays.", None, Scope("project", "apollo"))
    chat = Chat(memd, client, Scripted(), [MemdMiddleware(memd, session=True)])
    say(chat, "When do we deploy?", project_id="apollo")
    assert "Fridays" in chat.model.system
    say(chat, "And otherwise?")
    assert "Fridays" not in chat.model.system
    assert set(marked(client).values()) == {""}
    client.flushdb()

    async def work() -> str:
        memory = LongTermMemory.of_run(memd, {"user_id": "ana", "session_id": "t", "project_id": "apollo"})
        await memory.record([{"role": "user", "content": "We test on Mondays.", "id": "1"}])
        return await memory.retrieve({"role": "user", "content": "When do we deploy?"})

    library.install(client, memd.settings)
    assert "Fridays" in asyncio.run(work())
    assert marked(client) == {"We test on Mondays.": "apollo"}


# --- AgentScope --------------------------------------------------------------------------------------------------


def test_the_long_term_memory_of_a_run(memd: Memd, client: redis.Redis) -> None:
    """User and session from the configuration; without memory nothing is recorded, retrieved or saved."""

    async def work(config: object) -> tuple[str, str]:
        memory = LongTermMemory.of_run(memd, config, mode="both")
        await memory.record([{"role": "user", "content": "I live in Porto.", "id": "1"}])
        saved = await memory.record_to_memory("", ["The user likes green tea."])
        assert len(memory.tools()) == (2 if "Kept" in saved.content[0]["text"] else 0)
        return await memory.retrieve({"role": "user", "content": "tea"}), saved.content[0]["text"]

    off = {"user_id": "ana", "session_id": "s", "enable_memory": False}
    assert asyncio.run(work(off)) == ("", "Memory is switched off for this run.")
    assert look(client).pending == {}
    assert memd.facts("ana") == []
    block, saved = asyncio.run(work(Context()))
    assert "green tea" in block
    assert saved.startswith("Kept as fact_")
    assert [fields[".thread"] for fields in look(client).pending.values()] == ["t"]


def test_the_short_term_memory_of_a_run(memd: Memd, client: redis.Redis) -> None:
    """Without memory the messages are in the window, and the next run with it pushes only its own."""

    async def run(text: str, *, on: bool) -> list[str]:
        memory = ShortTermMemory.of_run(memd, Context(enable_memory=on))
        await memory.add({"role": "user", "content": text, "name": "ana", "id": text})
        assert len(await memory.get_memory(prepend_summary=False)) == await memory.size()
        return [message.content for message in await memory.get_memory()]

    asyncio.run(run("I like tea.", on=True))
    asyncio.run(run("I have a secret crush.", on=False))
    assert asyncio.run(run("I like cake.", on=True)) == ["I like tea.", "I have a secret crush.", "I like cake."]
    memd.session("t", user_id="ana").compact()
    assert "secret" not in str(look(client).pending)
    assert "cake" in str(look(client).pending)


# --- Anthropic's memory tool -------------------------------------------------------------------------------------


def test_the_memory_tool_of_a_run(memd: Memd) -> None:
    """The folder of the run's user; without memory every command is an error that the model reads."""
    memd.add_fact("ana", "The user lives in Porto.")
    view = BetaMemoryTool20250818ViewCommand(command="view", path="/memories/facts.md")
    assert "Porto" in MemdMemoryTool.of_run(memd, Context()).view(view)
    assert "Porto" in asyncio.run(AsyncMemdMemoryTool.of_run(memd, {"user_id": "ana"}).view(view))
    for tool in (MemdMemoryTool.of_run(memd, Context(enable_memory=False)),):
        with pytest.raises(ToolError, match="switched off"):
            tool.view(view)
    with pytest.raises(Rejected, match="E_USER_ID_MISSING"):
        MemdMemoryTool.of_run(memd, {})
