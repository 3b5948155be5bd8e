"""AgentScope 2 in its real loop: the middleware's block, its tools, its pushes."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from agentscope.agent import Agent
from agentscope.credential import OpenAICredential
from agentscope.message import UserMsg
from agentscope.model import OpenAIChatModel
from agentscope.tool import Toolkit
from support import code_blocks, daemon, environment, make_settings
from support.chat_calls import calling, results_of, system_of

from memd.adapters.agentscope import MemoryMiddleware
from memd.adapters.longterm import LongTermMemory
from memd.client import Memd
from memd.config import Settings
from memd.testing import ModelServer


def memory_of(memd: Memd, user: str, thread: str, **options: Any) -> LongTermMemory:
    return LongTermMemory(memd, user_id=user, thread_id=thread, **options)


def say(model: ModelServer, middleware: MemoryMiddleware, text: str) -> str:
    async def run() -> str:
        chat = OpenAIChatModel(
            credential=OpenAICredential(api_key="test", base_url=f"{model.base_url}/v1"), model="test", stream=False
        )
        agent = Agent(
            name="a",
            system_prompt="Be kind.",
            model=chat,
            toolkit=Toolkit(tools=await middleware.list_tools()),
            middlewares=[middleware],
        )
        return str((await agent.reply(UserMsg(name="user", content=text))).get_text_content())

    return asyncio.run(run())


def test_an_agent_remembers_its_user(memd: Memd, settings: Settings, model: ModelServer) -> None:
    """What is said in one thread stands in the system prompt of the next one, as data; nobody else's does."""
    model.text("Noted.", times=None)
    assert say(model, MemoryMiddleware(memory_of(memd, "ana", "monday")), "I live in Porto.") == "Noted."
    say(model, MemoryMiddleware(memory_of(memd, "小林", "周一")), "我住在杭州。")
    with daemon(settings):
        memd.flush(wait=True)
    say(model, MemoryMiddleware(memory_of(memd, "ana", "tuesday")), "Where do I live?")
    asked = system_of(model.requests[-1].body)
    assert asked.startswith("Be kind.")
    assert "Porto" in asked.partition("<memory>")[2]
    assert "杭州" not in asked
    say(model, MemoryMiddleware(memory_of(memd, "小林", "周二")), "我住在哪里？")
    assert "杭州" in system_of(model.requests[-1].body)


def test_the_tools_work_without_asking(memd: Memd, model: ModelServer) -> None:
    """The model records and retrieves; in mode static it has no tools."""
    middleware = MemoryMiddleware(memory_of(memd, "ana", "t", mode="agent"))
    model.raw(calling("record_to_memory", {"thinking": "", "content": ["The user likes short answers."]}))
    model.text("Kept.")
    say(model, middleware, "Be short.")
    assert [fact["source"] for fact in memd.document("ana")["facts"]] == ["agent"]
    model.raw(calling("retrieve_from_memory", {"keywords": ["answers"]}))
    model.text("Short.")
    say(model, middleware, "How?")
    assert "short answers" in results_of(model.requests[-1].body)[0]
    assert asyncio.run(MemoryMiddleware(memory_of(memd, "ana", "t", mode="static")).list_tools()) == []


def test_a_failed_reply_keeps_what_the_user_said(memd: Memd, model: ModelServer) -> None:
    """The model fails; the user's words reach the inbox."""
    model.fail(400, times=None)
    with pytest.raises(Exception, match=r".+"):
        say(model, MemoryMiddleware(memory_of(memd, "ana", "t")), "I live in Porto.")
    (key,) = memd.pending(user_id="ana").keys
    assert key.turns == 1


def test_an_outage_stops_no_agent(
    memd: Memd, settings: Settings, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """While the inbox is away the agent answers, and the next reply pushes what waited."""
    model.text("Noted.", times=None)
    away = memory_of(Memd(make_settings(settings.data_dir, "unix:///nowhere/memd.sock")), "ana", "t")
    middleware = MemoryMiddleware(away)
    with caplog.at_level(logging.WARNING, "memd"):
        assert say(model, middleware, "I live in Porto.") == "Noted."
    assert "push_delayed" in caplog.text
    middleware._waiting._memd = memd  # the inbox is back
    say(model, middleware, "I like tea.")
    (key,) = memd.pending(user_id="ana").keys
    assert key.turns == 4


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
    chat = OpenAIChatModel(
        credential=OpenAICredential(api_key="test", base_url=f"{model.base_url}/v1"), model="test", stream=False
    )
    names: dict[str, Any] = {"model": chat}
    exec(code_blocks("docs/agents.md", "py")[2], names)  # noqa: S102  (the page's own code)
    asyncio.run(names["main"]())
    assert capsys.readouterr().out == "Noted.\n"
    assert [key.turns for key in memd.pending(user_id="agents-agentscope").keys] == [2]
