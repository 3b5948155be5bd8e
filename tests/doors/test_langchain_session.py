"""The middleware that owns the window: the model gets a session's window, and what it cuts becomes memory."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import redis
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from support.langchain_chat import Chat, Scripted, calls_weather

from memd.adapters.langchain import MemdMiddleware
from memd.client import Memd
from memd.config import Settings
from memd.errors import ConfigError
from memd.inbox import library

Configured = Callable[..., Settings]
SMALL = {
    "session__max_tokens": 500,
    "session__compact_tokens": 300,
    "session__keep_tokens": 100,
    "session__summary_tokens": 100,
    "scheduler__quiet_s": 300,
    "scheduler__max_wait_s": 300,
}


@pytest.fixture
def memd(configured: Configured, client: redis.Redis) -> Memd:
    """A client whose sessions are small."""
    settings = configured(**SMALL)
    library.install(client, settings)
    return Memd(settings)


@pytest.fixture
def chat(memd: Memd, client: redis.Redis) -> Chat:
    """A conversation whose window a session owns."""
    return Chat(memd, client, Scripted(), [MemdMiddleware(memd, session=True)])


def shown(chat: Chat) -> list[str]:
    """What the model was shown last, without the system message."""
    return [message.text for message in chat.model.asked[-1][1:]]


def accepted(messages: Sequence[BaseMessage]) -> bool:
    """Whether a provider takes them: the user first, and each result directly behind its call."""
    calls: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in calls:
                return False
            calls.discard(message.tool_call_id)
        elif calls:
            return False
        elif isinstance(message, AIMessage):
            calls = {str(call["id"]) for call in message.tool_calls}
    return not calls and isinstance(messages[0], HumanMessage)


def test_a_long_conversation_stays_in_a_small_window(chat: Chat) -> None:
    """The state keeps everything, the model gets a window with a summary, and every word of the user is pushed once."""
    said = [f"I own bicycle number {number}, and I ride it to work each day." for number in range(24)]
    for text in said:
        state = chat.say(text)
        assert accepted(chat.model.asked[-1][1:])
    assert len(state) == 48
    assert len(shown(chat)) < 24
    assert shown(chat)[0].startswith("[Compressed]")
    assert shown(chat)[-1] == said[-1]
    assert [text for role, text in chat.pending if role == "user"] == said
    assert len(chat.pending) == 48


def test_a_tool_round_is_shown_whole_and_later_short(chat: Chat) -> None:
    """The messages that the model gets whole are those of the state itself; words beside calls are pushed."""
    chat.model.answers = [calls_weather(), AIMessage("It rains.")]
    state = chat.say("I live in Porto, how is the weather?")
    assert chat.model.asked[-1][1:] == state[:3]
    assert [text for _, text in chat.pending] == ["I live in Porto, how is the weather?", "It rains."]
    chat.model.answers = []
    chat.say("x" * 2_000)  # does not fit beside the others
    assert shown(chat)[-1] == "x" * 2_000
    assert accepted(chat.model.asked[-1][1:])


def test_without_a_checkpointer_the_session_has_the_conversation(memd: Memd) -> None:
    """The app sends only what is new; another process goes on with the same thread. Async as well."""
    for number, text in enumerate(["I live in Porto.", "Where do I live?"]):
        model = Scripted()
        agent = create_agent(model, middleware=[MemdMiddleware(memd, session=True, user_id="ana")])
        config: Any = {"configurable": {"thread_id": "t"}}
        told: Any = {"messages": [HumanMessage(text)]}
        asyncio.run(agent.ainvoke(told, config)) if number else agent.invoke(told, config)
    assert [message.text for message in model.asked[-1]] == ["I live in Porto.", "Noted.", "Where do I live?"]


def test_a_conversation_that_goes_back_leaves_the_branch(chat: Chat) -> None:
    """A message that a person edited is shown in its new wording only; what was said before has been pushed."""
    chat.say("I live in Porto.")
    state = chat.say("I like tee.")
    config: Any = {"configurable": {"thread_id": "t", "user_id": "ana"}}
    chat.agent.update_state(config, {"messages": [RemoveMessage(str(message.id)) for message in state[2:]]})
    chat.say("I like tea.")
    assert shown(chat) == ["I live in Porto.", "Noted.", "I like tea."]


def test_what_nobody_said_is_shown_and_never_pushed(chat: Chat) -> None:
    """A hidden message of the app is for the model alone."""
    chat.say(HumanMessage("The user looks sad.", additional_kwargs={"hide_from_ui": True}))
    assert shown(chat) == ["The user looks sad."]
    assert chat.pending == [("assistant", "Noted.")]


def test_an_outage_of_the_inbox_changes_nothing(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    """The window works, and what was said is pushed when the inbox is back."""
    chat.client.function_flush()
    chat.client.flushall()
    chat.say("I live in Porto.")
    chat.say("I like tea.")
    assert shown(chat) == ["I live in Porto.", "Noted.", "I like tea."]
    library.install(chat.client, chat.memd.settings)
    chat.memd.session("t", user_id="ana")
    assert [text for role, text in chat.pending if role == "user"] == ["I live in Porto.", "I like tea."]


def test_a_session_that_cannot_be_written_does_not_stop_the_agent(chat: Chat, caplog: pytest.LogCaptureFixture) -> None:
    """The model gets all messages, it is logged without a word of them, and later the session has them."""
    users = chat.memd.settings.data_dir / "users"
    users.write_text("no folder")
    with caplog.at_level(logging.WARNING, "memd"):
        chat.say("I live in Porto.")
    assert shown(chat) == ["I live in Porto."]
    assert "session_failed" in caplog.text
    assert "Porto" not in caplog.text
    users.unlink()
    chat.say("I like tea.")
    assert [turn.text for turn in chat.memd.session("t", user_id="ana").messages] == [
        "I live in Porto.", "Noted.", "I like tea.", "Noted.",
    ]  # fmt: skip


def test_a_session_needs_ids_that_stay(memd: Memd) -> None:
    """An app that sends everything again has none."""
    with pytest.raises(ConfigError, match="ids that stay"):
        MemdMiddleware(memd, session=True, resent=True)
