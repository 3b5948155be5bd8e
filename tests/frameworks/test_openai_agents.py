"""OpenAI's Agents SDK in its real loop: the session, the block in the instructions, the tools."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from support import code_blocks, daemon, environment
from support.chat_calls import calling, results_of, system_of

from memd.adapters.openai_agents import MemdSession
from memd.client import Memd
from memd.config import Settings
from memd.errors import Rejected
from memd.testing import ModelServer

set_tracing_disabled(True)


def say(model: ModelServer, session: MemdSession, text: str) -> str:
    """One run of an agent with this session; what it answers."""

    async def run() -> str:
        chat = OpenAIChatCompletionsModel("test", AsyncOpenAI(base_url=f"{model.base_url}/v1", api_key="test"))
        tools: Any = [function_tool(tool) for tool in session.tools()]
        agent = Agent(name="a", instructions=session.instructions("Be kind."), model=chat, tools=tools)
        return str((await Runner.run(agent, text, session=session)).final_output)

    return asyncio.run(run())


def session_of(memd: Memd, thread: str, user: str = "ana", **options: Any) -> MemdSession:
    return MemdSession(memd, user_id=user, session_id=thread, **options)


def test_an_agent_remembers_its_user(memd: Memd, settings: Settings, model: ModelServer) -> None:
    """What is said in one session stands in the instructions of the next one, as data; nobody else's do."""
    model.text("Noted.", times=None)
    assert say(model, session_of(memd, "monday"), "I live in Porto.") == "Noted."
    assert say(model, session_of(memd, "周一", "小林"), "我住在杭州。") == "Noted."
    with daemon(settings):
        memd.flush(wait=True)
    say(model, session_of(memd, "tuesday"), "Where do I live?")
    asked = system_of(model.requests[-1].body)
    assert asked.startswith("Be kind.\n\n<memory>\nWhat is remembered")
    assert "Porto" in asked
    assert "杭州" not in asked
    say(model, session_of(memd, "周二", "小林"), "我住在哪里？")
    assert "杭州" in system_of(model.requests[-1].body)


def test_a_session_goes_on_in_another_process(memd: Memd, model: ModelServer) -> None:
    """The window is the thread's, with calls and results in their place, for whoever opens it."""
    model.raw(calling("memory_save", {"content": "The user likes short answers."}))
    model.text("Kept.")
    model.text("Short.")
    say(model, session_of(memd, "t"), "I like short answers.")
    say(model, session_of(memd, "t"), "How do I like them?")
    roles = [message["role"] for message in model.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert [fact["source"] for fact in memd.document("ana")["facts"]] == ["agent"]


def test_the_tools_are_bound_to_the_user(memd: Memd, model: ModelServer) -> None:
    """A search finds the user's facts, as data; a refusal is a result that the model reads."""
    memd.add_fact("ana", "The user lives in Porto.")
    model.raw(calling("memory_search", {"query": "home Porto"}))
    model.text("In Porto.")
    say(model, session_of(memd, "t"), "Where do I live?")
    (result,) = results_of(model.requests[-1].body)
    assert "Porto" in result
    assert "not instructions" in result
    model.raw(calling("memory_save", {"content": "x"}))
    model.text("No.")
    say(model, session_of(memd, "t2", "eve"), "Remember x.")
    assert results_of(model.requests[-1].body)[0].startswith("Error: E_NOTE_TOO_SHORT")
    assert memd.document("eve")["facts"] == []


def test_items_come_and_go(memd: Memd) -> None:
    """`limit`, `pop_item` and `clear_session` as the protocol says; an empty session pops None."""

    async def play() -> None:
        session = session_of(memd, "t")
        assert await session.pop_item() is None
        await session.add_items([{"role": "user", "content": "I live in Porto."}])
        await session.add_items([{"role": "assistant", "content": [{"type": "output_text", "text": "Noted."}]}])
        both = [{"role": "user", "content": "I live in Porto."}, {"role": "assistant", "content": "Noted."}]
        assert await session.get_items() == both
        assert await session.get_items(1) == both[1:]
        assert await session.get_items(0) == []
        assert await session.pop_item() == both[1]
        assert await session_of(memd, "t").get_items() == both[:1]
        await session.clear_session()
        assert await session.get_items() == []

    asyncio.run(play())


def test_a_run_without_memory_leaves_none(memd: Memd, settings: Settings, model: ModelServer) -> None:
    """With `enable_memory` False the window works, nothing is pushed, and there is no block and no tool."""
    memd.add_fact("ana", "The user lives in Porto.")
    model.text("Fine.", times=None)
    session = MemdSession.of_run(memd, {"user_id": "ana", "session_id": "t", "enable_memory": False})
    say(model, session, "I own a boat.")
    assert system_of(model.requests[-1].body) == "Be kind."
    assert "tools" not in model.requests[-1].body
    assert len(asyncio.run(session.get_items())) == 2
    assert memd.pending(user_id="ana").keys == ()


def test_a_run_names_its_user(memd: Memd) -> None:
    """Without one there is no session."""
    with pytest.raises(Rejected, match="E_USER_ID_MISSING"):
        MemdSession.of_run(memd, {"session_id": "t"})


def test_the_example_of_the_page_runs(
    memd: Memd,
    settings: Settings,
    model: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As docs/agents.md shows it, with a model that is played; what the user said is pending afterwards."""
    model.text("Noted.", times=None)
    for name, value in environment(settings).items():
        monkeypatch.setenv(name, value)
    chat = OpenAIChatCompletionsModel("test", AsyncOpenAI(base_url=f"{model.base_url}/v1", api_key="test"))
    names: dict[str, Any] = {"model": chat}
    exec(code_blocks("docs/agents.md", "py")[0], names)  # noqa: S102  (the page's own code)
    asyncio.run(names["main"]())
    assert capsys.readouterr().out == "Noted.\n"
    assert [key.turns for key in memd.pending(user_id="agents-openai").keys] == [2]
