"""AgentScope 1.x in its real loop: a ReActAgent with both halves of the memory."""

from __future__ import annotations

import asyncio
from typing import Any

from agentscope.agent import ReActAgent
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg
from agentscope.model import OpenAIChatModel
from agentscope.tool import ToolResponse
from support import daemon
from support.chat_calls import calling, results_of

from memd.adapters.longterm import LongTermMemory
from memd.adapters.shortterm import ShortTermMemory
from memd.client import Memd
from memd.config import Settings
from memd.testing import ModelServer


def say(model: ModelServer, memd: Memd, text: str, thread: str, mode: Any) -> str:
    async def run() -> str:
        long = LongTermMemory(memd, user_id="ana", thread_id=thread, mode=mode, response=ToolResponse)
        chat = OpenAIChatModel("test", "key", stream=False, client_kwargs={"base_url": f"{model.base_url}/v1"})
        agent = ReActAgent(
            name="a",
            sys_prompt="Be kind.",
            model=chat,
            formatter=OpenAIChatFormatter(),
            memory=ShortTermMemory(memd, user_id="ana", thread_id=f"{thread}-window", message=Msg),
            long_term_memory=long,
            long_term_memory_mode=mode,
        )
        agent.set_console_output_enabled(False)
        return str((await agent(Msg("user", text, "user"))).get_text_content())

    return asyncio.run(run())


def test_an_agent_remembers_its_user(memd: Memd, settings: Settings, model: ModelServer) -> None:
    """What is said in one thread is retrieved in the next one, as data."""
    model.text("Noted.", times=None)
    assert say(model, memd, "I live in Porto.", "monday", "static_control") == "Noted."
    with daemon(settings):
        memd.flush(wait=True)
    say(model, memd, "Where do I live?", "tuesday", "static_control")
    asked = str(model.requests[-1].body["messages"])
    assert "Porto" in asked.partition("<memory>")[2]


def test_the_model_has_the_tools(memd: Memd, model: ModelServer) -> None:
    """It records and retrieves."""
    model.raw(calling("record_to_memory", {"thinking": "", "content": ["The user likes short answers."]}))
    model.text("Kept.")
    say(model, memd, "Be short.", "t", "agent_control")
    assert [fact["source"] for fact in memd.document("ana")["facts"]] == ["agent"]
    model.raw(calling("retrieve_from_memory", {"keywords": ["answers"]}))
    model.text("Short.")
    say(model, memd, "How?", "t2", "agent_control")
    assert "short answers" in str(results_of(model.requests[-1].body)[-1])
