"""AgentScope's short-term memory over a session: what a ReActAgent does with it, step by step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest
import redis
from support.inbox_view import look, messages

from memd.adapters.longterm import RETRIEVED
from memd.adapters.shortterm import ShortTermMemory
from memd.client import Memd
from memd.config import Settings
from memd.context import Key
from memd.inbox import library

Configured = Callable[..., Settings]
NUMBERS = count(1)


@dataclass
class Msg:
    """A message with the constructor and the fields of AgentScope's own."""

    name: str
    content: Any
    role: str
    id: str = field(default_factory=lambda: f"m{next(NUMBERS)}")
    timestamp: str = "2026-03-01 10:00:00.123"


@pytest.fixture
def memd(configured: Configured, client: redis.Redis) -> Memd:
    """A client whose sessions are small."""
    settings = configured(
        session__max_tokens=500, session__compact_tokens=300, session__keep_tokens=100, session__summary_tokens=100
    )
    library.install(client, settings)
    return Memd(settings)


def short_term(memd: Memd, **options: Any) -> ShortTermMemory:
    return ShortTermMemory(memd, user_id="ana", thread_id="t", message=Msg, **options)


def pending(client: redis.Redis) -> list[str]:
    """What waits in the inbox."""
    return [message.content for message in messages(look(client).pending.get(Key("t", "ana").hash, {}))]


def call(tool_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": tool_id, "name": "weather", "input": {"city": "Porto"}}


def result(tool_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "id": tool_id, "name": "weather", "output": [{"type": "text", "text": "rain"}]}


def test_a_round_with_a_tool_comes_back_as_it_went_in(memd: Memd, client: redis.Redis) -> None:
    """Ids, names and blocks; the words of both are pushed, the tool's are not; another process goes on with it."""
    told = [
        Msg("Ana", "How is the weather?", "user"),
        Msg("Friday", [{"type": "text", "text": "I look."}, call("c1")], "assistant"),
        Msg("system", [result("c1")], "system"),
        Msg("Friday", "It rains.", "assistant"),
    ]

    async def work() -> None:
        memory = short_term(memd)
        for message in told:
            await memory.add(message)
        await memory.add([told[0], None])  # again
        assert await memory.size() == 4
        for again in (memory, short_term(memd)):
            found = await again.get_memory()
            assert [(one.id, one.role, one.content) for one in found] == [(m.id, m.role, m.content) for m in told]
            assert [one.name for one in found] == ["user", "Friday", "system", "Friday"]

    asyncio.run(work())
    assert pending(client) == ["How is the weather?", "I look.", "It rains."]


def test_what_the_framework_adds_is_shown_and_never_pushed(memd: Memd, client: redis.Redis) -> None:
    """Hints until they are removed by their mark; what it retrieved, behind the message it came for."""

    async def work() -> None:
        memory = short_term(memd)
        asked = Msg("Ana", "Where do I live?", "user")
        await memory.add([asked, Msg(RETRIEVED, "<long_term_memory>Porto</long_term_memory>", "user")])
        await memory.add(Msg("user", [{"type": "text", "text": "<retrieved_knowledge>Use"}], "user"))
        await memory.add(Msg("user", "<system-hint>Go on.</system-hint>", "user"), marks="hint")
        assert [str(one.content)[:18] for one in await memory.get_memory()] == [
            "Where do I live?", "<long_term_memory>", "[{'type': 'text', ", "<system-hint>Go on",
        ]  # fmt: skip
        assert len(await memory.get_memory(exclude_mark="hint")) == 3
        assert len(await memory.get_memory(mark="hint")) == 1
        assert await memory.delete_by_mark(["hint"]) == 1
        assert await memory.delete([asked.id]) == 1
        with pytest.raises(NotImplementedError, match="compression_config"):
            await memory.update_messages_mark("compressed")
        await memory.clear()
        assert (await memory.size(), await memory.get_memory()) == (0, [])

    asyncio.run(work())
    assert pending(client) == ["Where do I live?"]


def test_a_long_conversation_is_compacted(memd: Memd, client: redis.Redis) -> None:
    """The window stays small, begins with a summary, and every word is pushed, with its speaker."""
    said = [f"I own bicycle number {number}, and I ride it to work each day." for number in range(24)]

    async def work() -> None:
        memory = short_term(memd, user_name="Ana")
        for number, text in enumerate(said):
            await memory.add(Msg("Ben" if number == 1 else "Ana", text, "user"))
            await memory.add(Msg("Friday", "Noted.", "assistant"))
        found = await memory.get_memory()
        assert len(found) < 24
        assert found[0].content.startswith("[Compressed]")
        assert found[0].name == "Ana"
        assert (await memory.get_memory(prepend_summary=False))[0].content != found[0].content

    asyncio.run(work())
    assert [text for text in pending(client) if text != "Noted."] == said
    named = [value for value in look(client).pending[Key("t", "ana").hash].values() if "Ben" in value]
    assert [said[1] in value for value in named] == [True]


def test_two_processes_on_one_conversation(memd: Memd) -> None:
    """The second one reads what the first has saved and adds its own behind it."""

    async def work() -> None:
        first, second = short_term(memd), short_term(memd)
        await first.size()
        await second.size()
        await first.add(Msg("Ana", "I live in Porto.", "user"))
        await second.add(Msg("Ana", "I like tea.", "user"))
        assert [one.content for one in await second.get_memory()] == ["I live in Porto.", "I like tea."]
        await asyncio.gather(*(second.add(Msg("system", [result(f"c{number}")], "system")) for number in range(5)))
        assert await second.size() == 7

    asyncio.run(work())
