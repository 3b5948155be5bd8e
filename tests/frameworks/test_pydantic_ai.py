"""PydanticAI in its real loop: the capability's instructions, its tools, its pushes."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from support import code_blocks, daemon, environment, make_settings
from support.chat_calls import calling, results_of, system_of

from memd.adapters.pydantic_ai import MemdCapability
from memd.client import Memd
from memd.config import Settings
from memd.errors import Rejected
from memd.testing import ModelServer


@dataclass
class Deps:
    """What a run of the app knows."""

    user_id: str | None
    thread_id: str | None = None
    enable_memory: bool | None = None


def agent_of(model: ModelServer, capability: MemdCapability) -> Agent[Deps, str]:
    chat = OpenAIChatModel("test", provider=OpenAIProvider(base_url=f"{model.base_url}/v1", api_key="test"))
    return Agent(chat, instructions="Be kind.", deps_type=Deps, capabilities=[capability], retries=0)


def say(agent: Agent[Deps, str], text: str, deps: Deps, **options: Any) -> str:
    return str(asyncio.run(agent.run(text, deps=deps, **options)).output)


def test_an_agent_remembers_its_user(memd: Memd, settings: Settings, model: ModelServer) -> None:
    """What is said in one run stands in the instructions of the next one, as data; one agent serves many users."""
    model.text("Noted.", times=None)
    agent = agent_of(model, MemdCapability(memd))
    assert say(agent, "I live in Porto.", Deps("ana", "monday")) == "Noted."
    say(agent, "我住在杭州。", Deps("小林", "周一"))
    with daemon(settings):
        memd.flush(wait=True)
    say(agent, "Where do I live?", Deps("ana", "tuesday"))
    asked = system_of(model.requests[-1].body)
    assert asked.startswith("Be kind.\n<memory>\nWhat is remembered")
    assert "Porto" in asked
    assert "杭州" not in asked
    say(agent, "我住在哪里？", Deps("小林", "周二"))
    assert "杭州" in system_of(model.requests[-1].body)


def test_a_conversation_pushes_each_message_once(memd: Memd, model: ModelServer) -> None:
    """A later run brings the history along; only its own messages are pushed, under the conversation's id."""
    model.text("Noted.", times=None)
    agent = agent_of(model, MemdCapability(memd))
    first = asyncio.run(agent.run("I live in Porto.", deps=Deps("ana")))
    asyncio.run(agent.run("I like tea.", deps=Deps("ana"), message_history=first.all_messages()))
    (key,) = memd.pending(user_id="ana").keys
    assert key.turns == 4


def test_the_tools_are_bound_to_the_user_of_the_run(memd: Memd, model: ModelServer) -> None:
    """A note is kept, a search finds it, and nobody else's."""
    agent = agent_of(model, MemdCapability(memd))
    model.raw(calling("memory_save", {"content": "The user likes short answers."}))
    model.text("Kept.")
    say(agent, "Be short.", Deps("ana", "t"))
    assert [fact["source"] for fact in memd.document("ana")["facts"]] == ["agent"]
    for user, found in (("ana", True), ("eve", False)):
        model.raw(calling("memory_search", {"query": "short answers"}))
        model.text("Yes.")
        say(agent, "How?", Deps(user, "t2"))
        assert ("short answers" in results_of(model.requests[-1].body)[0]) is found


def test_a_failed_run_keeps_what_the_user_said(memd: Memd, model: ModelServer) -> None:
    """The model fails; the error reaches the app, and the user's words the inbox."""
    model.fail(400)
    with pytest.raises(ModelHTTPError):
        say(agent_of(model, MemdCapability(memd)), "I live in Porto.", Deps("ana", "t"))
    (key,) = memd.pending(user_id="ana").keys
    assert key.turns == 1


def test_a_run_without_a_user_is_refused(memd: Memd, model: ModelServer) -> None:
    """Before the model is asked."""
    with pytest.raises(Rejected, match="E_USER_ID_MISSING"):
        say(agent_of(model, MemdCapability(memd)), "Hello.", Deps(None, "t"))
    assert model.calls == 0


def test_a_run_without_memory_leaves_none(memd: Memd, model: ModelServer) -> None:
    """No block, no push, and the tools say so."""
    memd.add_fact("ana", "The user lives in Porto.")
    model.raw(calling("memory_search", {"query": "Porto"}))
    model.text("Fine.")
    say(agent_of(model, MemdCapability(memd)), "I own a boat.", Deps("ana", "t", enable_memory=False))
    assert system_of(model.requests[-1].body) == "Be kind."
    assert "switched off" in results_of(model.requests[-1].body)[0]
    assert memd.pending(user_id="ana").keys == ()


def test_an_outage_stops_no_agent(
    memd: Memd, settings: Settings, model: ModelServer, caplog: pytest.LogCaptureFixture
) -> None:
    """While the inbox is away the agent answers, and the next run pushes what waited."""
    model.text("Noted.", times=None)
    gone = make_settings(settings.data_dir, "unix:///nowhere/memd.sock")
    capability = MemdCapability(Memd(gone))
    agent = agent_of(model, capability)
    with caplog.at_level(logging.WARNING, "memd"):
        assert say(agent, "I live in Porto.", Deps("ana", "t")) == "Noted."
    assert "push_delayed" in caplog.text
    capability._turns._memd = memd  # the inbox is back
    say(agent, "I like tea.", Deps("ana", "t"))
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
    chat = OpenAIChatModel("test", provider=OpenAIProvider(base_url=f"{model.base_url}/v1", api_key="test"))
    names: dict[str, Any] = {"model": chat}
    exec(code_blocks("docs/agents.md", "py")[1], names)  # noqa: S102  (the page's own code)
    asyncio.run(names["main"]())
    assert capsys.readouterr().out == "Noted.\n"
    assert [key.turns for key in memd.pending(user_id="agents-pydantic").keys] == [2]
